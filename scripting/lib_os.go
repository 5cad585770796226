package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// osLibrary has the one function that newer versions of Redis leave of it.
var osLibrary = library{name: "os", functions: map[string]lua.LGFunction{
	"clock": osClock,
}}

// osClock is the time in seconds since the engine was made.
func osClock(L *lua.LState) int {
	e := runOf(L).engine
	L.Push(lua.LNumber(e.opts.Now().Sub(e.born).Seconds()))
	return 1
}
