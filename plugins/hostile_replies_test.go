package plugins_test

import "testing"

func TestHostileReplies(t *testing.T) { attackAll(t, replies()) }

// replies are guests whose reply has no end, or is none.
func replies() []attack {
	const one = `(call $reply_int (i64.const 1))`
	const array = `(call $reply_array (i32.const 1))`
	return []attack{
		{name: "endless loop of replies", guest: guest{body: `(call $reply_array (i32.const 1048576))` + repeated(`(call $reply_null)`)}, want: "more replies than"},
		{
			name: "reply of any size", guest: guest{body: `(call $reply_array (i32.const 1048576))` + repeated(`(call $reply_bulk (i32.const 0) (i32.const 65536))`)},
			want: "the reply is larger than 256 MiB", heap: 3 << 29,
		},
		{
			name: "reply of any size and unknown length", guest: guest{body: `(call $reply_array (i32.const -1))` + repeated(`(call $reply_bulk (i32.const 0) (i32.const 65536))`)},
			want: pluginE, heap: 3 << 29,
		},
		{name: "small replies of unknown number", guest: guest{body: `(call $reply_array (i32.const -1))` + repeated(`(call $reply_null)`)}, want: pluginE, heap: 3 << 29},
		{name: "two replies", guest: guest{body: one + one}, want: "more replies than one"},
		{name: "reply after the last element", guest: guest{body: array + one + one}, want: "more replies than one"},
		{name: "reply after an empty array", guest: guest{body: `(call $reply_array (i32.const 0))` + one}, want: "more replies than one"},
		{name: "reply after an error", guest: guest{body: `(call $reply_error (i32.const 0) (i32.const 1))` + one}, want: "more replies than one"},
		{name: "array of -2", guest: guest{body: `(call $reply_array (i32.const -2))`}, want: "negative or too large number of elements"},
		{name: "map of 2^31", guest: guest{body: `(call $reply_map (i32.const -2147483648))`}, want: "negative or too large number of elements"},
		{name: "map of more than there may be", guest: guest{body: `(call $reply_map (i32.const 1048577))`}, want: "negative or too large number of elements"},
		{name: "length of what is not open", guest: guest{body: `(call $reply_len (i32.const 1))`}, want: pluginE},
		{name: "length other than what came", guest: guest{body: `(call $reply_array (i32.const -1))` + one + `(call $reply_len (i32.const 2))`}, want: pluginE},
		{name: "arrays within arrays", guest: guest{body: repeated(array)}, want: "aggregate replies nest deeper than 32"},
		{name: "arrays of unknown length within each other", guest: guest{body: repeated(`(call $reply_array (i32.const -1))`)}, want: "aggregate replies nest deeper than 32"},
		{name: "status of two lines", guest: guest{body: `(call $reply_simple (i32.const 32) (i32.const 5))`}, want: "a status reply has a line break in it"},
		{name: "big number of letters", guest: guest{body: `(call $reply_bignum (i32.const 8) (i32.const 5))`}, want: pluginE},
		{name: "verbatim string of no known format", guest: guest{body: `(call $reply_verbatim (i32.const 33) (i32.const 1) (i32.const 5))`}, want: pluginE},
		{name: "no reply", guest: guest{body: ``}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete array", guest: guest{body: `(call $reply_array (i32.const 2))` + one}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete map", guest: guest{body: `(call $reply_map (i32.const 1))` + one}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete set", guest: guest{body: `(call $reply_set (i32.const 1048576))` + one}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete inner array", guest: guest{body: array + array}, want: pluginE + "the reply is not complete", kept: true},
		{name: "array whose length never comes", guest: guest{body: `(call $reply_array (i32.const -1))` + one}, want: pluginE + "the reply is not complete", kept: true},
		{name: "empty error", guest: guest{body: `(call $reply_error (i32.const 0) (i32.const 0))`}, want: "-ERR", kept: true},
		{name: "error of two lines", guest: guest{body: `(call $reply_error (i32.const 32) (i32.const 5))`}, want: "-+x", kept: true},
		{name: "error of 64 KiB", guest: guest{body: `(call $reply_error (i32.const 0) (i32.const 65536))`}, want: "-k", kept: true},
		{name: "it returns -1", guest: guest{body: `(return (i32.const -1))`}, want: pluginE + "lk_command returned -1", kept: true},
		{name: "it returns 7 after a reply", guest: guest{body: one + `(return (i32.const 7))`}, want: pluginE + "lk_command returned 7", kept: true},
		{name: "it returns -2^31", guest: guest{body: one + `(return (i32.const -2147483648))`}, want: pluginE + "lk_command returned -2147483648", kept: true},
		{name: "it returns wrong type", guest: guest{body: `(return (i32.const -100))`}, want: "-WRONGTYPE Operation against a key", kept: true},
		{name: "it returns denied", guest: guest{body: `(return (i32.const -101))`}, want: "-NOPERM h: not declared by the command", kept: true},
		{name: "it returns out of memory", guest: guest{body: `(return (i32.const -102))`}, want: "-OOM command not allowed", kept: true},
		{name: "it returns invalid", guest: guest{body: `(return (i32.const -103))`}, want: "-ERR invalid argument", kept: true},
	}
}
