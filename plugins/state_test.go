package plugins_test

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestKeyState: clients may do with a state under a key what they may do with any
// key, and cannot look into it.
func TestKeyState(t *testing.T) {
	b := abi(t, plugins.Options{Withheld: func(string) []string { return []string{"events"} }})
	if got := b.program("@1 #1 'ABCDEF 7 0 0 !key_state_set ="); got != ":1" {
		t.Fatalf("key_state_set replied %q", got)
	}
	for _, tt := range []struct {
		want string
		args string
	}{
		{"+abitest", "TYPE abi:k"},
		{"$3\r\nraw", "OBJECT ENCODING abi:k"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "GET abi:k"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "LPUSH abi:k x"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "SADD abi:k x"},
		{"-WRONGTYPE Operation against a key holding the wrong kind of value", "APPEND abi:k x"},
		{"*2\r\n$1\r\n0\r\n*1\r\n$5\r\nabi:k", "SCAN 0 COUNT 1000 TYPE abitest"},
		{":1", "PEXPIRE abi:k 100000"},
		{":1", "COPY abi:k abi:copy"},
		{"+OK", "RENAME abi:copy abi:moved"},
		{"+abitest", "TYPE abi:moved"},
		{":1", "EXISTS abi:k"},
		{":1", "PERSIST abi:moved"},
	} {
		b.want(tt.want, strings.Fields(tt.args)...)
	}
	payload := b.do("DUMP", "abi:moved")
	payload = payload[strings.Index(payload, "\r\n")+2:]
	b.want("+OK", "RESTORE", "abi:back", "0", payload)
	b.want("+abitest", "TYPE", "abi:back")
	b.want("$6\r\nABCDEF", "ABI.RUN", "abi:back", "@1", "#1", "4096", "64", "4160", "!key_state_get", `"&`)
	b.want("-ERR DUMP payload version or checksum are wrong", "RESTORE", "abi:bad", "0", payload[:len(payload)-1]+"x")

	// A part that is written in place changes the one key alone, and is undone.
	b.want(":1", "ABI.RUN", "abi:back", "@1", "#1", "2", "@10", "#10", "!key_state_write", "=", "|", "xy")
	b.want("$6\r\nABxyEF", "ABI.RUN", "abi:back", "@1", "#1", "4096", "64", "4160", "!key_state_get", `"&`)
	b.want("$6\r\nABCDEF", "ABI.RUN", "abi:moved", "@1", "#1", "4096", "64", "4160", "!key_state_get", `"&`)
	rec := b.log.Records()
	if last := rec[len(rec)-1]; !strings.HasPrefix(last, "*4\r\n$18\r\nLATCHKEY.OVERWRITE\r\n$8\r\nabi:back\r\n$1\r\n2\r\n$2\r\nxy") {
		t.Errorf("the effect of a part that was written is %q", last)
	}
	before := len(rec)
	for _, fail := range []string{"1 ^", "-1 1 !reply_bulk"} {
		args := append([]string{"ABI.RUN", "abi:back", "@1", "#1", "0", "@1", "2", "!key_state_write"}, strings.Fields(fail)...)
		if got := b.do(args...); !strings.HasPrefix(got, "-PLUGINERR") {
			t.Errorf("%q replied %q", args, got)
		}
		b.want("$6\r\nABxyEF", "ABI.RUN", "abi:back", "@1", "#1", "4096", "64", "4160", "!key_state_get", `"&`)
	}
	if n := len(b.log.Records()); n != before {
		t.Errorf("what was undone left %q", b.log.Records()[before:])
	}
	b.want("+OK", "LATCHKEY.OVERWRITE", "abi:back", "4", "zz")
	b.want("$6\r\nABxyzz", "ABI.RUN", "abi:back", "@1", "#1", "4096", "64", "4160", "!key_state_get", `"&`)
	b.want("-ERR offset is out of range", "LATCHKEY.OVERWRITE", "abi:back", "5", "zz")
	b.want("-ERR offset is out of range", "LATCHKEY.OVERWRITE", "abi:back", "-1", "zz")
	b.want("+OK", "SET", "s", "v")
	b.want("-WRONGTYPE Operation against a key holding the wrong kind of value", "LATCHKEY.OVERWRITE", "s", "0", "zz")

	// It outlives its module.
	b.want("+OK", "MODULE", "UNLOAD", "abitest")
	b.want("+abitest", "TYPE", "abi:moved")
	b.want(":1", "DEL", "abi:moved")
}

// TestModuleState: the state is one for all instances, is undone with its call,
// and is a key that everybody sees.
func TestModuleState(t *testing.T) {
	b := abi(t, plugins.Options{Withheld: func(string) []string { return []string{"events"} }})
	if got := b.program("'one 5 !state_set ="); got != ":1" {
		t.Fatalf("state_set replied %q", got)
	}
	const read = "$3\r\none"
	get := func() string { return b.program(`4096 64 4160 !state_get "&`) }
	if got := get(); got != read {
		t.Errorf("the state is %q, want %q", got, read)
	}
	for _, then := range []string{"^", "!reply_null !reply_null"} {
		b.program("'two 5 !state_set " + then)
		if got := get(); got != read {
			t.Errorf("after a call that failed the state is %q, want %q", got, read)
		}
	}
	b.want("+abitest", "TYPE", "latchkey:module:abitest")
	b.want("+OK", "MODULE", "UNLOAD", "abitest")
	b.want("+OK", "MODULE", "LOAD", "abitest/abitest.wasm")
	if got := get(); got != read {
		t.Errorf("after the module was loaded again the state is %q, want %q", got, read)
	}
	b.want(":1", "DEL", "latchkey:module:abitest")
	if got := b.program("4096 64 4160 !state_get ="); got != ":-1" {
		t.Errorf("after DEL the state is %q", got)
	}
}
