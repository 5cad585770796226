package closure

import (
	"math"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

var mathValues = map[string]Value{"huge": value.Number(math.Inf(1)), "pi": value.Number(math.Pi)}

func mathLibrary() map[string]Native {
	all := map[string]Native{
		"frexp": mathFrexp, "ldexp": mathLdexp, "max": mathMax, "min": mathMin, "modf": mathModf,
		"random": mathRandom, "randomseed": mathRandomSeed,
	}
	for name, f := range arith.Unary {
		all[name] = func(m *Machine, args []Value) []Value {
			return m.ret1(value.Number(f(m.checkNumber(args, 1))))
		}
	}
	for name, f := range arith.Binary {
		all[name] = func(m *Machine, args []Value) []Value {
			y := m.checkNumber(args, 2) // looked at first, as by C's compiler
			return m.ret1(value.Number(f(m.checkNumber(args, 1), y)))
		}
	}
	return all
}

func mathFrexp(m *Machine, args []Value) []Value {
	f, e := math.Frexp(m.checkNumber(args, 1))
	return m.ret2(value.Number(f), value.Int(e))
}

func mathLdexp(m *Machine, args []Value) []Value {
	e := m.checkInt(args, 2)
	return m.ret1(value.Number(math.Ldexp(m.checkNumber(args, 1), e)))
}

func mathModf(m *Machine, args []Value) []Value {
	whole, frac := arith.Modf(m.checkNumber(args, 1))
	return m.ret2(value.Number(whole), value.Number(frac))
}

func mathMax(m *Machine, args []Value) []Value {
	most := m.checkNumber(args, 1)
	for i := 2; i <= len(args); i++ {
		if v := m.checkNumber(args, i); v > most {
			most = v
		}
	}
	return m.ret1(value.Number(most))
}

func mathMin(m *Machine, args []Value) []Value {
	least := m.checkNumber(args, 1)
	for i := 2; i <= len(args); i++ {
		if v := m.checkNumber(args, i); v < least {
			least = v
		}
	}
	return m.ret1(value.Number(least))
}

func mathRandom(m *Machine, args []Value) []Value {
	f := m.random.Float()
	switch len(args) {
	case 0:
		return m.ret1(value.Number(f))
	case 1:
		u := m.checkInt(args, 1)
		if u < 1 {
			m.argError(1, "interval is empty")
		}
		return m.ret1(value.Number(arith.Between(f, 1, u)))
	case 2:
		l, u := m.checkInt(args, 1), m.checkInt(args, 2)
		if l > u {
			m.argError(2, "interval is empty")
		}
		return m.ret1(value.Number(arith.Between(f, l, u)))
	}
	m.raise(1, "wrong number of arguments")
	return nil
}

func mathRandomSeed(m *Machine, args []Value) []Value {
	m.random.Seed(m.checkInt(args, 1))
	return nil
}

var osLibrary = map[string]Native{"clock": osClock}

// osClock is the time in seconds since the engine was made.
func osClock(m *Machine, _ []Value) []Value { return m.ret1(value.Number(m.world.opts.Clock())) }
