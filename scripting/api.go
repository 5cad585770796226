package scripting

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// The constants of the redis table.
const (
	logDebug, logVerbose, logNotice, logWarning = 0, 1, 2, 3
	replAOF, replReplica                        = 1, 2
	replAll                                     = replAOF | replReplica
)

// redisAPI is the table "redis".
func (st *state) redisAPI(e *Engine) *lua.LTable {
	t := st.L.NewTable()
	for name, fn := range map[string]lua.LGFunction{
		"acl_check_cmd":      apiACLCheck,
		"breakpoint":         apiFalse,
		"call":               apiCall,
		"debug":              apiNothing,
		"error_reply":        apiErrorReply,
		"fence":              apiFence,
		"log":                apiLog,
		"pcall":              apiPCall,
		"replicate_commands": apiTrue,
		"set_repl":           apiSetRepl,
		"setresp":            apiSetResp,
		"sha1hex":            apiSHA1,
		"status_reply":       apiStatusReply,
	} {
		t.RawSetString(name, st.L.NewFunction(fn))
	}
	for name, v := range map[string]int{
		"LOG_DEBUG": logDebug, "LOG_VERBOSE": logVerbose, "LOG_NOTICE": logNotice, "LOG_WARNING": logWarning,
		"REPL_NONE": 0, "REPL_AOF": replAOF, "REPL_SLAVE": replReplica, "REPL_REPLICA": replReplica, "REPL_ALL": replAll,
		"REDIS_VERSION_NUM": e.version,
	} {
		t.RawSetString(name, number(float64(v)))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(e.opts.Version))
	return t
}

// argBuffer holds the words of one redis.call: views of the script's strings, of the
// client's words, and of text that lives until the next call. The commands only read
// them.
type argBuffer struct {
	argv [][]byte
	text []byte // of numbers
	size int
	most int // of argv that was used since forget
}

const (
	// maxKeptArgs bounds the buffer a state keeps between calls.
	maxKeptArgs = 64 << 10
	// callCost is what one redis.call pays at least, in instructions.
	callCost = 32
)

func (a *argBuffer) begin() {
	a.most = max(a.most, len(a.argv))
	a.argv, a.text, a.size = a.argv[:0], a.text[:0], 0
}

func (a *argBuffer) append(b []byte) {
	a.argv = append(a.argv, b)
	a.size += len(b)
}

// add appends a value; false says that it cannot be a word.
func (a *argBuffer) add(v lua.LValue) bool {
	switch v := v.(type) {
	case lua.LString:
		a.append(value.String(string(v)).AsBytes())
	case lua.LNumber:
		begin := len(a.text)
		a.text = appendArgument(a.text, float64(v))
		a.append(a.text[begin:len(a.text):len(a.text)])
	default:
		return false
	}
	return true
}

const (
	noArguments    = "Please specify at least one argument for this redis lib call"
	wrongArguments = "Lua redis lib command arguments must be strings or integers"
)

// arguments gathers the command's words, in memory that lives until the next call.
func (a *argBuffer) arguments(L *lua.LState) (argv [][]byte, problem string) {
	n := L.GetTop()
	if n == 0 {
		return nil, noArguments
	}
	a.begin()
	for i := 1; i <= n; i++ {
		if !a.add(L.Get(i)) {
			return nil, wrongArguments
		}
	}
	return a.argv, ""
}

func (a *argBuffer) done() {
	if cap(a.text) > maxKeptArgs {
		a.text = nil
	}
	if cap(a.argv) > maxKeptArgs/64 {
		a.argv, a.most = nil, 0
	}
}

// forget drops what the commands of a run were called with.
func (a *argBuffer) forget() {
	clear(a.argv[:max(a.most, len(a.argv))])
	a.argv, a.most = a.argv[:0], 0
}

// apiCall is redis.call: an error reply is raised as its table.
func apiCall(L *lua.LState) int {
	v, failed := callCommand(L)
	if failed {
		L.Error(v, 0)
	}
	L.Push(v)
	return 1
}

// apiPCall is redis.pcall: an error reply is returned as its table.
func apiPCall(L *lua.LState) int {
	v, _ := callCommand(L)
	L.Push(v)
	return 1
}

func callCommand(L *lua.LState) (v lua.LValue, failed bool) {
	r := runOf(L)
	r.pay(L, callCost)
	argv, problem := r.state.args.arguments(L)
	return r.command(L, argv, problem, nil)
}

// command runs a command of the script's, unless there is a problem with its words.
// at is the place if it names the command, or nil.
func (r *run) command(L *lua.LState, argv [][]byte, problem string, at *closure.Place) (v lua.LValue, failed bool) {
	st := r.state
	lr := &st.reply
	lr.run, lr.L = r, L
	if problem != "" {
		t := L.CreateTable(0, 1)
		t.RawSetString("err", lua.LString("ERR "+problem))
		return t, true
	}
	if size := st.args.size; size > 256 {
		r.alloc(L, size)
	}
	var err error
	if at != nil && r.inv.placer != nil {
		err = r.inv.placer.CallAt(at, argv, lr)
	} else {
		err = r.inv.Caller.Call(argv, lr)
	}
	st.args.done()
	if err != nil {
		lr.Rewind(0)
		r.Stop = err
		r.abort(L)
	}
	v, failed = lr.take()
	if r.Due() {
		r.pay(L, 1)
		r.alloc(L, 0)
	}
	return v, failed
}

