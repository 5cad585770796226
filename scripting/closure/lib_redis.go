package closure

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// The constants of the redis table.
const (
	logDebug, logVerbose, logNotice, logWarning = 0, 1, 2, 3
	replAOF, replReplica                        = 1, 2
	replAll                                     = replAOF | replReplica
)

const (
	// callCost is what one redis.call pays at least, in instructions.
	callCost = 32
	// maxKeptWords bounds the buffer a machine keeps between calls.
	maxKeptWords = 64 << 10

	noArguments    = "Please specify at least one argument for this redis lib call"
	wrongArguments = "Lua redis lib command arguments must be strings or integers"
	wrongReplyArgs = "wrong number or type of arguments"
)

// redisTable makes the table "redis", but for call and pcall.
func (w *World) redisTable() *Table {
	t := w.open("redis", map[string]Native{
		"acl_check_cmd": redisACLCheck, "breakpoint": redisFalse, "debug": redisNothing, "error_reply": redisErrorReply,
		"fence": redisFence, "log": redisLog, "replicate_commands": redisTrue, "set_repl": redisSetRepl,
		"setresp": redisSetResp, "sha1hex": redisSHA1, "status_reply": redisStatusReply,
	}, map[string]Value{"REDIS_VERSION": value.String(w.opts.Version)}).AsTable()
	for name, n := range map[string]int{
		"LOG_DEBUG": logDebug, "LOG_VERBOSE": logVerbose, "LOG_NOTICE": logNotice, "LOG_WARNING": logWarning,
		"REPL_NONE": 0, "REPL_AOF": replAOF, "REPL_SLAVE": replReplica, "REPL_REPLICA": replReplica, "REPL_ALL": replAll,
		"REDIS_VERSION_NUM": w.opts.Number,
	} {
		t.SetStr(name, value.Int(n))
	}
	return t
}

// words are those of a command on its way: views of the script's strings, of the
// client's words, and of text that lives until the next command. The commands
// only read them.
type words struct {
	argv [][]byte
	text []byte // of numbers
	size int
	most int // of argv that was used since forget
}

func (w *words) begin() {
	w.most = max(w.most, len(w.argv))
	w.argv, w.text, w.size = w.argv[:0], w.text[:0], 0
}

// room begins a command of n words, which the caller stores.
func (w *words) room(n int) [][]byte {
	if cap(w.argv) < n {
		w.argv, w.most = make([][]byte, n, 2*n), 0
	}
	w.argv = w.argv[:n]
	if n > w.most {
		w.most = n
	}
	w.text = w.text[:0]
	return w.argv
}

// add appends a word; false says that the value cannot be one.
func (w *words) add(v Value) bool {
	b, ok := w.bytes(v)
	if ok {
		w.argv = append(w.argv, b)
		w.size += len(b)
	}
	return ok
}

// bytes are those of a value that can be a word.
func (w *words) bytes(v Value) (b []byte, ok bool) {
	switch {
	case v.IsString():
		return v.AsBytes(), true
	case v.IsNumber():
		begin := len(w.text)
		w.text = numeral.AppendArgument(w.text, v.AsNumber())
		return w.text[begin:len(w.text):len(w.text)], true
	}
	return nil, false
}

func (w *words) done() {
	if cap(w.text) > maxKeptWords {
		w.text = nil
	}
	if cap(w.argv) > maxKeptWords/64 {
		w.argv, w.most = nil, 0
	}
}

// forget drops what the commands of a run were called with.
func (w *words) forget() {
	clear(w.argv[:max(w.most, len(w.argv))])
	w.argv, w.most = w.argv[:0], 0
}

// command runs the command in words and returns its reply; an error is raised as
// its table when raises is set. at is the place if it names the command, or nil.
func (m *Machine) command(raises bool, at *Place) Value {
	if m.Left -= callCost; m.Left <= 0 {
		m.look()
	}
	if n := m.words.size; n > 256 {
		m.alloc(n)
	}
	r := &m.reply
	var err error
	if at != nil && m.in.Placer != nil {
		err = m.in.Placer.CallAt(at, m.words.argv, r)
	} else {
		err = m.in.Caller.Call(m.words.argv, r)
	}
	m.words.done()
	if err != nil {
		r.Rewind(0)
		m.Stop = err
		m.Ended()
	}
	v, failed := r.take()
	if m.Due() {
		m.look()
	}
	if failed && raises {
		m.raiseValue(v)
	}
	return v
}

// refuse is the error of words that are no command. It is nobody's reply.
func (m *Machine) refuse(raises bool, problem string) Value {
	t := value.New(&m.Account, 0, 1)
	t.SetStr("err", value.String("ERR "+problem))
	v := value.FromTable(t)
	if raises {
		m.raiseValue(v)
	}
	return v
}

// toldField marks, as in Redis, the error table of a command's reply: INFO
// errorstats has counted it.
const toldField = "ignore_error_stats_update"

// errorTable is an error reply as a script sees it.
func (m *Machine) errorTable(text string) Value {
	t := value.New(&m.Account, 0, 2)
	t.SetStr("err", value.String(text))
	t.SetStr(toldField, value.True)
	return value.FromTable(t)
}

