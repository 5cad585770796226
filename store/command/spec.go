package command

// Handler runs one command. It owns nothing of the Call after it returns.
type Handler func(c *Call)

// Spec is the record of one command or sub-command, the only truth about it:
// COMMAND, the arity check, key routing, ACL categories and docs/COMMANDS.md
// all come from here.
type Spec struct {
	// Name is lower case; of a sub-command without its container's.
	Name string
	// Arity counts the name (and a sub-command's name too); negative: at least.
	Arity int
	Flags Flags
	// Categories beyond those that Flags imply.
	Categories Category
	Keys       []KeySpec
	// Access says what transaction the handler runs in.
	Access Access
	// Upstream: the command is the upstream's alone, and is forwarded or refused.
	Upstream bool
	// Outside: the command acts beyond the keyspace and cannot be undone, so a
	// transaction it is part of runs alone and is never rerun.
	Outside bool
	// Sub are the sub-commands of a container; its own Handler, if any, runs
	// when none is given.
	Sub []*Spec
	// Help are the lines of the container's HELP, as Redis prints them between
	// its first line and the lines on HELP itself.
	Help []string

	Handler Handler
	// Prepare is called before any key of a client's command is acquired, also by
	// EXEC. It does what others should not have to wait for, such as compiling,
	// may leave the outcome in Call.Prepared for the handler, and may set
	// Call.Lengthy. It answers nothing: what it finds wrong the handler will say.
	// For commands of scripts and plugins it is not called.
	Prepare func(c *Call)
	// Declared, when set, are the flags of a call with these arguments: those of the
	// command, where the script that it names does not declare others.
	Declared func(args [][]byte) Flags
	// Instant: a Free command that takes no lock and waits for nothing, so that
	// it may run in a transaction that holds latches.
	Instant bool
	// Brief: a call takes as long as any other whose arguments and reply have this
	// size, whatever the key holds, so several may share one look at the clock
	// (measure.go).
	Brief bool
	// Extra names keys that the key specs cannot: those in another database
	// (COPY, MOVE). It parses as far as it can and never answers.
	Extra func(c *Call, add func(db int, name []byte))

	// Queued, when set, is called when MULTI queues the command, and what it
	// returns when the command is no longer queued: EXEC has run it, or it was
	// discarded. The arguments live until then.
	Queued func(args [][]byte) (release func())

	// Documentation, as COMMAND DOCS and docs/COMMANDS.md give it.
	Summary    string
	Since      string
	Group      string
	Complexity string
	// Syntax are the arguments as a reader would write them:
	// "key value [NX | XX] [GET]".
	Syntax string
	// Differs says how this command differs from Redis's, for the docs.
	Differs string

	parent   *Spec
	fullName string // "config|get"
	usage    Usage
	carried  *Usage // that of the Spec in whose place this one was put, which it counts on
	module   string
	renamed  bool
	counted  bool // see isCounted; this and what follows is set by the table
	single   bool // see oneKey
	plain    bool // see isPlain
}

// Renamed tells whether the command is called by another name than its own.
func (s *Spec) Renamed() bool { return s.renamed }

// FullName is the name as COMMAND LIST gives it: "get", "config|get".
func (s *Spec) FullName() string { return s.fullName }

// Parent is the container of a sub-command, or nil.
func (s *Spec) Parent() *Spec { return s.parent }

// Usage is what INFO commandstats counts for the command.
func (s *Spec) Usage() *Usage {
	if s.carried != nil {
		return s.carried
	}
	return &s.usage
}

// Access says what transaction a command runs in.
type Access uint8

const (
	// ByKeys: the keys that the specs name, under their latches when they are
	// few, locked when they are many. For commands that are done quickly.
	ByKeys Access = iota
	// Bounded: as ByKeys, for commands that can tell how long they take. While
	// Tx.Short the handler spends no more than Tx.Allowance; when that is used up
	// it calls Tx.Promote and returns at once, to be called again with the keys
	// locked. So it may go through everything twice, but for what it says.
	Bounded
	// Locked: the keys are locked, for commands that may run long.
	Locked
	// Visits: no keys; the command visits the keyspace shard by shard.
	Visits
	// Alone: no other transaction runs meanwhile.
	Alone
	// Free: no transaction at all. Within MULTI or a script the command runs
	// in theirs.
	Free
)

// Quick tells whether the command may run in a transaction that holds latches.
func (s *Spec) Quick() bool { return s.Access <= Bounded || s.Instant }

// Flags are the command flags of COMMAND INFO.
type Flags uint32

