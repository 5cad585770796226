package closure

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

var stringLibrary = map[string]Native{
	"byte": strByte, "char": strChar, "dump": strDump, "find": strFind, "format": strFormat, "gmatch": strGmatch,
	"gsub": strGsub, "len": strLen, "lower": strLower, "match": strMatch, "rep": strRep, "reverse": strReverse,
	"sub": strSub, "upper": strUpper,
}

func strByte(m *Machine, args []Value) []Value {
	s := m.checkString(args, 1)
	i := text.Position(m.optIndex(args, 2, 1), len(s))
	j := min(text.Position(m.optIndex(args, 3, i), len(s)), len(s))
	i = max(i, 1)
	if i > j {
		return nil
	}
	if j-i+1 >= maxResults {
		m.raise(1, "string slice too long")
	}
	m.pay((j - i) >> 3)
	m.rets = m.rets[:0]
	for _, c := range []byte(s[i-1 : j]) {
		m.rets = append(m.rets, value.Int(int(c)))
	}
	return m.rets
}

func strChar(m *Machine, args []Value) []Value {
	m.alloc(len(args))
	b := make([]byte, len(args))
	for i := range b {
		c := m.checkInt(args, i+1)
		if c < 0 || c > 255 {
			m.argError(i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return m.ret1(value.Bytes(b))
}

func strDump(m *Machine, args []Value) []Value {
	if functionOf(m.checkFunction(args, 1)).native != nil {
		m.raise(1, "unable to dump given function")
	}
	return m.ret1(value.String(text.Dumped))
}

func strLen(m *Machine, args []Value) []Value {
	return m.ret1(value.Int(len(m.checkString(args, 1))))
}

// mapped makes a string of the same length, byte by byte.
func (m *Machine) mapped(args []Value, f func(dst []byte, src string)) []Value {
	s := m.checkString(args, 1)
	m.alloc(len(s))
	m.pay(len(s) >> 6)
	b := make([]byte, len(s))
	f(b, s)
	return m.ret1(value.Bytes(b))
}

func strLower(m *Machine, args []Value) []Value { return m.mapped(args, text.Lower) }

func strUpper(m *Machine, args []Value) []Value { return m.mapped(args, text.Upper) }

func strReverse(m *Machine, args []Value) []Value { return m.mapped(args, text.Reverse) }

func strRep(m *Machine, args []Value) []Value {
	s := m.checkString(args, 1)
	n := m.checkInt(args, 2)
	if n <= 0 || s == "" {
		return m.ret1(value.String(""))
	}
	if limit := m.MemoryLimit() / int64(len(s)); int64(n) > limit {
		n = int(limit) + 1 // more than alloc grants
	}
	m.alloc(n * len(s))
	return m.ret1(value.String(strings.Repeat(s, n)))
}

func strSub(m *Machine, args []Value) []Value {
	s := m.checkString(args, 1)
	i := max(text.Position(m.checkIndex(args, 2), len(s)), 1)
	j := min(text.Position(m.optIndex(args, 3, -1), len(s)), len(s))
	if i > j {
		return m.ret1(value.String(""))
	}
	return m.ret1(value.String(s[i-1 : j]))
}

func strFind(m *Machine, args []Value) []Value { return m.findPattern(args, true) }

func strMatch(m *Machine, args []Value) []Value { return m.findPattern(args, false) }

func (m *Machine) matcher(s, pat string) *text.Matcher {
	return &text.Matcher{Failer: m, Account: &m.Account, Src: s, Pat: pat}
}

// search is the machine's own matcher, for searches that call nobody back.
func (m *Machine) search(s, pat string) *text.Matcher {
	mt := &m.finder
	mt.Renew(s, pat)
	return mt
}

func (m *Machine) findPattern(args []Value, indices bool) []Value {
	s, pat := m.checkString(args, 1), m.checkString(args, 2)
	init := min(max(text.Position(m.optIndex(args, 3, 1), len(s))-1, 0), len(s))
	if indices && (arg(args, 4).Truthy() || text.Plain(pat)) {
		m.pay((len(s) - init + len(pat)) >> 6)
		i := strings.Index(s[init:], pat)
		if i < 0 {
			return m.ret1(value.Nil)
		}
		return m.ret2(value.Int(init+i+1), value.Int(init+i+len(pat)))
	}
	mt := m.search(s, pat)
	at, e, ok := mt.Find(init)
	if !ok {
		return m.ret1(value.Nil)
	}
	m.rets = m.rets[:0]
	if indices {
		m.rets = append(m.rets, value.Int(at+1), value.Int(e))
		if mt.Level == 0 {
			return m.rets
		}
	}
	return m.captures(mt, at, e)
}

// captures appends all captures, or the whole match, to rets.
func (m *Machine) captures(mt *text.Matcher, s, e int) []Value {
	for i := range mt.Captures() {
		m.rets = append(m.rets, m.capture(mt, i, s, e))
	}
	return m.rets
}

func (m *Machine) capture(mt *text.Matcher, i, s, e int) Value {
	c := mt.Capture(i, s, e)
	if c.Position > 0 {
		return value.Int(c.Position)
	}
	m.Mem += 16
	return value.String(c.Text)
}

func strGmatch(m *Machine, args []Value) []Value {
	s, pat := m.checkString(args, 1), m.checkString(args, 2)
	m.Mem += 128
	at := 0
	return m.ret1(native(func(m *Machine, _ []Value) []Value {
		mt := m.search(s, pat)
		begin, e, next, ok := mt.Next(at)
		at = next
		if !ok {
			return nil
		}
		m.rets = m.rets[:0]
		return m.captures(mt, begin, e)
	}))
}

func strGsub(m *Machine, args []Value) []Value {
	s, pat := m.checkString(args, 1), m.checkString(args, 2)
	repl := arg(args, 3)
	switch repl.Kind() {
	case value.KindString, value.KindTable, value.KindFunction:
	case value.KindNumber:
		repl = value.String(numeral.Text(repl.AsNumber()))
	default:
		m.argError(3, "string/function/table expected")
	}
	limit := m.optInt(args, 4, len(s)+1)
	mt := m.matcher(s, pat)
	b, n := mt.Substitute(limit, func(at, e int, grow func(string)) { m.replacement(mt, repl, at, e, grow) })
	if n == 0 {
		return m.ret2(value.String(s), value.Number(0))
	}
	return m.ret2(value.Bytes(b), value.Int(n))
}

// replacement hands what stands for the match Src[s:e] to grow.
func (m *Machine) replacement(mt *text.Matcher, repl Value, s, e int, grow func(string)) {
	var v Value
	switch repl.Kind() {
	case value.KindString:
		mt.Replace(repl.AsString(), s, e, grow)
		return
	case value.KindTable:
		v = m.index(0, operand{}, repl, m.capture(mt, 0, s, e))
	default:
		m.rets = m.rets[:0]
		v = m.back1(repl, true, m.captures(mt, s, e)...)
	}
	if !v.Truthy() {
		grow(mt.Src[s:e])
		return
	}
	piece, ok := textOf(v)
	if !ok {
		m.raise(1, "invalid replacement value (a "+typeName(v)+")")
	}
	grow(piece)
}

func strFormat(m *Machine, args []Value) []Value {
	m.format.args = args
	out := text.Format(m.checkString(args, 1), &m.format)
	m.format.args = nil
	return m.ret1(value.String(out))
}

// formatArguments are those of a call of string.format, which calls nobody back.
type formatArguments struct {
	m    *Machine
	args []Value
}

func (a *formatArguments) Want(n int) {
	if n > len(a.args) {
		a.m.argError(n, "no value")
	}
}

func (a *formatArguments) Number(n int) float64 { return a.m.checkNumber(a.args, n) }
func (a *formatArguments) String(n int) string  { return a.m.checkString(a.args, n) }
func (a *formatArguments) Alloc(n int)          { a.m.alloc(n) }
func (a *formatArguments) Fail(msg string)      { a.m.raise(1, msg) }