func (m *Machine) commandOf(args []Value, raises bool) Value {
	if len(args) == 0 {
		return m.refuse(raises, noArguments)
	}
	m.words.begin()
	for _, v := range args {
		if !m.words.add(v) {
			return m.refuse(raises, wrongArguments)
		}
	}
	return m.command(raises, nil)
}

func redisCall(m *Machine, args []Value) []Value { return m.ret1(m.commandOf(args, true)) }

func redisPCall(m *Machine, args []Value) []Value { return m.ret1(m.commandOf(args, false)) }

func (m *Machine) oneField(name, text string) []Value {
	t := value.New(&m.Account, 0, 1)
	t.SetStr(name, value.String(text))
	return m.ret1(value.FromTable(t))
}

// redisErrorReply makes an error table; a text without a code gets ERR, as in Redis 7.
func redisErrorReply(m *Machine, args []Value) []Value {
	if len(args) != 1 || !args[0].IsString() {
		return m.oneField("err", "ERR "+wrongReplyArgs)
	}
	text, _, _ := strings.Cut(args[0].AsString(), "\x00") // as C ends it
	code, msg, ok := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	if !ok {
		code, msg = "ERR", code
	}
	m.alloc(len(text))
	return m.oneField("err", code+" "+strings.Trim(msg, "\r\n"))
}

func redisStatusReply(m *Machine, args []Value) []Value {
	if len(args) != 1 || !args[0].IsString() {
		return m.oneField("err", "ERR "+wrongReplyArgs)
	}
	return m.oneField("ok", args[0].AsString())
}

// raiseReply raises an error as redis.call does, without a position.
func (m *Machine) raiseReply(text string) {
	t := value.New(&m.Account, 0, 2)
	t.SetStr("err", value.String("ERR "+text))
	m.raiseValue(value.FromTable(t))
}

func redisSHA1(m *Machine, args []Value) []Value {
	if len(args) != 1 {
		m.raiseReply("wrong number of arguments")
	}
	s, _ := textOf(args[0])
	m.pay(len(s) >> 3)
	sum := sha1.Sum([]byte(s))
	return m.ret1(value.String(hex.EncodeToString(sum[:])))
}

func redisLog(m *Machine, args []Value) []Value {
	if len(args) < 2 {
		m.raiseReply("redis.log() requires two arguments or more.")
	}
	f, ok := numberOf(args[0])
	if !ok {
		m.raiseReply("First argument must be a number (log level).")
	}
	level := numeral.Truncate(f)
	if level < logDebug || level > logWarning {
		m.raiseReply("Invalid debug level.")
	}
	at := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}[level]
	if !m.world.opts.Logs(at) || m.loading != nil && m.loading.Again { // FUNCTION LOAD has logged it
		return nil
	}
	const maxLog = 1024 // as Redis cuts a line
	var b []byte
	for i, v := range args[1:] {
		s, _ := textOf(v)
		if i > 0 {
			b = append(b, ' ')
		}
		if b = append(b, s[:min(len(s), maxLog)]...); len(b) >= maxLog {
			b = b[:maxLog]
			break
		}
	}
	m.in.Log(at, string(b))
	return nil
}

func redisSetResp(m *Machine, args []Value) []Value {
	if len(args) != 1 {
		m.raiseReply("redis.setresp() requires one argument.")
	}
	f, _ := numberOf(args[0])
	switch v := numeral.Truncate(f); v {
	case 2, 3:
		m.resp = int(v)
	default:
		m.raiseReply("RESP version must be 2 or 3.")
	}
	return nil
}

// redisSetRepl checks its argument and does nothing: effects are logged, whatever
// the script wants.
func redisSetRepl(m *Machine, args []Value) []Value {
	if len(args) != 1 {
		m.raiseReply("redis.set_repl() requires two arguments.")
	}
	f, _ := numberOf(args[0])
	if numeral.Truncate(f)&^replAll != 0 {
		m.raiseReply("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return nil
}

func redisACLCheck(m *Machine, args []Value) []Value {
	if len(args) == 0 {
		m.raiseReply(noArguments)
	}
	m.words.begin()
	for _, v := range args {
		if !m.words.add(v) {
			m.raiseReply(wrongArguments)
		}
	}
	allowed, known := true, true
	if m.in.CheckACL != nil {
		allowed, known = m.in.CheckACL(m.words.argv)
		m.words.done()
	}
	if !known {
		m.raiseReply("Invalid command passed to redis.acl_check_cmd()")
	}
	return m.ret1(value.Bool(allowed))
}

// redisFence is ours: the fencing number of the script's transaction.
func redisFence(m *Machine, _ []Value) []Value {
	if m.in.Fence == nil {
		m.raiseReply("redis.fence() has no transaction to ask")
	}
	n, err := m.in.Fence()
	if err != nil {
		m.Stop = err
		m.Ended()
	}
	if n > 1<<53 {
		panic(fmt.Sprintf("scripting: fence %d is not exact as a Lua number", n))
	}
	return m.ret1(value.Number(float64(n)))
}

func redisTrue(m *Machine, _ []Value) []Value { return m.ret1(value.True) }

func redisFalse(m *Machine, _ []Value) []Value { return m.ret1(value.False) }

func redisNothing(*Machine, []Value) []Value { return nil }
