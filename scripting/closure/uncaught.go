package closure

import (
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// unknownError is the text of an uncaught error without one, at which Redis 7.0 crashes.
const unknownError = "ERR unknown error"

// uncaught is the error that a table with a metatable makes, or a read-only one, when
// nobody catches it. Redis's handler stores in it where it was raised, and Redis reads that and
// the text from it: all by way of the metamethods. What one of them raises at the first takes
// the table's place.
func (m *Machine) uncaught(e *raised, t *Table) error {
	if t.ReadOnly {
		return &Error{Text: "ERR err_handler_def:10: " + readOnlyTable, Source: "@err_handler_def", Line: "10"}
	}
	m.depth, m.native, m.weight, m.stack = 0, 0, 0, m.stack[:0]
	field := func(name string) Value { return m.index(0, operand{}, e.v, value.String(name)) }
	var reply, source, line Value
	told := false
	failed := m.try(func() {
		m.setIndex(0, operand{}, e.v, value.String("source"), value.String(e.source))
		m.setIndex(0, operand{}, e.v, value.String("line"), value.Int(e.line))
	})
	if failed != nil && failed.v.IsTable() && failed.v.AsTable().Meta != nil {
		failed.v = value.FromTable(value.NewTable(0, 0)) // once is enough
	}
	if failed == nil {
		failed = m.try(func() {
			reply, source, line, told = field("err"), field("source"), field("line"), field(toldField).Truthy()
		})
		if failed != nil {
			failed.v = value.FromTable(value.NewTable(0, 0)) // Redis 7.0 crashes
		}
	}
	switch {
	case m.Stop != nil:
		return m.Stop
	case failed != nil:
		return m.failure(failed)
	}
	err := &Error{Text: unknownError, Told: told}
	if s, ok := textOf(reply); ok {
		err.Text = text.CString(s)
	}
	at, ok1 := textOf(source)
	of, ok2 := textOf(line)
	if ok1 && ok2 {
		err.Source, err.Line = at, of
	}
	return err
}

// try calls f and recovers what it raises. When the account is closed it is nil, too.
func (m *Machine) try(f func()) (e *raised) {
	defer func() {
		if p := recover(); p != nil && m.Stop == nil {
			e, _ = p.(*raised)
			if e == nil {
				panic(p)
			}
		}
	}()
	f()
	return nil
}
