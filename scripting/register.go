package scripting

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// loading is a run of a library's body: what it has registered so far.
type loading struct {
	lib       *Library
	callbacks map[string]value.Value // by the name in lower case
	// fresh is set when the library is being made: then the functions are checked
	// and kept. Later runs of the same body register the same.
	fresh  bool
	bounds LibraryBounds
}

func newLoading(l *Library) *loading {
	return &loading{lib: l, callbacks: make(map[string]value.Value, len(l.Functions))}
}

// apiRegisterFunction is redis.register_function, of libraries that are loaded.
func apiRegisterFunction(L *lua.LState) int {
	r := runOf(L)
	if r.loading == nil {
		raiseReply(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	var problem string
	r.state.callNative(L, func(c *lib.Call) error {
		var reg lib.Registration
		if reg, problem = c.ReadRegistration(namedFlag); problem == "" {
			problem = r.loading.add(reg)
		}
		return nil
	})
	if problem != "" {
		raiseReply(L, problem)
	}
	return 0
}

func namedFlag(name string) uint8 { return uint8(flagNamed(name)) }

// add keeps a function. Otherwise it returns what is wrong. Names that differ in
// case alone are refused: FCALL could not tell them apart, and redis-server 7.0
// ends when it deletes such a library.
func (l *loading) add(r lib.Registration) string {
	if !validName(r.Name) {
		return errLibraryName.Error()[len("ERR "):]
	}
	key := foldName(r.Name)
	if _, ok := l.callbacks[key]; ok {
		return "Function already exists in the library"
	}
	if !l.fresh {
		l.callbacks[key] = r.Callback
		return ""
	}
	library := l.lib
	library.size += functionOverhead + len(r.Name) + len(r.Description)
	switch {
	case len(library.Functions) >= l.bounds.Functions:
		return fmt.Sprintf("a library may have %d functions (function-max-functions)", l.bounds.Functions)
	case int64(library.size) > l.bounds.Bytes:
		return fmt.Sprintf("the library takes more than %d bytes (function-max-bytes)", l.bounds.Bytes)
	}
	l.callbacks[key] = r.Callback
	library.Functions = append(library.Functions, &Function{
		Name: strings.Clone(r.Name), Description: strings.Clone(r.Description), // they may be parts of large strings
		Described: r.Described, Flags: Flags(r.Flags) | HasShebang, Library: library,
	})
	return ""
}
