package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// What redis.call is called with is known for the most part when the script is
// compiled: literals, KEYS and ARGV at fixed places, variables. Their bytes go
// to the command without becoming values first.

// word is how one word of a command is found.
type word struct {
	from wordSource
	at   int    // of a key, an argument or a slot
	text []byte // of a literal
	e    expr   // puts it on the stack; nil for the others
}

type wordSource uint8

const (
	wordLiteral wordSource = iota
	wordKey
	wordArg
	wordSlot
	wordStack
)

// words compiles the words of a command. onStack says that some must be evaluated first.
func (c *compiler) words(args []ast.Expr) (list []word, onStack bool) {
	list = make([]word, len(args))
	for i, a := range args {
		list[i] = c.word(a)
		onStack = onStack || list[i].e != nil
	}
	return list, onStack
}

func (c *compiler) word(e ast.Expr) word {
	if v, ok := c.constant(e); ok {
		var w words
		if b, ok := w.bytes(c.literal(v)); ok {
			c.cost++
			return word{from: wordLiteral, text: append([]byte{}, b...)}
		}
	}
	if slot, ok := c.local(e); ok {
		c.cost++
		return word{from: wordSlot, at: slot}
	}
	if x, ok := e.(*ast.AttrGetExpr); ok {
		if keys, i, ok := c.argument(x); ok {
			c.cost++
			if keys {
				return word{from: wordKey, at: i}
			}
			return word{from: wordArg, at: i}
		}
	}
	return word{from: wordStack, e: c.expr(e)}
}

// argument recognises KEYS[n] and ARGV[n] with a literal n in a script that cannot
// change them; i is n-1, and not negative.
func (c *compiler) argument(x *ast.AttrGetExpr) (keys bool, i int, ok bool) {
	id, isName := x.Object.(*ast.IdentExpr)
	if !isName || c.argsEscape || !c.world.args || !c.isGlobal(id, "KEYS", "ARGV") {
		return false, 0, false
	}
	n, ok := c.number(x.Key)
	if !ok || n != float64(int32(n)) || n < 1 {
		return false, 0, false
	}
	return id.Value == "KEYS", int(n) - 1, true
}

// gather puts the words of a command together; those that were evaluated stand on
// the stack from base on. It returns false when one is neither text nor a number.
func (m *Machine) gather(f *frame, list []word, base int) bool {
	w := &m.words
	argv := w.room(len(list))
	w.size = 0
	return m.gatherMore(f, list, argv, base)
}

// gatherKey is gather for a command whose first words are a literal and KEYS[key+1],
// and the others not on the stack: what lock scripts call.
func (m *Machine) gatherKey(f *frame, list []word, key int) bool {
	w, in := &m.words, m.in
	if key >= len(in.Keys) {
		return false
	}
	argv := w.room(len(list))
	if len(argv) < 2 {
		return false
	}
	argv[0], argv[1] = list[0].text, in.Keys[key]
	w.size = len(argv[0]) + len(argv[1])
	return len(argv) == 2 || m.gatherMore(f, list[2:], argv[2:], 0)
}

func (m *Machine) gatherMore(f *frame, list []word, argv [][]byte, base int) bool {
	w, in := &m.words, m.in
	size := w.size
	argv = argv[:len(list)]
	for i := range list {
		var b []byte
		switch d := &list[i]; d.from {
		case wordLiteral:
			b = d.text
		case wordKey:
			if d.at >= len(in.Keys) {
				return false
			}
			b = in.Keys[d.at]
		case wordArg:
			if d.at >= len(in.Args) {
				return false
			}
			b = in.Args[d.at]
		default:
			v := Value{}
			if d.from == wordSlot {
				v = f.slots[d.at]
			} else {
				v = m.stack[base]
				base++
			}
			var ok bool
			if b, ok = w.bytes(v); !ok {
				return false
			}
		}
		argv[i] = b
		size += len(b)
	}
	w.size = size
	return true
}

const (
	// lazyWords is how many of KEYS and ARGV each are made into values only when
	// the script asks for them.
	lazyWords = 4
	// maxKeptText is the longest of them that a machine keeps for the next run.
	maxKeptText = 4 << 10
)

// arguments are the first of KEYS and ARGV as values, of a script that has no use
// for the tables.
type arguments struct {
	values [2 * lazyWords]Value // of earlier runs too
	bound  uint32               // bits of those that are this run's
	long   bool
}

// key is KEYS[i+1].
func (m *Machine) key(i int) Value { return m.argument(i, i, m.in.Keys) }

// arg is ARGV[i+1].
func (m *Machine) arg(i int) Value { return m.argument(lazyWords+i, i, m.in.Args) }

func (m *Machine) argument(at, i int, list [][]byte) Value {
	a := &m.args
	if a.bound&(1<<at) != 0 {
		return a.values[at]
	}
	if i >= len(list) {
		return value.Nil
	}
	a.bound |= 1 << at
	w := list[i]
	// A hot lock comes again and again with the same words.
	if old := a.values[at]; old.IsString() && old.AsString() == string(w) {
		return old
	}
	m.Mem += int64(32 + len(w))
	a.long = a.long || len(w) > maxKeptText
	a.values[at] = value.String(string(w))
	return a.values[at]
}

// forget drops those that are long.
func (a *arguments) forget() {
	a.bound = 0
	if a.long {
		clear(a.values[:])
		a.long = false
	}
}