// The command flags.
const (
	Write Flags = 1 << iota
	ReadOnly
	DenyOOM
	Module
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Asking
	Fast
	NoAuth
	MayReplicate
	NoMandatoryKeys
	Protected
	NoAsyncLoading
	NoMulti
	MovableKeys
	AllowBusy
)

var flagNames = []string{
	"write", "readonly", "denyoom", "module", "admin", "pubsub", "noscript",
	"blocking", "loading", "stale", "skip_monitor", "skip_slowlog", "asking", "fast", "no_auth",
	"may_replicate", "no_mandatory_keys", "protected", "no_async_loading", "no_multi", "movablekeys", "allow_busy",
}

// Names are the flags' names in COMMAND INFO's order.
func (f Flags) Names() []string { return bitNames(uint32(f), flagNames) }

// Category is a set of ACL categories.
type Category uint32

// The ACL categories.
const (
	CatKeyspace Category = 1 << iota
	CatRead
	CatWrite
	CatSet
	CatSortedSet
	CatList
	CatHash
	CatString
	CatBitmap
	CatHyperLogLog
	CatGeo
	CatStream
	CatPubSub
	CatAdmin
	CatFast
	CatSlow
	CatBlocking
	CatDangerous
	CatConnection
	CatTransaction
	CatScripting
)

var categoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string",
	"bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking",
	"dangerous", "connection", "transaction", "scripting",
}

// Names are the categories' names, without "@", in ACL CAT's order.
func (c Category) Names() []string { return bitNames(uint32(c), categoryNames) }

// CategoryByName returns the category of a name without "@", 0 if unknown.
func CategoryByName(name string) Category {
	for i, n := range categoryNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// FlagByName returns the flag of a name, 0 if unknown.
func FlagByName(name string) Flags {
	for i, n := range flagNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

func bitNames(bits uint32, names []string) []string {
	var out []string
	for i, n := range names {
		if bits&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// KeyFlags tell what a command does with the keys of a KeySpec.
type KeyFlags uint16

// The key flags.
const (
	KeyRO KeyFlags = 1 << iota
	KeyRW
	KeyOW
	KeyRM
	KeyAccess
	KeyUpdate
	KeyInsert
	KeyDelete
	KeyNotKey
	KeyIncomplete
	KeyVariable
)

var keyFlagNames = []string{
	"RO", "RW", "OW", "RM", "access", "update", "insert", "delete",
	"not_key", "incomplete", "variable_flags",
}

// Names are the flags' names in COMMAND INFO's order.
func (f KeyFlags) Names() []string { return bitNames(uint32(f), keyFlagNames) }

// KeySpec says where keys stand among the arguments, as Redis's key specs do.
type KeySpec struct {
	// Begin is the index of the first key, or of the key count.
	Begin int
	// Keyword, when set, is looked for from argument From on (negative: from
	// the end, backwards); the keys begin behind it.
	Keyword string
	From    int
	// Last is the last key relative to Begin; negative counts from the last
	// argument (-1 is the last). With Limit above 1 and Last -1 only the
	// 1/Limit part of the rest are keys.
	Last  int
	Step  int // 0 means 1
	Limit int
	// Count: at Begin+CountAt stands the number of keys, which begin at
	// Begin+FirstAt.
	Count   bool
	CountAt int
	FirstAt int

	Flags KeyFlags
	Notes string
}

// OneKey is the commonest key spec: the first argument.
func OneKey(f KeyFlags) []KeySpec { return []KeySpec{{Begin: 1, Flags: f}} }

// AllKeys is the key spec of commands whose arguments all are keys.
func AllKeys(f KeyFlags) []KeySpec { return []KeySpec{{Begin: 1, Last: -1, Flags: f}} }

// categories are those named and those the flags imply, as Redis implies them.
func (s *Spec) categories() Category {
	c := s.Categories
	if s.Flags&Write != 0 {
		c |= CatWrite
	}
	if s.Flags&ReadOnly != 0 && c&CatScripting == 0 {
		c |= CatRead
	}
	if s.Flags&Admin != 0 {
		c |= CatAdmin | CatDangerous
	}
	if s.Flags&PubSub != 0 {
		c |= CatPubSub
	}
	if s.Flags&Fast != 0 {
		c |= CatFast
	}
	if s.Flags&Blocking != 0 {
		c |= CatBlocking
	}
	if c&CatFast == 0 {
		c |= CatSlow
	}
	return c
}

// AllCategories are all ACL categories of the command.
func (s *Spec) AllCategories() Category { return s.categories() }
