package plugins_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestFrozen compares the ABI with what the conformance guest imports. That is
// frozen: a function may be added, to the guest too, and none may be changed.
func TestFrozen(t *testing.T) {
	text, err := os.ReadFile("abitest/abitest.wat")
	if err != nil {
		t.Fatal(err)
	}
	imported := make(map[string]string)
	for _, m := range regexp.MustCompile(`\(import "latchkey_v1" "(\w+)" \(func \$\w+(?: \(param ([^)]*)\))?(?: \(result (\w+)\))?\)\)`).FindAllStringSubmatch(string(text), -1) {
		imported[m[1]] = m[2] + " -> " + m[3]
	}
	if len(imported) < 50 {
		t.Errorf("only %d imports were found in abitest.wat", len(imported))
	}
	for _, f := range plugins.HostFunctions() {
		is := strings.Join(f.Params, " ") + " -> " + strings.Join(f.Results, " ")
		if was, ok := imported[f.Name]; !ok {
			t.Errorf("the conformance guest does not call %s (%s)", f.Name, is)
		} else if was != is {
			t.Errorf("%s is %s, and must stay %s", f.Name, is, was)
		}
		delete(imported, f.Name)
	}
	for name := range imported {
		t.Errorf("%s is no more, and modules call it", name)
	}
}

// abi is a bench with the conformance guest.
func abi(t testing.TB, opt plugins.Options) *bench {
	t.Helper()
	if opt.MaxTime == 0 {
		opt.MaxTime = time.Minute
	}
	b := newBench(t, opt)
	b.want("+OK", "MODULE", "LOAD", "abitest/abitest.wasm")
	return b
}

// program runs words of the conformance guest, with "ABI.RUN abi:k" unless they
// name a command. 'text stands for the address and the length of that text, '*text
// for its address; ~ in it is a blank.
func (b *bench) program(words string) string {
	b.t.Helper()
	return b.do(programArgs(words)...)
}

// programArgs is the command that runs a program.
func programArgs(words string) []string {
	args := strings.Fields(words)
	if !strings.HasPrefix(words, "ABI.") {
		args = append([]string{"ABI.RUN", "abi:k"}, args...)
	}
	var out, literals []string
	for _, a := range args {
		if !strings.HasPrefix(a, "'") {
			out = append(out, a)
			continue
		}
		text, pointer := strings.CutPrefix(a[1:], "*")
		literals = append(literals, fmt.Sprint(len(out), pointer), strings.ReplaceAll(text, "~", " "))
		if out = append(out, ""); !pointer {
			out = append(out, "")
		}
	}
	all := append([]string(nil), out...)
	all = append(all, "|")
	for i := 0; i < len(literals); i += 2 {
		var at int
		var pointer bool
		fmt.Sscan(literals[i], &at, &pointer)
		all[at] = fmt.Sprint("@", len(all))
		if !pointer {
			all[at+1] = fmt.Sprint("#", len(all))
		}
		all = append(all, literals[i+1])
	}
	return all
}

