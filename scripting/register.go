package scripting

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// loading is a run of a library's body: what it has registered so far.
type loading struct {
	lib       *Library
	callbacks map[string]*lua.LFunction // by the name in lower case
	// fresh is set when the library is being made: then the functions are checked
	// and kept. Later runs of the same body register the same.
	fresh  bool
	bounds LibraryBounds
}

// apiRegisterFunction is redis.register_function, of libraries that are loaded.
func apiRegisterFunction(L *lua.LState) int {
	r := runOf(L)
	if r.loading == nil {
		raiseReply(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	f := &Function{}
	var callback *lua.LFunction
	switch L.GetTop() {
	case 1:
		callback = namedArguments(L, f)
	case 2:
		callback = positionalArguments(L, f)
	default:
		raiseReply(L, "wrong number of arguments to redis.register_function")
	}
	if problem := r.loading.add(f, callback); problem != "" {
		raiseReply(L, problem)
	}
	return 0
}

func positionalArguments(L *lua.LState, f *Function) *lua.LFunction {
	name, ok := textOf(L.Get(1))
	if !ok {
		raiseReply(L, "first argument to redis.register_function must be a string")
	}
	callback, ok := L.Get(2).(*lua.LFunction)
	if !ok {
		raiseReply(L, "second argument to redis.register_function must be a function")
	}
	f.Name = name
	return callback
}

func namedArguments(L *lua.LState, f *Function) (callback *lua.LFunction) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		raiseReply(L, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).")
	}
	named := false
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		runOf(L).pay(L, 1)
		word, ok := textOf(key)
		if !ok {
			raiseReply(L, "named argument key given to redis.register_function is not a string")
		}
		switch strings.ToLower(word) {
		case "function_name":
			if f.Name, named = textOf(v); !named {
				raiseReply(L, "function_name argument given to redis.register_function must be a string")
			}
		case "description":
			if f.Description, f.Described = textOf(v); !f.Described {
				raiseReply(L, "description argument given to redis.register_function must be a string")
			}
		case "callback":
			if callback, ok = v.(*lua.LFunction); !ok {
				raiseReply(L, "callback argument given to redis.register_function must be a function")
			}
		case "flags":
			list, ok := v.(*lua.LTable)
			if !ok {
				raiseReply(L, "flags argument to redis.register_function must be a table representing function flags")
			}
			f.Flags = registeredFlags(L, list)
		default:
			raiseReply(L, "unknown argument given to redis.register_function")
		}
	}
	if !named {
		raiseReply(L, "redis.register_function must get a function name argument")
	}
	if callback == nil {
		raiseReply(L, "redis.register_function must get a callback argument")
	}
	return callback
}

func registeredFlags(L *lua.LState, list *lua.LTable) (flags Flags) {
	for i := 1; ; i++ {
		runOf(L).pay(L, 1)
		v := list.RawGetInt(i)
		if v == lua.LNil {
			return flags
		}
		name, _ := textOf(v)
		flag := flagNamed(strings.ToLower(name))
		if flag == 0 {
			raiseReply(L, "unknown flag given")
		}
		flags |= flag
	}
}

// add keeps a function. Otherwise it returns what is wrong. Names that differ in
// case alone are refused: FCALL could not tell them apart, and redis-server 7.0
// ends when it deletes such a library.
func (l *loading) add(f *Function, callback *lua.LFunction) string {
	if !validName(f.Name) {
		return errLibraryName.Error()[len("ERR "):]
	}
	key := foldName(f.Name)
	if l.callbacks[key] != nil {
		return "Function already exists in the library"
	}
	if !l.fresh {
		l.callbacks[key] = callback
		return ""
	}
	lib := l.lib
	lib.size += functionOverhead + len(f.Name) + len(f.Description)
	switch {
	case len(lib.Functions) >= l.bounds.Functions:
		return fmt.Sprintf("a library may have %d functions (function-max-functions)", l.bounds.Functions)
	case int64(lib.size) > l.bounds.Bytes:
		return fmt.Sprintf("the library takes more than %d bytes (function-max-bytes)", l.bounds.Bytes)
	}
	l.callbacks[key] = callback
	f.Name = strings.Clone(f.Name) // they may be parts of large strings
	f.Description = strings.Clone(f.Description)
	f.Flags |= HasShebang
	f.Library = lib
	lib.Functions = append(lib.Functions, f)
	return ""
}
