package scripting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// functionChunk is what error messages call a library, as Redis 7.
const functionChunk = "user_function"

// engineName is what FUNCTION LIST and FUNCTION STATS call the engine of Lua.
const engineName = "LUA"

// Library is a loaded library: its source, the functions that its body has
// registered, and what an engine needs to run them. It never changes, and any
// number of runs share it.
//
// A call of a function sees the library as its body left it. What a call does to
// the library's local variables and tables no other call sees, because there is
// nothing that could keep it: on a state without the library, and wherever a call
// could have changed anything, the body runs anew. Body is all that an engine
// needs for that; what it makes of it, it keeps for itself, by library.
type Library struct {
	Name string
	// Source is the source as the client sent it, first line included.
	Source string
	// Functions are in the order in which the body has registered them.
	Functions []*Function
	// Body is the compiled source. It registers the functions.
	Body *Script

	// frozen says that no call can change what the body has made, so that the next
	// call on the same state may have it too.
	frozen bool
	// plainArgs says that the functions only read the tables of their keys and
	// arguments, so that the next call may have the same tables.
	plainArgs bool
	size      int
}

// Function is one function of a library.
type Function struct {
	Name string
	// Description is the author's; Described says that there is one.
	Description string
	Described   bool
	Flags       Flags
	Library     *Library
	key         string // the name in lower case

	command.Hint
}

const (
	// libraryOverhead and functionOverhead are what a library and a function of it
	// take beside their source, code and texts.
	libraryOverhead  = scriptOverhead
	functionOverhead = 256
)

// Size is about how many bytes the library takes, code included.
func (l *Library) Size() int { return l.size }

var errLibraryName = errors.New("ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")

// validName tells whether a library or a function may be called so.
func validName(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isDigit(c) && c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != ""
}

// libraryHead reads a library's first line, #!lua name=NAME, and returns its name
// and what is to be compiled: the line goes, its line break stays. The error's
// text is the reply, as Redis has it.
func libraryHead(src string) (name, body string, err error) {
	if !strings.HasPrefix(src, "#!") {
		return "", "", errors.New("ERR Missing library metadata")
	}
	end := firstLine(src)
	if end < 0 {
		return "", "", errors.New("ERR Invalid library metadata")
	}
	words, ok := splitWords(src[:end])
	if !ok {
		return "", "", errors.New("ERR Invalid library metadata")
	}
	named := false
	for _, word := range words[1:] {
		const key = "name="
		if len(word) < len(key) || !strings.EqualFold(word[:len(key)], key) {
			return "", "", fmt.Errorf("ERR Invalid metadata value given: %s", word)
		}
		if named {
			return "", "", errors.New("ERR Invalid metadata value, name argument was given multiple times")
		}
		name, named = word[len(key):], true
	}
	switch engine := words[0][len("#!"):]; {
	case !named:
		return "", "", errors.New("ERR Library name was not given")
	case !validName(name):
		return "", "", errLibraryName
	case strings.EqualFold(engine, "wasm"):
		return "", "", errWASMEngine
	case !strings.EqualFold(engine, engineName):
		return "", "", fmt.Errorf("ERR Engine '%s' not found", engine)
	}
	return name, src[end:], nil
}

// NewLibrary compiles a library and runs its body, which registers the functions;
// src is copied. inv bounds that, and has neither keys nor a Caller: a body has of
// the redis table only what registers functions, log, and the constants. The
// error's text is the reply, as Redis has it, unless it is one of LongRunning's or
// Gone.
func (e *Engine) NewLibrary(src []byte, inv *Invocation, bounds LibraryBounds) (*Library, error) {
	source := string(src)
	name, body, err := libraryHead(source)
	if err != nil {
		return nil, err
	}
	if limit := e.maxSrc.Load(); len(src) > int(limit) {
		return nil, fmt.Errorf("ERR Error compiling function: the library is longer than %d bytes (lua-max-script-bytes)", limit)
	}
	script := &Script{SHA: SumSHA1(src), Source: source, Flags: HasShebang, library: true}
	if err := e.compile(script, body); err != nil {
		return nil, fmt.Errorf("ERR Error compiling function: %s", err)
	}
	lib := &Library{Name: name, Source: source, Body: script}
	lib.size = libraryOverhead + len(source)*(1+codeFactor)
	ld := newLoading(lib)
	ld.fresh, ld.bounds = true, bounds
	if err := e.register(ld, inv); err != nil {
		return nil, err
	}
	if len(lib.Functions) == 0 {
		return nil, errors.New("ERR No functions registered")
	}
	lib.frozen, lib.plainArgs = analyse(body)
	for _, f := range lib.Functions {
		f.key = foldName(f.Name)
	}
	return lib, nil
}

// LibraryBounds is what the function libraries may take. The zero value has the
// defaults.
type LibraryBounds struct {
	Libraries int   // how many there may be; default 1024
	Functions int   // how many one may have; default 1024
	Bytes     int64 // of sources, texts and, estimated, code, of all together; default 64 MiB
}

func (b *LibraryBounds) setDefaults() {
	if b.Libraries == 0 {
		b.Libraries = 1024
	}
	if b.Functions == 0 {
		b.Functions = 1024
	}
	if b.Bytes == 0 {
		b.Bytes = 64 << 20
	}
}