// TestABI calls every function of the ABI with good arguments and bad ones. The
// words are explained in abitest.wat and at program; @1 and #1 are the key.
func TestABI(t *testing.T) {
	const (
		outside = "-PLUGINERR abitest: pointer "
		invalid = "-ERR invalid argument"
		denied  = "-NOPERM abitest: not declared by the command, or not granted to the module"
		wrong   = "-WRONGTYPE Operation against a key holding the wrong kind of value"
		notInt  = "-ERR value is not an integer or out of range"
	)
	b := abi(t, plugins.Options{})
	// Each case begins with nothing but what setup has made.
	for _, tt := range []struct{ setup, words, want, then string }{
		// Strings.
		{"", "@1 #1 4096 64 !get =", ":-1", ""},
		{"SET abi:k value", `@1 #1 4096 64 !get "5`, "$5\r\nvalue", ""},
		{"SET abi:k value", `@1 #1 4096 5 !get "5`, "$5\r\nvalue", ""},
		{"SET abi:k value", `@1 #1 4096 4 !get =`, ":5", ""},
		{"SET abi:k value", `@1 #1 4096 4 !get "5`, "$5\r\n\x00\x00\x00\x00\x00", ""},
		{"RPUSH abi:k a", "@1 #1 4096 64 !get =", ":-100", ""},
		{"RPUSH abi:k a", "@1 #1 4096 64 !get ^", wrong, ""},
		{"", "@1 #1 131072 1 !get =", outside + "131072 with length 1", ""},
		{"", "@1 #1 -1 -1 !get =", outside + "4294967295 with length 4294967295", ""},
		{"", "131071 2 4096 1 !get =", outside + "131071 with length 2", ""},
		{"", "@2 #2 4096 64 !get =", ":-101", ""},
		{"", "@1 #1 'v 0 0 !set =", ":1", "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'w 1 0 !set =", ":0", "$1\r\nv"},
		{"", "@1 #1 'w 2 0 !set =", ":0", "$-1"},
		{"", "@1 #1 'w 3 0 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w 16 0 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w -1 0 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w 0 -1 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w 4 5 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w 8 0 !set =", ":-103", "$-1"},
		{"SET abi:k v", "@1 #1 'w 8 1 !set =", ":1", "$-1"},
		{"", "@1 #1 'w 0 9223372036854775807 !set =", ":-103", "$-1"},
		{"", "@1 #1 'w 0 4611686018427387904 !set =", ":1", "$1\r\nw"},
		{"", "@1 #1 'w 8 9223372036854775807 !set =", ":1", "$1\r\nw"},
		{"", "@1 #1 131072 1 0 0 !set =", outside + "131072 with length 1", "$-1"},
		{"", "@1 #1 'w 0 0 !set 1 ^", "-PLUGINERR abitest: lk_command returned 1", "$-1"},
		{"SET abi:k v", "@1 #1 !del =", ":1", "$-1"},
		{"", "@1 #1 !del =", ":0", "$-1"},
		{"", "@1 -1 !del =", outside, ""},
		{"SET abi:k v", "@1 #1 !exists =", ":1", ""},
		{"", "@1 #1 !exists =", ":0", ""},
		{"", "-1 1 !exists =", outside, ""},
		{"", "@1 #1 !type =", ":0", ""},
		{"SET abi:k v", "@1 #1 !type =", ":1", ""},
		{"RPUSH abi:k v", "@1 #1 !type =", ":2", ""},
		{"SADD abi:k v", "@1 #1 !type =", ":3", ""},
		{"@1 #1 'ABC 1 0 0 !key_state_set =", "@1 #1 !type =", ":7", ""},
		{"", "131072 1 !type =", outside, ""},
		{"", `@1 #1 5 4099 !incrby =`, ":1", "$1\r\n5"},
		{"SET abi:k 9223372036854775807", `@1 #1 1 4096 !incrby =`, ":-104", "$19\r\n9223372036854775807"},
		{"SET abi:k -9223372036854775808", `@1 #1 -1 4096 !incrby =`, ":-104", "$20\r\n-9223372036854775808"},
		{"SET abi:k x", `@1 #1 1 4096 !incrby ^`, notInt, "$1\r\nx"},
		{"RPUSH abi:k x", `@1 #1 1 4096 !incrby =`, ":-100", ""},
		{"SET abi:k 40", `@1 #1 2 4096 !incrby "8`, "$8\r\n*\x00\x00\x00\x00\x00\x00\x00", "$2\r\n42"},
		{"SET abi:k 1", `@1 #1 1 131065 !incrby =`, outside + "131065 with length 8", "$1\r\n1"},
		{"SET abi:k v", "@1 #1 'v 'w 0 !cas =", ":1", "$1\r\nw"},
		{"SET abi:k v", "@1 #1 'x 'w 0 !cas =", ":0", "$1\r\nv"},
		{"", "@1 #1 'x 'w 0 !cas =", ":-1", "$-1"},
		{"RPUSH abi:k x", "@1 #1 'x 'w 0 !cas =", ":-100", ""},
		{"SET abi:k v", "@1 #1 'v 'w -1 !cas =", ":-103", "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'v 'w 9223372036854775807 !cas =", ":-103", "$1\r\nv"},
		{"", "@1 #1 'v 'w 9223372036854775807 !cas =", ":-103", "$-1"},
		{"SET abi:k v", "@1 #1 'v 'w 4611686018427387904 !cas =", ":1", "$1\r\nw"},
		{"SET abi:k v", "@1 #1 'v -1 1 0 !cas =", outside, "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'v !cad =", ":1", "$-1"},
		{"SET abi:k v", "@1 #1 'w !cad =", ":0", "$1\r\nv"},
		{"", "@1 #1 'v !cad =", ":-1", "$-1"},
		{"SADD abi:k v", "@1 #1 'v !cad =", ":-100", ""},
		{"SET abi:k v", "@1 #1 0 131073 !cad =", outside, "$1\r\nv"},
		{"SET abi:k 1", "1 2 !cad_args =", ":1", "$-1"},
		{"SET abi:k 2", "1 2 !cad_args =", ":0", "$1\r\n2"},
		{"", "1 2 !cad_args =", ":-1", "$-1"},
		{"SADD abi:k 1", "1 2 !cad_args =", ":-100", ""},
		{"SADD abi:k 1", "1 2 !cad_args ^", wrong, ""},
		{"SET abi:k 0", "0 2 !cad_args =", ":-101", "$1\r\n0"},
		{"SET ro:k 1", "ABI.RUN ro:k 1 2 !cad_args =", ":-101", ""},
		{"", "1 7 !cad_args =", "-PLUGINERR abitest: argument 7 is asked for, but there are 7", ""},
		{"", "-1 2 !cad_args =", "-PLUGINERR abitest: argument 4294967295 is asked for, but there are 7", ""},
		{"", "@1 #1 !pttl =", ":-2", ""},
		{"SET abi:k v", "@1 #1 !pttl =", ":-1", ""},
		{"", "-1 -1 !pttl =", outside, ""},
		{"SET abi:k v", "@1 #1 100000 !pexpire =", ":1", ""},
		{"", "@1 #1 100000 !pexpire =", ":0", ""},
		{"SET abi:k v", "@1 #1 -1 !pexpire =", ":-103", ""},
		{"SET abi:k v", "@1 #1 9223372036854775807 !pexpire =", ":-103", ""},
		{"", "@1 #1 9223372036854775807 !pexpire =", ":-103", ""},
		{"SET abi:k v", "-1 #1 5 !pexpire =", outside, ""},

		// States.
		{"", "4096 64 4160 !state_get =", ":-1", ""},
		{"", "'ABC 7 !state_set 4200 1 4099 !state_get =", ":3", ""},
		{"", "-1 2 1 !state_set =", outside, ""},
		{"", "4096 131072 4096 !state_get =", outside, ""},
		{"", "4096 1 131070 !state_get =", outside + "131070 with length 4", ""},
		{"", "ABI.RO 4096 64 4160 !state_get =", ":-101", ""},
		{"", "ABI.RUN2 abi:k abi:l 4096 1 1 !state_set =", ":-101", ""},
		{"", "@1 #1 4096 64 4160 !key_state_get =", ":-1", ""},
		{"", `@1 #1 'ABC 258 0 0 !key_state_set @1 #1 4104 64 4096 !key_state_get "11`, "$11\r\n\x02\x01\x00\x00\x00\x00\x00\x00ABC", ""},
		{"SET abi:k v", "@1 #1 4096 64 4160 !key_state_get =", ":-100", "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'w 1 1 0 !key_state_set =", ":0", "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'w 1 3 0 !key_state_set =", ":-103", "$1\r\nv"},
		{"SET abi:k v", "@1 #1 'w 1 0 9223372036854775807 !key_state_set =", ":-103", "$1\r\nv"},
		{"", "@1 #1 -1 1 1 0 0 !key_state_set =", outside, ""},
		{"", `@1 #1 'ABCDE 1 0 0 !key_state_set @1 #1 1 4096 64 !key_state_read "&`, "$4\r\nBCDE", ""},
		{"", `@1 #1 'ABCDE 1 0 0 !key_state_set @1 #1 5 4096 64 !key_state_read =`, ":0", ""},
		{"", `@1 #1 'ABCDE 1 0 0 !key_state_set @1 #1 6 4096 64 !key_state_read =`, ":-103", ""},
		{"", "@1 #1 0 4096 64 !key_state_read =", ":-1", ""},
		{"SET abi:k v", "@1 #1 0 4096 64 !key_state_read =", ":-100", ""},
		{"", "@1 #1 0 131072 1 !key_state_read =", outside, ""},
		{"@1 #1 'ABCDE 1 0 0 !key_state_set =", `@1 #1 3 'XY !key_state_write @1 #1 0 4096 64 !key_state_read "&`, "$5\r\nABCXY", ""},
		{"@1 #1 'ABCDE 1 0 0 !key_state_set =", `@1 #1 4 'XY !key_state_write =`, ":-103", ""},
		{"@1 #1 'ABCDE 1 0 0 !key_state_set =", `@1 #1 -1 'XY !key_state_write =`, ":-103", ""},
		{"", "@1 #1 0 4096 1 !key_state_write =", ":-1", ""},
		{"SET abi:k v", "@1 #1 0 4096 1 !key_state_write =", ":-100", "$1\r\nv"},
		{"", "@1 #1 0 -1 1 !key_state_write =", outside, ""},

		// Calls: more in TestCallReplies and TestHandles.
		{"", "1 0 !call =", ":-103", ""},
		{"", "4096 65537 !call =", ":-103", ""},
		{"", "4097 1 !call =", "-PLUGINERR abitest: pointer 4097 is not a multiple of 4", ""},
		{"", "131068 1 !call =", outside + "131068 with length 8", ""},
		{"", "1 !call_type =", "-PLUGINERR abitest: 1 is not a handle of a reply", ""},
		{"", "-1 !call_int =", "-PLUGINERR abitest: -1 is not a handle of a reply", ""},
		{"", "0 !call_double =", "-PLUGINERR abitest: 0 is not a handle of a reply", ""},
		{"", "7 !call_len =", "-PLUGINERR abitest: 7 is not a handle of a reply", ""},
		{"", "7 0 !call_elem =", "-PLUGINERR abitest: 7 is not a handle of a reply", ""},
		{"", "7 4096 1 !call_bytes =", "-PLUGINERR abitest: 7 is not a handle of a reply", ""},
		{"", "7 -1 1 !call_bytes =", outside, ""},
		{"", "7 !call_free", "-PLUGINERR abitest: 7 is not a handle of a reply", ""},

		// Replies.
		{"", "!reply_null", "$-1", ""},
		{"", "-5 !reply_int", ":-5", ""},
		{"", "3 !reply_double", "$1\r\n3", ""},
		{"", "2 !reply_bool", ":1", ""},
		{"", "'OK !reply_simple", "+OK", ""},
		{"", "'a~b !reply_bulk", "$3\r\na b", ""},
		{"", "'MINE~is~wrong !reply_error", "-MINE is wrong", ""},
		{"", "'-123 !reply_bignum", "$4\r\n-123", ""},
		{"", "'1.5 !reply_bignum", "-PLUGINERR abitest: a big number that is not written in decimal digits", ""},
		{"", "4096 0 !reply_bignum", "-PLUGINERR abitest: a big number that is not written in decimal digits", ""},
		{"", "'*txt 'text !reply_verbatim", "$4\r\ntext", ""},
		{"", "'*t:t 'text !reply_verbatim", "-PLUGINERR abitest: the format of a verbatim string has a colon", ""},
		{"", "131070 'text !reply_verbatim", outside + "131070 with length 3", ""},
		{"", "-1 1 !reply_bulk", outside, ""},
		{"", "-1 1 !reply_simple", outside, ""},
		{"", "-1 1 !reply_error", outside, ""},
		{"", "-1 1 !reply_bignum", outside, ""},
		{"", "2 !reply_array 1 !reply_int 2 !reply_int", "*2\r\n:1\r\n:2", ""},
		{"", "0 !reply_array", "*0", ""},
		{"", "1 !reply_map 1 !reply_int 2 !reply_int", "*2\r\n:1\r\n:2", ""},
		{"", "1 !reply_set 1 !reply_int", "*1\r\n:1", ""},
		{"", "-1 !reply_array 1 !reply_int 2 !reply_int 2 !reply_len", "*2\r\n:1\r\n:2", ""},
		{"", "-1 !reply_array 0 !reply_len", "*0", ""},
		{"", "-1 !reply_map 1 !reply_int 2 !reply_int 1 !reply_len", "*2\r\n:1\r\n:2", ""},
		{"", "-1 !reply_map 1 !reply_int 2 !reply_len", "-PLUGINERR abitest: reply_len of 2 for an aggregate of 1 replies", ""},
		{"", "2 !reply_array -1 !reply_set 1 !reply_int -1 !reply_array 0 !reply_len 2 !reply_len 3 !reply_int", "*2\r\n*2\r\n:1\r\n*0\r\n:3", ""},
		{"", "-1 !reply_array 2 !reply_array 1 !reply_int 1 !reply_len", "-PLUGINERR abitest: reply_len within an aggregate that is not complete", ""},
		{"", "-1 !reply_array 1 !reply_int", "-PLUGINERR abitest: the reply is not complete", ""},
		{"", "1 !reply_array 1 !reply_int 1 !reply_len", "-PLUGINERR abitest: reply_len without an aggregate of length -1", ""},
		{"", "0 !reply_len", "-PLUGINERR abitest: reply_len within an aggregate that is not complete", ""},
		{"", "-2 !reply_array", "-PLUGINERR abitest: an aggregate reply has a negative or too large number", ""},
		{"", "1048577 !reply_set", "-PLUGINERR abitest: an aggregate reply has a negative or too large number", ""},

		// Waiting, timers and events: more in their own tests.
		{"", "4096 0 0 1 !block =", ":-103", ""},
		{"", "4096 1025 0 1 !block =", ":-103", ""},
		{"", "4097 1 0 1 !block =", "-PLUGINERR abitest: pointer 4097 is not a multiple of 4", ""},
		{"", "131068 1 0 1 !block =", outside, ""},
		{"", "4096 1 -1 1 !block =", ":-103", ""},
		{"", "4096 1 0 1 !block =", ":-101", ""}, // the key ""
		{"", "@2 #2 % 4096 1 0 1 !block =", ":-101", ""},
		{"", "131072 1 % 4096 1 0 1 !block =", outside + "131072 with length 1", ""},
		{"SET abi:k v", `4096 3 @1 #1 % 4096 2 !call =`, ":1", ""}, // of a command of three NUL bytes
		{"SET abi:k v", `'GET @1 #1 % 4096 2 !call & 4096 64 !call_bytes "&`, "$1\r\nv", "$1\r\nv"},
		{"SET abi:k v", `'GET 'abi:l % 4096 2 !call =`, ":-101", ""},
		{"SET abi:k v", `'DEL @1 #1 % 4096 2 !call =`, ":-101", "$1\r\nv"},
		{"SET abi:k v", `'OBJECT 'ENCODING @1 #1 % 4096 3 !call & 4096 64 !call_bytes "&`, "$6\r\nembstr", ""},
		{"SET abi:k v", `'OBJECT 'FREQ @1 #1 % 4096 3 !call =`, ":-101", ""},
		{"", "@1 #1 !wake =", ":0", ""},
		{"", "@2 #2 !wake =", ":-101", ""},
		{"", "-1 1 !wake =", outside, ""},
		{"", "@1 #1 1 !bind_client =", ":-106", ""},
		{"", "-1 1 1 !bind_client =", outside, ""},
		{"", "@1 #1 !unbind_client =", ":0", ""},
		{"", "-1 1 !unbind_client =", outside, ""},
		{"", "-1 1 !timer_set =", ":-103", ""},
		{"", "315360000001 1 !timer_set =", ":-103", ""},
		{"", "99 !timer_cancel =", ":0", ""},
		{"", "-1 !timer_cancel =", ":0", ""},
		{"", "'happened @1 #1 !notify =", ":0", ""},
		{"", "4096 0 @1 #1 !notify =", ":-103", ""},
		{"", "4096 65 @1 #1 !notify =", ":-103", ""},
		{"", "'happened @2 #2 !notify =", ":-101", ""},
		{"", "-1 1 @1 #1 !notify =", outside, ""},

		// The call.
		{"", "4096 8 !random =", ":0", ""},
		{"", "-1 8 !random", outside, ""},
		{"", `'text 4096 64 !config_get "&`, "$4\r\nsome", ""},
		{"", `'number 4096 64 !config_get "&`, "$1\r\n7", ""},
		{"", `'flag 4096 64 !config_get "&`, "$3\r\nyes", ""},
		{"", `'mode 4096 64 !config_get "&`, "$4\r\nslow", ""},
		{"", `'text 4096 2 !config_get =`, ":4", ""},
		{"", `'none 4096 64 !config_get =`, ":-1", ""},
		{"", `-1 1 4096 64 !config_get =`, outside, ""},
		{"", `'text -1 64 !config_get =`, outside, ""},
		{"", `0 4096 64 !client =`, ":-1", ""},
		{"", `4 4096 64 !client =`, ":-103", ""},
		{"", `0 -1 64 !client =`, outside, ""},
		{"", `1 'line !log =`, ":0", ""},
		{"", `1 -1 1 !log`, outside, ""},

		// What the key spec does not name, and what is granted for reading only.
		{"", "ABI.RUN other @1 #1 !exists =", ":-101", ""},
		{"SET ro:k v", "ABI.RUN ro:k @1 #1 !exists =", ":1", ""},
		{"SET ro:k v", "ABI.RUN ro:k @1 #1 !del =", ":-101", ""},
		{"", "^", "-PLUGINERR abitest: the reply is not complete", ""},
		{"", "-103 ^", invalid, ""},
		{"", "-101 ^", denied, ""},
		{"", "-105 ^", "-ERR abitest: the module has as many as it may have", ""},
		{"", "-106 ^", "-ERR abitest: not allowed in MULTI", ""},
	} {
		b.want("+OK", "FLUSHALL")
		if tt.setup != "" {
			if strings.HasPrefix(tt.setup, "@") {
				b.program(tt.setup)
			} else {
				b.do(strings.Fields(tt.setup)...)
			}
		}
		before := len(b.log.Records())
		got := b.program(tt.words)
		if got != tt.want && !(strings.HasPrefix(tt.want, "-") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("after %q, %s replied %q, want %q", tt.setup, tt.words, got, tt.want)
		}
		if rec := b.log.Records(); strings.HasPrefix(got, "-") && len(rec) != before {
			t.Errorf("after %q, %s failed and left %q behind", tt.setup, tt.words, rec[before:])
		}
		if tt.then != "" {
			if got := b.do("GET", "abi:k"); got != tt.then {
				t.Errorf("after %q, %s left %q at the key, want %q", tt.setup, tt.words, got, tt.then)
			}
		}
	}
}
