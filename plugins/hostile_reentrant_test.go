package plugins_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestHostileReentrant(t *testing.T) { attackAll(t, reentrant()) }

// calling is what lk_command does to call a command and answer the error that the
// host or the command has for it; and the words, for the guest's memory at 256.
func calling(words ...string) (body, data string) {
	at := 256
	for i, w := range words {
		body += fmt.Sprintf("(i32.store (i32.const %d) (i32.const %d)) (i32.store (i32.const %d) (i32.const %d))\n", 4096+8*i, at, 4100+8*i, len(w))
		at += len(w)
		for _, b := range []byte(w) {
			data += fmt.Sprintf(`\%02x`, b)
		}
	}
	return body + fmt.Sprintf(`(local.set $i (call $call (i32.const 4096) (i32.const %d)))
		(if (i32.lt_s (local.get $i) (i32.const 0)) (then (return (local.get $i))))
		(if (i32.eq (call $call_type (local.get $i)) (i32.const 4)) (then
			(call $reply_error (i32.const 8192) (call $call_bytes (local.get $i) (i32.const 8192) (i32.const 4000)))
			(return (i32.const 0))))
		(call $call_free (local.get $i))
	`, len(words)), data
}

// reentrant are guests that call commands, their own and others, which they have
// been granted by name: it must not give them more than that.
func reentrant() []attack {
	of := func(name, want string, words ...string) attack {
		a := attack{name: name, want: want, kept: true}
		a.guest.body, a.guest.data = calling(words...)
		a.guest.caps = map[string]any{"commands": []string{words[0]}}
		a.guest.body += `(call $reply_null)`
		return a
	}
	with := func(a attack, limits map[string]int, commands ...string) attack {
		if commands != nil {
			a.guest.caps["commands"] = commands
		}
		if a.guest.limits = limits; limits == nil {
			a.guest.limits = map[string]int{"instances": 1}
		}
		return a
	}
	endless := func(name, want string, words ...string) attack {
		a := of(name, want, words...)
		frame, _, _ := strings.Cut(a.guest.body, "(local.set $i (call $call ")
		a.guest.body = frame + repeated(fmt.Sprintf(`(local.set $i (call $call (i32.const 4096) (i32.const %d)))
			(if (i32.gt_s (local.get $i) (i32.const 0)) (then (call $call_free (local.get $i))))`, len(words)))
		a.kept, a.maxTime, a.heap = false, brief, 1<<30
		return a
	}
	const (
		denied  = "NOPERM h: not declared by the command"
		barred  = "ERR This Redis command is not allowed from a plugin"
		unknown = "ERR Unknown Redis command called from a plugin"
	)
	ungranted := of("a command that is not granted", denied, "SET", "k", "v")
	ungranted.guest.caps = map[string]any{"commands": []string{"GET"}}
	big := strings.Repeat("v", 3000)
	return []attack{
		of("its own command", "all 1 instances are busy", "H.RUN", "k"),
		with(of("its own command on many instances", "ERR h: not allowed in MULTI", "H.RUN", "k"), map[string]int{"instances": 64}),
		of("its own command through a script", "", "EVAL", "return redis.call('h.run', KEYS[1])", "1", "k"),
		with(of("its own command through a script, with many instances", "-", "EVAL", "return redis.call('h.run', KEYS[1])", "1", "k"), map[string]int{"instances": 64}, "EVAL", "H.RUN"),
		with(of("its own command through a script, on one instance", "all 1 instances are busy", "EVAL", "return redis.call('h.run', KEYS[1])", "1", "k"), nil, "EVAL", "H.RUN"),
		ungranted,
		of("a key that is not granted", denied, "GET", "theirs"),
		of("a key that is not declared", denied, "GET", "other"),
		of("a key of others behind its own", denied, "MSET", "k", "v", "theirs", "v"),
		of("a key of others as the destination", denied, "RENAME", "k", "theirs"),
		of("a key of others as the source", denied, "COPY", "theirs", "k"),
		of("a key that is granted for reading", denied, "SET", "r:1", "v"),
		of("all keys deleted", denied, "FLUSHALL"),
		of("a database deleted", denied, "FLUSHDB"),
		of("databases swapped", denied, "SWAPDB", "0", "1"),
		func() attack {
			a := of("another database, for one call", "", "SELECT", "1")
			a.idle = true
			return a
		}(),
		of("another database as the destination", denied, "MOVE", "k", "1"),
		of("the names of all keys", denied, "KEYS", "*"),
		of("the names of some keys", denied, "SCAN", "0"),
		of("the name of any key", denied, "RANDOMKEY"),
		with(of("all keys deleted by a script", "NOPERM h: ", "EVAL", "return redis.call('flushall')", "1", "k"), nil, "EVAL", "FLUSHALL"),
		of("a wait for a list", "", "BLPOP", "k", "0"),
		of("its own unloading", barred, "MODULE", "UNLOAD", "h"),
		of("the loading of another", barred, "MODULE", "LOAD", "/etc/passwd"),
		of("a script with a key of others", denied, "EVAL", "return redis.call('get', KEYS[1])", "1", "theirs"),
		of("a script with an undeclared key", "", "EVAL", "return redis.call('set', 'theirs', 'v')", "1", "k"),
		of("a script that writes and fails", "", "EVAL", "redis.call('set', KEYS[1], 'v') error('no')", "1", "k"),
		of("a command that there is not", unknown, "NO.SUCH"),
		of("a command of another module, whose key is not declared", denied, "CAD.WASM", "theirs", "before theirs"),
		with(of("an empty name", unknown, ""), nil, "GET"),
		with(of("a name of 3,000 bytes", unknown, big), nil, "GET"),
		endless("calls without end", pluginE, "APPEND", "k", big),
		endless("handles without end", pluginE, "EXISTS", "k"),
		with(endless("scripts without end", pluginE, "EVAL", "return redis.call('append', KEYS[1], string.rep('x', 10000))", "1", "k"), nil, "EVAL", "APPEND"),
		endless("unknown commands without end", pluginE, "NO.SUCH"),
		func() attack {
			a := endless("open replies without end", pluginE, "GET", "k")
			a.guest.body = strings.Replace(a.guest.body, "(call $call_free (local.get $i))", "", 1)
			return a
		}(),
		{name: "a handle that was never given", guest: guest{body: `(drop (call $call_type (i32.const 1)))`}, want: "1 is not a handle of a reply"},
		{name: "the handle 0", guest: guest{body: `(drop (call $call_len (i32.const 0)))`}, want: "0 is not a handle of a reply"},
		{name: "a handle below 0", guest: guest{body: `(drop (call $call_int (i32.const -1)))`}, want: "-1 is not a handle of a reply"},
		func() attack {
			a := of("a handle that was freed", "is not a handle of a reply", "EXISTS", "k")
			a.guest.body = strings.Replace(a.guest.body, `(call $reply_null)`, `(call $call_free (local.get $i))`, 1)
			a.kept = false
			return a
		}(),
		func() attack {
			a := of("too many arguments", "invalid argument", "DEL")
			a.guest.body = `(return (call $call (i32.const 0) (i32.const 65537)))`
			return a
		}(),
		func() attack {
			a := of("no arguments", "invalid argument", "DEL")
			a.guest.body = `(return (call $call (i32.const 4096) (i32.const 0)))`
			return a
		}(),
	}
}
