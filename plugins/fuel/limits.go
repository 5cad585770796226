package fuel

import "math"

// Names that belong to the host. A guest that imports from HostModule or
// exports a name beginning with "latchkey_" is refused.
const (
	// HostModule is the import module of the one function instrumentation needs.
	HostModule = "latchkey_host"
	// RefillName is that function: (remaining i64) -> (fuel i64).
	RefillName = "refill"
	// GlobalName is the export by which the host reads and sets the fuel.
	GlobalName = "latchkey_fuel"
	// EntryName is the function that is added for Options.Entry.
	EntryName = "latchkey_entry"
	// KeptName is the export by which the host reads and sets what is known of
	// Options.Kept, one of KeptNone, KeptAwait and KeptFilled.
	KeptName = "latchkey_kept"
	// ForeseenName is the export by which the host reads and sets what is known of
	// Options.Foreseen, one of ForeseenNone, ForeseenAwait and ForeseenAnswered.
	ForeseenName = "latchkey_foreseen"

	reservedPrefix = "latchkey_"
)

// DepthExceeded is what the refill function receives, in place of the fuel,
// when calls are nested too deep. The guest traps whatever it returns.
const DepthExceeded int64 = math.MinInt64

// Slice is how many units of fuel a host does best to grant at a time. Go can
// neither schedule nor collect while a guest spends them. Most instructions take
// less than a nanosecond a unit, but a load that finds nothing in the caches takes a
// hundred and more: of those a slice takes some milliseconds, while to grant it
// takes about 0.2 us.
const Slice = 1 << 15

// Limits are the largest shapes [Check] lets pass. A field that is zero stands
// for its default. Guests built from Go with fmt and regexp reach 549 in Nesting,
// 1,144 in BranchTargets, 11,640 in BlockLocals and 50 KB in BodyBytes. On the other
// side stand modules of a few kilobytes that kept wazero's compiler busy for 5
// to 20 seconds: 128 nested loops with 1,000 locals, 2,000 ifs with 1,000
// locals, 10,000 blocks with 16. Its time grows with the square of LoopLocals
// and BlockLocals, and as flow says with the blocks that follow each other: 8,000
// times "block, br_if, end" took half a minute, and one branch table of 65,000
// targets three seconds. At the defaults a function takes a second at worst.
// Guests built from Go reach 5 million in FlowSteps and 69,000 in TableTargets.
type Limits struct {
	ModuleBytes   int // bytes of the whole module; 16 MiB
	Types         int // 4,096
	Imports       int // 1,024
	Functions     int // defined functions; 50,000
	Globals       int // 8,192
	Exports       int // 8,192
	Tables        int // 16
	TableEntries  int // entries a table may begin with or grow to; 131,072
	Elements      int // element segments; 8,192
	ElementItems  int // items of all element segments; 262,144
	DataSegments  int // 100,000, which is what Go's linker may emit
	Params        int // parameters of a function; 128
	Results       int // results of a function or block, parameters of a block; 16
	BodyBytes     int // bytes of a function's body; 256 KiB
	Locals        int // parameters and locals of a function; 1,024
	Nesting       int // blocks within blocks; 1,024
	BlockLocals   int // blocks of a function, checks included, times its locals; 131,072
	LoopLocals    int // loops of a function times its locals; 8,192
	BranchTargets int // targets of all br_table of a function; 32,768
	TableTargets  int // of all functions; 1,048,576
	FlowSteps     int // what a compiler takes to order the blocks of all functions, see flow; 67,108,864
}

// withDefaults returns l with its zero fields filled in.
func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.ModuleBytes, 16 << 20},
		{&l.Types, 4096},
		{&l.Imports, 1024},
		{&l.Functions, 50_000},
		{&l.Globals, 8192},
		{&l.Exports, 8192},
		{&l.Tables, 16},
		{&l.TableEntries, 1 << 17},
		{&l.Elements, 8192},
		{&l.ElementItems, 1 << 18},
		{&l.DataSegments, 100_000},
		{&l.Params, 128},
		{&l.Results, 16},
		{&l.BodyBytes, 256 << 10},
		{&l.Locals, 1024},
		{&l.Nesting, 1024},
		{&l.BlockLocals, 1 << 17},
		{&l.LoopLocals, 1 << 13},
		{&l.BranchTargets, 1 << 15},
		{&l.TableTargets, 1 << 20},
		{&l.FlowSteps, 1 << 26},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// Options say how a module is rewritten.
type Options struct {
	Limits Limits

	// MemoryPages is the size, in pages of 64 KiB, that memory may grow to. A
	// module that begins larger is refused. Default 256, 16 MiB; 65,536 at most.
	MemoryPages uint32

	// Depth is how many calls may be nested. A function counts once for each 64
	// of its locals, begun ones included, because that is what its frame costs.
	// Default 1,000, about 1 MiB of stack.
	Depth uint32

	// Entry is an exported function, of 8 parameters and 8 results at most, that the
	// host may call as EntryName as well, with more parameters and
	// results: see entry.go. If there is none, nothing is added.
	Entry string

	// Kept is an imported function of type (i64) -> (). Its first call while Entry runs
	// does not leave the guest: the argument is a result of EntryName, if the
	// one before it is KeptFilled. Every other call is the host's. The host calls it
	// off by setting KeptName to KeptNone. A call through a table is always the host's.
	Kept Import

	// Foreseen is an imported function of type (i32, i32) -> i32. With EntryName the host
	// may tell one call of it that it foresees, and the answer. A guest that makes this call
	// gets the answer without leaving, once; the last result of EntryName says whether it
	// did. Before the host does anything that would change the answer, or that depends on
	// what the answered call has done, it looks at ForeseenName and sets it to ForeseenNone.
	// A call through a table is always the host's.
	Foreseen Import

	// exact charges each instruction by itself when it runs: the truth that
	// tests compare the charges with.
	exact bool
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	if o.MemoryPages == 0 {
		o.MemoryPages = 256
	}
	o.MemoryPages = min(o.MemoryPages, maxPages)
	if o.Depth == 0 {
		o.Depth = 1000
	}
	return o
}
