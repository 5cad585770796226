package lib

import "github.com/latchkey-proxy/latchkey/scripting/value"

// Library is one table of functions and constants.
type Library struct {
	Name   string
	Funcs  map[string]Func
	Texts  map[string]string
	Values map[string]value.Value
}

// Libraries are those that have no settings; cjson is made by [CJSON].
var Libraries = []Library{bitLibrary, msgpackLibrary, structLibrary}
