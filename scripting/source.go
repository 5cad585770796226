package scripting

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// scriptChunk is what error messages call a script, as Redis 7.
const scriptChunk = "user_script"

// SHA1 is a script's name: 40 lower-case hexadecimal digits.
type SHA1 [40]byte

func (s SHA1) String() string { return string(s[:]) }

// SumSHA1 names a source.
func SumSHA1(src []byte) (name SHA1) {
	sum := sha1.Sum(src)
	hex.Encode(name[:], sum[:])
	return name
}

// ParseSHA1 reads a client's spelling of a name, in either case; ok is false
// when it cannot be one.
func ParseSHA1(b []byte) (name SHA1, ok bool) {
	if len(b) != len(name) {
		return name, false
	}
	for i, c := range b {
		if c-'A' < 26 {
			c |= 0x20
		}
		name[i] = c
	}
	return name, true
}

// Script is a compiled source. Any number of runs share it; nothing of it changes
// but what is remembered of how long it takes.
type Script struct {
	// SHA is the name of the source as the client sent it.
	SHA SHA1
	// Source is the client's source, first line included.
	Source string
	Flags  Flags

	command.Hint
	cached, used atomic.Bool // what the cache knows of it

	// library says that it is the body of a function library.
	library bool

	program atomic.Pointer[closure.Program] // for the second engine; nil when it does not cover the script
	why     string                          // it does not, or was switched off

	once  sync.Once   // makes the code that the engine of the time did not need
	both  atomic.Bool // it is made: a script that has a program has the machine's code too
	proto *lua.FunctionProto
	// argsEscape is set when the script could keep or change KEYS and ARGV as tables.
	argsEscape bool
	globals    globalUse
	straight   bool // see runStraight
}

// declared are the flags of a command that runs s; a nil script is one that it
// will not find.
func (s *Script) declared(of command.Flags) command.Flags {
	if s == nil {
		return of
	}
	return s.Flags.command(of)
}

// Compile checks and compiles a source; src is copied. It holds no lock and takes
// time and memory bounded by Options.MaxScriptBytes. The error's text is the
// reply, as Redis has it.
func (e *Engine) Compile(src []byte) (*Script, error) {
	if len(src) > int(e.maxSrc.Load()) {
		return nil, fmt.Errorf("ERR Error compiling script (new function): script is longer than %d bytes (lua-max-script-bytes)", e.maxSrc.Load())
	}
	s := &Script{SHA: SumSHA1(src), Source: string(src)}
	body, err := s.shebang()
	if err != nil {
		return nil, err
	}
	if err := e.compile(s, body); err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s", err)
	}
	return s, nil
}

// compile makes the code of s for one of the engines.
func (e *Engine) compile(s *Script, body string) error {
	tree, err := e.parseSource(body, s.chunk())
	if err != nil {
		return err
	}
	program, why := e.compileSecond(s, tree)
	if s.why = why; program == nil {
		return e.compileVM(s, tree)
	}
	s.program.Store(program)
	return nil
}

// chunk is what error messages call the source.
func (s *Script) chunk() string {
	if s.library {
		return functionChunk
	}
	return scriptChunk
}

// compileSource parses, rewrites and compiles one chunk for the virtual machine.
func (e *Engine) compileSource(src, chunk string) (proto *lua.FunctionProto, argsEscape bool, err error) {
	tree, err := e.parseSource(src, chunk)
	if err != nil {
		return nil, false, err
	}
	return e.compileTree(tree, chunk, false)
}

// compileVM compiles the tree of s for the virtual machine.
func (e *Engine) compileVM(s *Script, tree chunkTree) (err error) {
	s.proto, s.argsEscape, err = e.compileTree(tree, s.chunk(), !s.library)
	if err == nil {
		s.globals.look(s.proto)
		s.straight = straight(s.proto)
		s.ownWords()
	}
	return err
}

func (e *Engine) parseSource(src, chunk string) (chunkTree, error) {
	if len(src) > int(e.maxSrc.Load()) {
		return chunkTree{}, fmt.Errorf("%s:1: chunk is too long", chunk)
	}
	return parseChunk(src, chunk)
}

// compileTree rewrites and compiles a tree, which it changes. script is as in lowering.
func (e *Engine) compileTree(tree chunkTree, chunk string, script bool) (proto *lua.FunctionProto, argsEscape bool, err error) {
	tooMuch := fmt.Errorf("%s:1: %s", chunk, tooComplex)
	if tree.work > maxCompileWork {
		return nil, false, tooMuch
	}
	lo := &lowering{kinds: tree.kinds, consts: tree.consts, token: e.token, script: script}
	lo.fn.consts = tree.consts[nil]
	lo.stmts(tree.stmts)
	lo.plan()
	if lo.work > maxCompileWork {
		return nil, false, tooMuch
	}
	size := codeSize{kinds: tree.kinds}
	if err := size.check(tree.stmts, chunk); err != nil {
		return nil, false, err
	}
	proto, err = lua.Compile(tree.stmts, chunk)
	if err != nil {
		line := 1
		if ce, ok := err.(*lua.CompileError); ok {
			line = max(ce.Line, 1)
		}
		return nil, false, fmt.Errorf("%s:%d: function or expression too complex", chunk, line)
	}
	if err := size.compiled(proto); err != nil {
		return nil, false, err
	}
	mendConstructors(proto)
	// gopher-lua would build a table "arg" at every start.
	proto.IsVarArg = lua.VarArgIsVarArg
	sites := make([]*lua.LFunction, len(lo.sites))
	for i, fn := range lo.sites {
		sites[i] = &lua.LFunction{IsG: true, GFunction: fn}
	}
	if err := e.link(proto, sites); err != nil {
		return nil, false, fmt.Errorf("%s:%d: %s", chunk, 1, err)
	}
	return proto, lo.argsEscape, nil
}

// link puts the host functions in the place of their stand-in constants.
func (e *Engine) link(proto *lua.FunctionProto, sites []*lua.LFunction) error {
	for i, c := range proto.Constants {
		s, ok := c.(lua.LString)
		if !ok || !strings.HasPrefix(string(s), e.token) {
			continue
		}
		n, err := strconv.Atoi(string(s[len(e.token):]))
		if err != nil || n >= len(sites) {
			return fmt.Errorf("unknown constant")
		}
		proto.Constants[i] = sites[n]
	}
	for _, p := range proto.FunctionPrototypes {
		if err := e.link(p, sites); err != nil {
			return err
		}
	}
	return nil
}

// newToken makes the prefix of stand-in constants, which no client can guess.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return "\x00host:" + hex.EncodeToString(b[:]) + ":"
}