func replyTable(L *lua.LState, field, text string) int {
	t := L.CreateTable(0, 1)
	t.RawSetString(field, lua.LString(text))
	L.Push(t)
	return 1
}

const wrongReplyArgs = "wrong number or type of arguments"

// apiErrorReply makes an error table; a text without a code gets ERR, as in Redis 7.
func apiErrorReply(L *lua.LState) int {
	s, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		return replyTable(L, "err", "ERR "+wrongReplyArgs)
	}
	text, _, _ := strings.Cut(string(s), "\x00") // as C ends it
	code, msg, ok := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	if !ok {
		code, msg = "ERR", code
	}
	return replyTable(L, "err", code+" "+strings.Trim(msg, "\r\n"))
}

func apiStatusReply(L *lua.LState) int {
	s, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		return replyTable(L, "err", "ERR "+wrongReplyArgs)
	}
	return replyTable(L, "ok", string(s))
}

// raiseReply raises an error as redis.call does, without a position.
func raiseReply(L *lua.LState, text string) {
	t := L.CreateTable(0, 2)
	t.RawSetString("err", lua.LString("ERR "+text))
	L.Error(t, 0)
}

func apiSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "wrong number of arguments")
	}
	s, _ := textOf(L.Get(1))
	runOf(L).pay(L, len(s)>>3)
	return pushString(L, SumSHA1([]byte(s)).String())
}

func apiLog(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		raiseReply(L, "redis.log() requires two arguments or more.")
	}
	f, ok := toNumber(L.Get(1))
	if !ok {
		raiseReply(L, "First argument must be a number (log level).")
	}
	level := truncate(f)
	if level < logDebug || level > logWarning {
		raiseReply(L, "Invalid debug level.")
	}
	r := runOf(L)
	at := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}[level]
	if !r.engine.logs(at) || r.loading != nil && !r.loading.fresh { // FUNCTION LOAD has logged it
		return 0
	}
	msg := ""
	for i := 2; i <= n; i++ {
		s, _ := textOf(L.Get(i))
		if i > 2 {
			s = " " + s
		}
		msg += s
	}
	const maxLog = 1024 // as Redis cuts a line
	msg = msg[:min(len(msg), maxLog)]
	if r.inv.Log != nil {
		r.inv.Log(at, msg)
	} else {
		r.engine.log(r.name(), at, msg)
	}
	return 0
}

// logs tells whether anybody wants to know of a line at that level.
func (e *Engine) logs(at slog.Level) bool {
	return e.opts.Logger != nil && e.opts.Logger.Enabled(context.Background(), at)
}

// log writes a line of redis.log.
func (e *Engine) log(name string, at slog.Level, text string) {
	e.opts.Logger.Log(context.Background(), at, "script log", "script", name, "text", text)
}

func apiSetResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "redis.setresp() requires one argument.")
	}
	f, _ := toNumber(L.Get(1))
	switch v := truncate(f); v {
	case 2, 3:
		runOf(L).resp = int(v)
	default:
		raiseReply(L, "RESP version must be 2 or 3.")
	}
	return 0
}

// apiSetRepl checks its argument and does nothing: effects are logged, whatever
// the script wants.
func apiSetRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		raiseReply(L, "redis.set_repl() requires two arguments.")
	}
	f, _ := toNumber(L.Get(1))
	if flags := truncate(f); flags&^replAll != 0 {
		raiseReply(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

func apiACLCheck(L *lua.LState) int {
	r := runOf(L)
	argv, problem := r.state.args.arguments(L)
	if problem != "" {
		raiseReply(L, problem)
	}
	allowed, known := true, true
	if r.inv.CheckACL != nil {
		allowed, known = r.inv.CheckACL(argv)
	}
	if !known {
		raiseReply(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	L.Push(lua.LBool(allowed))
	return 1
}

// apiFence is ours: the fencing number of the script's transaction.
func apiFence(L *lua.LState) int {
	r := runOf(L)
	if r.inv.Fence == nil {
		raiseReply(L, "redis.fence() has no transaction to ask")
	}
	n, err := r.inv.Fence()
	if err != nil {
		r.Stop = err
		r.abort(L)
	}
	if n > 1<<53 {
		panic(fmt.Sprintf("scripting: fence %d is not exact as a Lua number", n))
	}
	L.Push(number(float64(n)))
	return 1
}

func apiTrue(L *lua.LState) int {
	L.Push(lua.LTrue)
	return 1
}

func apiFalse(L *lua.LState) int {
	L.Push(lua.LFalse)
	return 1
}

func apiNothing(*lua.LState) int { return 0 }
