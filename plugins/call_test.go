package plugins_test

import (
	"strings"
	"testing"
	"time"
)

// echo is the part of a guest that gives a reply back as it was read: its
// function $echo takes a handle.
const echo = `
(func $text (param $h i32) (result i32) (call $call_bytes (local.get $h) (i32.const 2048) (i32.const 4096)))
(func $each (param $h i32) (param $n i32)
	(local $i i32)
	(loop $next
		(if (i32.lt_u (local.get $i) (local.get $n)) (then
			(call $echo (call $call_elem (local.get $h) (local.get $i)))
			(local.set $i (i32.add (local.get $i) (i32.const 1)))
			(br $next)))))
(func $echo (param $h i32)
	(local $t i32) (local $n i32)
	(local.set $t (call $call_type (local.get $h)))
	(if (i32.eq (local.get $t) (i32.const 0)) (then (call $reply_null)))
	(if (i32.eq (local.get $t) (i32.const 1)) (then (call $reply_int (call $call_int (local.get $h)))))
	(if (i32.eq (local.get $t) (i32.const 2)) (then (local.set $n (call $text (local.get $h))) (call $reply_bulk (i32.const 2048) (local.get $n))))
	(if (i32.eq (local.get $t) (i32.const 3)) (then (local.set $n (call $text (local.get $h))) (call $reply_simple (i32.const 2048) (local.get $n))))
	(if (i32.eq (local.get $t) (i32.const 4)) (then (local.set $n (call $text (local.get $h))) (call $reply_error (i32.const 2048) (local.get $n))))
	(if (i32.eq (local.get $t) (i32.const 5)) (then
		(call $reply_array (call $call_len (local.get $h)))
		(call $each (local.get $h) (call $call_len (local.get $h)))))
	(if (i32.eq (local.get $t) (i32.const 6)) (then
		(call $reply_map (call $call_len (local.get $h)))
		(call $each (local.get $h) (i32.mul (i32.const 2) (call $call_len (local.get $h))))))
	(if (i32.eq (local.get $t) (i32.const 7)) (then
		(call $reply_set (i32.const -1))
		(call $each (local.get $h) (call $call_len (local.get $h)))
		(call $reply_len (call $call_len (local.get $h)))))
	(if (i32.eq (local.get $t) (i32.const 8)) (then (call $reply_double (call $call_double (local.get $h)))))
	(if (i32.eq (local.get $t) (i32.const 9)) (then (call $reply_bool (i32.wrap_i64 (call $call_int (local.get $h))))))
	(if (i32.eq (local.get $t) (i32.const 10)) (then (local.set $n (call $text (local.get $h))) (call $reply_bignum (i32.const 2048) (local.get $n))))
	(if (i32.eq (local.get $t) (i32.const 11)) (then (local.set $n (call $text (local.get $h))) (call $reply_verbatim (i32.const 240) (i32.const 2048) (local.get $n)))))
`

// passing is a guest whose H.CALL key word ... calls the words, and gives back
// what it was answered.
func passing(commands ...string) guest {
	return guest{
		funcs:    echo,
		commands: []string{"H.CALL"},
		exports:  `(data (i32.const 240) "mkd")`,
		caps:     map[string]any{"commands": commands},
		// The arguments behind the key: 16 bytes of head and 8 each in front.
		limits: map[string]int{"instances": 16},
		body: `(local.set $i (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.sub (local.get $argc) (i32.const 2))))
			(if (i32.lt_s (local.get $i) (i32.const 0)) (then (return (local.get $i))))
			(call $echo (local.get $i)) (call $call_free (local.get $i))`,
	}
}

