package lib

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Registration is what a function library asks for with redis.register_function.
type Registration struct {
	Name        string
	Description string
	// Described says that there is a description.
	Described bool
	// Flags are those that the engine's names stand for.
	Flags uint8
	// Callback is a function, the engine's own.
	Callback value.Value
}

// ReadRegistration reads the arguments of redis.register_function: a name and a
// callback, or one table that names them. flag is the flag of a name in lower case,
// 0 if there is none. Otherwise problem is the text of the error, as Redis 7 has it.
func (c *Call) ReadRegistration(flag func(name string) uint8) (r Registration, problem string) {
	switch len(c.Args) {
	case 1:
		if c.Args[0].IsTable() {
			return c.namedRegistration(c.Args[0].AsTable(), flag)
		}
		return r, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	case 2:
		var ok bool
		if r.Name, ok = textOf(c.Args[0]); !ok {
			return r, "first argument to redis.register_function must be a string"
		}
		if r.Callback = c.Args[1]; !r.Callback.IsFunction() {
			return r, "second argument to redis.register_function must be a function"
		}
		return r, ""
	}
	return r, "wrong number of arguments to redis.register_function"
}

func (c *Call) namedRegistration(t *value.Table, flag func(name string) uint8) (r Registration, problem string) {
	named := false
	for at, k, v := t.NextAt(0); !k.IsNil(); at, k, v = t.NextAt(at) {
		c.pay(1)
		word, ok := textOf(k)
		if !ok {
			return r, "named argument key given to redis.register_function is not a string"
		}
		switch strings.ToLower(text.CString(word)) {
		case "function_name":
			if r.Name, named = textOf(v); !named {
				return r, "function_name argument given to redis.register_function must be a string"
			}
		case "description":
			if r.Description, r.Described = textOf(v); !r.Described {
				return r, "description argument given to redis.register_function must be a string"
			}
		case "callback":
			if r.Callback = v; !v.IsFunction() {
				return r, "callback argument given to redis.register_function must be a function"
			}
		case "flags":
			if !v.IsTable() {
				return r, "flags argument to redis.register_function must be a table representing function flags"
			}
			if r.Flags, ok = c.flags(v.AsTable(), flag); !ok {
				return r, "unknown flag given"
			}
		default:
			return r, "unknown argument given to redis.register_function"
		}
	}
	switch {
	case !named:
		return r, "redis.register_function must get a function name argument"
	case r.Callback.IsNil():
		return r, "redis.register_function must get a callback argument"
	}
	return r, ""
}

// flags reads a list of flags' names.
func (c *Call) flags(list *value.Table, flag func(name string) uint8) (flags uint8, ok bool) {
	for i := 1; ; i++ {
		c.pay(1)
		v := list.GetInt(i)
		if v.IsNil() {
			return flags, true
		}
		name, _ := textOf(v)
		f := flag(strings.ToLower(text.CString(name)))
		if f == 0 {
			return 0, false
		}
		flags |= f
	}
}

// textOf is the text of a string or a number.
func textOf(v value.Value) (string, bool) {
	switch v.Kind() {
	case value.KindString:
		return v.AsString(), true
	case value.KindNumber:
		return numeral.Text(v.AsNumber()), true
	}
	return "", false
}