func TestCallReplies(t *testing.T) {
	b := hostile(t, passing("EVAL", "EVAL_RO", "SET", "GET", "SADD", "SMEMBERS", "LRANGE", "RPUSH", "PING", "TYPE", "OBJECT|IDLETIME", "SELECT", "H.CALL", "INCR"), time.Minute)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"+OK", []string{"SET", "k", "v"}},
		{"$1\r\nv", []string{"GET", "k"}},
		{"_", []string{"GET", "k", "none"}}, // see below
		{"+string", []string{"TYPE", "k"}},
		{":7", []string{"EVAL", "return 7", "0"}},
		{"*3\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n_", []string{"EVAL", "return {1, {'a', 'b'}, false}", "0"}},
		{"#t", []string{"EVAL", "redis.setresp(3) return true", "0"}},
		{",3.5", []string{"EVAL", "redis.setresp(3) return {double = 3.5}", "0"}},
		{"(12345678901234567890", []string{"EVAL", "redis.setresp(3) return {big_number = '12345678901234567890'}", "0"}},
		{"=8\r\nmkd:text", []string{"EVAL", "redis.setresp(3) return {verbatim_string = {format = 'txt', string = 'text'}}", "0"}},
		{"%1\r\n$1\r\na\r\n:1", []string{"EVAL", "redis.setresp(3) return {map = {a = 1}}", "0"}},
		{"~1\r\n$1\r\na", []string{"EVAL", "redis.setresp(3) return {set = {a = true}}", "0"}},
		{"*0", []string{"EVAL", "return {}", "0"}},
		{"-ERR mine", []string{"EVAL", "return redis.error_reply('mine')", "0"}},
		{"-ERR Unknown Redis command called from a plugin", []string{"NOSUCH"}},
		{"-ERR Wrong number of args calling Redis command from a plugin", []string{"GET"}},
		{"-NOPERM h: not declared by the command, or not granted to the module", []string{"DEL", "k"}},
		{"-NOPERM h: not declared by the command, or not granted to the module", []string{"GET", "other"}},
		{"-NOPERM h: not declared by the command, or not granted to the module", []string{"OBJECT", "ENCODING", "k"}},
		{":0", []string{"OBJECT", "IDLETIME", "k"}},
		{"-ERR value is not an integer or out of range", []string{"INCR", "k"}},
		{"-NOPERM h: a key was not declared by the command or is not granted to the module", []string{"EVAL", "return redis.call('set', 'other', '1')", "0"}},
		{"-NOPERM h: a key was not declared by the command or is not granted to the module", []string{"EVAL", "redis.call('select', 1) return redis.call('get', KEYS[1])", "1", "k"}},
		{"-NOPERM h: the module may not call del", []string{"EVAL", "return redis.call('del', KEYS[1])", "1", "k"}},
		{"$1\r\nv", []string{"H.CALL", "k", "GET", "k"}},
		{"$1\r\nv", []string{"EVAL", "return redis.call('h.call', KEYS[1], 'get', KEYS[1])", "1", "k"}},
	} {
		b.sess.Proto = 3
		b.w.SetProto(3)
		if len(tt.args) == 3 && tt.args[2] == "none" {
			b.do("DEL", "k2")
			tt.args = []string{"EVAL", "return false", "0"}
		}
		got := b.do(append([]string{"H.CALL", "k"}, tt.args...)...)
		if got != tt.want && !(strings.HasPrefix(tt.want, "-") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("H.CALL of %q replied %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestCallIsASavepoint: what a called command did is undone with it alone, and
// what the guest does afterwards counts.
func TestCallIsASavepoint(t *testing.T) {
	g := passing("H.CALL", "EVAL", "GET", "SET")
	// Writes, calls what fails, writes again, and answers with what is there.
	g.commands = []string{"H.CALL", "H.TWICE"}
	g.body = `(if (i32.eq (local.get $id) (i32.const 2)) (then
			` + write + `
			(drop (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.sub (local.get $argc) (i32.const 2))))
			(local.set $i (call $get (i32.const 0) (i32.const 1) (i32.const 2048) (i32.const 100)))
			(call $reply_bulk (i32.const 2048) (local.get $i))
			(return (i32.const 0))))` + g.body
	b := hostile(t, g, time.Minute)
	b.want("$1\r\nx", "H.TWICE", "k", "EVAL", "redis.call('set', KEYS[1], 'lost') error('fails')", "1", "k")
	b.want("$1\r\nx", "GET", "k")
	b.want("$4\r\nkept", "H.TWICE", "k", "EVAL", "return redis.call('set', KEYS[1], 'kept')", "1", "k")
	b.want("$4\r\nkept", "GET", "k")
}

// TestCallDepth: plugin commands within each other come to an end.
func TestCallDepth(t *testing.T) {
	b := hostile(t, passing("H.CALL", "GET", "EVAL"), time.Minute)
	b.want("+OK", "SET", "k", "v")
	nested := func(n int) []string {
		var args []string
		for range n {
			args = append(args, "H.CALL", "k")
		}
		return append(args, "GET", "k")
	}
	b.want("$1\r\nv", nested(7)...)
	if got := b.do(nested(8)...); got != "-ERR h: not allowed in MULTI, in a script or within another plugin's command" {
		t.Errorf("a command eight deep called another and replied %q", got)
	}
	// A script that calls itself through the plugin.
	script := `if #ARGV[1] == 0 then return 'end' end return redis.call('h.call', KEYS[1], 'EVAL', ARGV[2], '1', KEYS[1], string.sub(ARGV[1], 2), ARGV[2])`
	b.want("$3\r\nend", "EVAL", script, "1", "k", "xxx", script)
	if got := b.do("EVAL", script, "1", "k", strings.Repeat("x", 100), script); !strings.HasPrefix(got, "-ERR h: not allowed") {
		t.Errorf("a script within a plugin within a script a hundred times replied %q", clip(got))
	}
}

// TestNestedTrap: a guest that traps in a called command loses its instance, not
// that of the caller.
func TestNestedTrap(t *testing.T) {
	g := passing("H.TRAP")
	g.commands = []string{"H.CALL", "H.TRAP"}
	g.body = `(if (i32.eq (local.get $id) (i32.const 2)) (then ` + write + ` unreachable))` + g.body
	b := hostile(t, g, time.Minute)
	b.want("-PLUGINERR h: wasm error: unreachable", "H.CALL", "k", "H.TRAP", "k")
	b.want("$-1", "GET", "k")
}

// TestReadonlyCommand: a command that is declared readonly cannot write, itself
// or by what it calls.
func TestReadonlyCommand(t *testing.T) {
	g := passing("SET", "EVAL", "GET")
	g.commands = []string{"H.CALL", "H.SET"}
	g.readonly = []string{"H.CALL", "H.SET"}
	g.body = `(if (i32.eq (local.get $id) (i32.const 2)) (then
		(return (call $set (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))))` + g.body
	b := hostile(t, g, time.Minute)
	for _, args := range [][]string{
		{"H.SET", "k"},
		{"H.CALL", "k", "SET", "k", "v"},
		{"H.CALL", "k", "EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k"},
	} {
		if got := b.do(args...); !strings.HasPrefix(got, "-") {
			t.Errorf("%q replied %q, want an error", args, got)
		}
	}
	b.want("$-1", "GET", "k")
	b.want("$-1", "H.CALL", "k", "GET", "k")
}

// TestHandles gives every function handles that are none.
func TestHandles(t *testing.T) {
	const get = `(local.set $i (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.const 2)))`
	for _, tt := range []struct{ name, body, want string }{
		{"none given", `(drop (call $call_type (i32.const 1)))`, "1 is not a handle"},
		{"zero", get + `(drop (call $call_type (i32.const 0)))`, "0 is not a handle"},
		{"negative", get + `(drop (call $call_len (i32.const -1)))`, "-1 is not a handle"},
		{"behind the last", get + `(drop (call $call_len (i32.add (local.get $i) (i32.const 1))))`, "is not a handle"},
		{"freed", get + `(call $call_free (local.get $i)) (drop (call $call_bytes (local.get $i) (i32.const 0) (i32.const 0)))`, "is not a handle"},
		{"freed twice", get + `(call $call_free (local.get $i)) (call $call_free (local.get $i))`, "is not a handle"},
		{"freed before another", get + `(call $call_free (local.get $i))` + `(drop (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.const 2)))` + `(drop (call $call_elem (local.get $i) (i32.const 0)))`, "is not a handle"},
		{"integer of a string", get + `(drop (call $call_int (local.get $i)))`, "call_int of a reply that is no integer"},
		{"double of a string", get + `(drop (call $call_double (local.get $i)))`, "call_double of a reply that is no double"},
		{"misaligned", `(drop (call $call (i32.const 33) (i32.const 1)))`, "pointer 33 is not a multiple of 4"},
		{"frame outside", `(drop (call $call (i32.const 65532) (i32.const 1)))`, "pointer 65532 with length 8 is outside of memory"},
		{"frame that leads outside", `(i32.store (i32.const 512) (i32.const 65535)) (i32.store (i32.const 516) (i32.const 2)) (drop (call $call (i32.const 512) (i32.const 1)))`, "pointer 65535 with length 2 is outside of memory"},
		{"many arguments outside", `(drop (call $call (i32.const 512) (i32.const 65536)))`, "outside of memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := guest{body: write + tt.body, caps: map[string]any{"commands": []string{"GET"}}}
			b := hostile(t, g, time.Minute)
			if got := b.do("H.RUN", "k", "GET", "k"); !strings.HasPrefix(got, "-PLUGINERR h: ") || !strings.Contains(got, tt.want) {
				t.Errorf("replied %q, want a trap with %q", got, tt.want)
			}
			b.want("$-1", "GET", "k")
		})
	}
}

// TestCallBounds: replies that nobody frees are bounded, and so is one alone.
func TestCallBounds(t *testing.T) {
	g := guest{
		commands: []string{"H.MANY", "H.BIG", "H.AGAIN"},
		caps:     map[string]any{"commands": []string{"GET"}},
		body: `
		(if (i32.eq (local.get $id) (i32.const 3)) (then
			(loop $next
				(local.set $i (i32.add (local.get $i) (i32.const 1)))
				(call $call_free (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.const 2)))
				(br_if $next (i32.lt_u (local.get $i) (i32.const 1000))))
			(call $reply_int (i64.extend_i32_s (local.get $i)))
			(return (i32.const 0))))
		(loop $next
			(local.set $i (call $call (i32.add (local.get $frame) (i32.const 32)) (i32.const 2)))
			(br_if $next (i32.and (i32.gt_s (local.get $i) (i32.const 0)) (i32.ne (call $last_type (local.get $i)) (i32.const 4)))))
		(if (i32.eq (local.get $id) (i32.const 2)) (then
			(call $reply_bulk (i32.const 2048) (call $call_bytes (local.get $i) (i32.const 2048) (i32.const 1000)))
			(return (i32.const 0))))
		(call $reply_int (i64.extend_i32_s (local.get $i)))`,
		funcs: `(func $last_type (param $h i32) (result i32)
			(if (i32.lt_s (local.get $h) (i32.const 1)) (then (return (i32.const 0))))
			(call $call_type (local.get $h)))`,
	}
	b := hostile(t, g, time.Minute)
	b.want(":-105", "H.MANY", "k", "GET", "k")
	b.want("+OK", "SET", "k", strings.Repeat("x", 20<<20))
	if got, want := b.do("H.BIG", "k", "GET", "k"), "ERR the replies are larger than the 64 MiB that a plugin may hold"; !strings.HasSuffix(got, want) {
		t.Errorf("values that are larger than what may be held replied %q, want %q", clip(got), want)
	}
	b.want("+OK", "SET", "k", "v")
	b.want(":1000", "H.AGAIN", "k", "GET", "k")
}
