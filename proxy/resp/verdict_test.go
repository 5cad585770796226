package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// verdicts are requests and what redis-server 7.0.15 makes of them, as asked
// by TestVerdictsAgainstRedis. want lists the commands, one in a line, and how
// it ends: "EOF", "cut" (in the middle of a command) or an error reply.
var verdicts = []struct {
	name, in, want string
}{
	{"command", "*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n", `"ECHO" "a\r\n"; EOF`},
	{"pipeline", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\nPING\r\n", `"PING"; "PING"; "PING"; EOF`},
	{"empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", `"ECHO" ""; EOF`},
	{"empty command name", "*1\r\n$0\r\n\r\n", `""; EOF`},
	{"nothing", "", `EOF`},
	{
		"twelve arguments", "*12\r\n$4\r\nnone" + strings.Repeat("\r\n$1\r\nx", 11) + "\r\n",
		`"none"` + strings.Repeat(` "x"`, 11) + `; EOF`,
	},

	{"count 0", "*0\r\nPING\r\n", `"PING"; EOF`},
	{"count -1", "*-1\r\nPING\r\n", `"PING"; EOF`},
	{"count least", "*-9223372036854775808\r\nPING\r\n", `"PING"; EOF`},
	{"count below least", "*-9223372036854775809\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count most", "*2147483647\r\n", `cut`},
	{"count above most", "*2147483648\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count beyond 64 bits", "*9223372036854775808\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count of 20 digits", "*18446744073709551617\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count of 21 digits", "*100000000000000000000\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count missing", "*\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count signed", "*+1\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count after space", "* 1\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count before space", "*1 \r\n", `ERR Protocol error: invalid multibulk length`},
	{"count with leading zero", "*01\r\n$4\r\nPING\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count 00", "*00\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count -0", "*-0\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count -", "*-\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count hexadecimal", "*0x1\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count with LF alone", "*1\n$4\r\nPING\r\n", `ERR Protocol error: invalid multibulk length`},
	{"count with CR and another byte", "*1\rX$4\r\nPING\r\n", `"PING"; EOF`},
	{"count with CR at the end", "*1\r", `cut`},
	{"count with NUL", "*1\x00\r\n$4\r\nPING\r\n", `cut`},
	{"count too long", "*" + strings.Repeat("1", 65536), `ERR Protocol error: too big mbulk count string`},
	{"count as long as may be", "*" + strings.Repeat("1", 65535), `cut`},

	{"bulk -1", "*1\r\n$-1\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk most", "*1\r\n$536870912\r\n", `cut`},
	{"bulk above most", "*1\r\n$536870913\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk beyond 64 bits", "*1\r\n$9223372036854775808\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk missing", "*1\r\n$\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk signed", "*1\r\n$+4\r\nPING\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk after space", "*1\r\n$ 4\r\nPING\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk with leading zero", "*1\r\n$04\r\nPING\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk 00", "*1\r\n$00\r\n\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk with CR and another byte", "*1\r\n$4\rXPING\r\n", `"PING"; EOF`},
	{"bulk with LF alone", "*1\r\n$4\nPING\r\n", `ERR Protocol error: invalid bulk length`},
	{"bulk without end of line", "*1\r\n$4XXPINGXX", `cut`},
	{"bulk followed by other bytes", "*1\r\n$4\r\nPINGab*1\r\n$4\r\nPING\r\n", `"PING"; "PING"; EOF`},
	{"bulk cut in its end", "*1\r\n$4\r\nPING\r", `cut`},
	{"bulk too long a header", "*1\r\n$" + strings.Repeat("1", 65536), `ERR Protocol error: too big bulk count string`},
	{"bulk with NUL", "*1\r\n$4\x00\r\nPING\r\n", `cut`},
	{"bulk with NUL and much after", "*1\r\n$4\x00\r\n" + strings.Repeat("a", 65536), `ERR Protocol error: too big bulk count string`},

	{"nested", "*1\r\n*1\r\n$4\r\nPING\r\n", `ERR Protocol error: expected '$', got '*'`},
	{"integer argument", "*1\r\n:1\r\n", `ERR Protocol error: expected '$', got ':'`},
	{"CR for $", "*1\r\n\r\n", `ERR Protocol error: expected '$', got ' '`},
	{"LF for $", "*1\r\n\n\r\n", `ERR Protocol error: expected '$', got ' '`},
	{"high byte for $", "*1\r\n\xff\r\n", "ERR Protocol error: expected '$', got '\xff'"},
	{"NUL for $", "*1\r\n\x00\r\n", `cut`},
	{"second argument not a bulk", "*2\r\n$4\r\nECHO\r\nPING\r\n", `ERR Protocol error: expected '$', got 'P'`},
	{"nothing after an error", "*1\r\nX\r\n*1\r\n$4\r\nPING\r\n", `ERR Protocol error: expected '$', got 'X'`},
	{"commands before an error", "PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n", `"PING"; "PING"; ERR Protocol error: invalid multibulk length`},

	{"inline", "ECHO a\r\n", `"ECHO" "a"; EOF`},
	{"inline with LF", "ECHO a\n", `"ECHO" "a"; EOF`},
	{"inline with two CR", "ECHO a\r\r\n", `"ECHO" "a"; EOF`},
	{"inline with CR inside", "ECHO\ra\n", `"ECHO" "a"; EOF`},
	{"inline cut", "PING", `cut`},
	{"inline with much space", " \t ECHO \t a  \r\n", `"ECHO" "a"; EOF`},
	{"empty lines", "\r\n\n  \r\n\r\r\nPING\r\n", `"PING"; EOF`},
	{"inline vertical tab inside", "ECHO\va b\r\n", `"ECHO\va" "b"; EOF`},
	{"inline vertical tab and form feed first", "\v\fPING\r\n", `"PING"; EOF`},
	{"inline vertical tab after a quote", "none \"a\"\vb\r\n", `"none" "a" "b"; EOF`},
	{"inline no-break space", "none\xa0a\r\n", "\"none\\xa0a\"; EOF"},
	{"inline with NUL", "PI\x00NG\r\nPING\r\n", `cut`},
	{"inline with NUL and much after", "PI\x00NG\r\n" + strings.Repeat("a", 65536), `ERR Protocol error: too big inline request`},
	{"inline as long as may be", strings.Repeat("a", 65536) + "\n", `"` + strings.Repeat("a", 65536) + `"; EOF`},
	{"inline too long", strings.Repeat("a", 65537), `ERR Protocol error: too big inline request`},
	{"inline not yet too long", strings.Repeat("a", 65536), `cut`},
	{"inline then multibulk", "PING\r\n*1\r\n$4\r\nPING\r\n", `"PING"; "PING"; EOF`},
	{"inline $", "$4\r\nPING\r\n", `"$4"; "PING"; EOF`},

	{"double quotes", "ECHO \"a b\"\r\n", `"ECHO" "a b"; EOF`},
	{"single quotes", "ECHO 'a b'\r\n", `"ECHO" "a b"; EOF`},
	{"quotes of nothing", "ECHO \"\"\r\n", `"ECHO" ""; EOF`},
	{"quotes of nothing alone", "''\r\n", `""; EOF`},
	{"quotes within", "ECHO a\"b c\"\r\n", `"ECHO" "ab c"; EOF`},
	{"quotes of the other kind", "none \"it's\" 'say \"x\"'\r\n", `"none" "it's" "say \"x\""; EOF`},
	{"escapes", `ECHO "\n\r\t\b\a\\\"\q\x41\xfF\x00"` + "\r\n", "\"ECHO\" \"\\n\\r\\t\\b\\a\\\\\\\"qA\\xff\\x00\"; EOF"},
	{"escape of half a byte", `ECHO "\x4"` + "\r\n", `"ECHO" "x4"; EOF`},
	{"escape of no byte", `ECHO "\xzz\x"` + "\r\n", `"ECHO" "xzzx"; EOF`},
	{"escape outside of quotes", `ECHO \n\x41` + "\r\n", `"ECHO" "\\n\\x41"; EOF`},
	{"escape in single quotes", `ECHO '\n\'\\'` + "\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"escape in single quotes, closed", `ECHO '\n\'\\ '` + "\r\n", `"ECHO" "\\n'\\\\ "; EOF`},
	{"double quote open", "ECHO \"a\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"single quote open", "ECHO 'a\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"quote escaped away", `ECHO "a\"` + "\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"backslash last", `ECHO "a\` + "\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"text after a quote", "ECHO \"a\"b\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"text after a single quote", "ECHO 'a'b\r\n", `ERR Protocol error: unbalanced quotes in request`},
	{"quote after a quote", "ECHO 'a''b'\r\n", `ERR Protocol error: unbalanced quotes in request`},
}

// unauthenticated are verdicts for a client that owes an AUTH.
var unauthenticated = []struct {
	name, in, want string
}{
	{"ten arguments", "*10\r\n" + strings.Repeat("$1\r\nx\r\n", 10), `"x"` + strings.Repeat(` "x"`, 9) + `; EOF`},
	{"eleven arguments", "*11\r\n", `ERR Protocol error: unauthenticated multibulk length`},
	{"too many arguments for anyone", "*2147483648\r\n", `ERR Protocol error: invalid multibulk length`},
	{"16 KiB", "*1\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n", `"` + strings.Repeat("x", 16384) + `"; EOF`},
	{"more than 16 KiB", "*1\r\n$16385\r\n", `ERR Protocol error: unauthenticated bulk length`},
	{"too much for anyone", "*1\r\n$536870913\r\n", `ERR Protocol error: invalid bulk length`},
	{"inline of eleven", strings.Repeat("x ", 11) + "\r\n", `"x"` + strings.Repeat(` "x"`, 10) + `; EOF`},
}

// pieces is a source that returns the bytes of its strings one piece at a time.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

// transcribe writes down what a Reader makes of a source. It fails on views
// that do not stand for their bytes.
func transcribe(src io.Reader, lim *resp.Limits) (text string, commands [][]string, verdict string) {
	r := resp.NewReader(src, lim)
	var b strings.Builder
	for {
		args, raw, err := r.Next()
		if err != nil {
			if _, _, again := r.Next(); again != err {
				return fmt.Sprintf("after %v, Next returned %v", err, again), nil, ""
			}
			verdict = errorText(err)
			return b.String() + verdict, commands, verdict
		}
		var command []string
		for i, arg := range args {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%q", arg)
			command = append(command, string(arg))
		}
		if text := reparse(raw, lim, command); text != "" {
			return text, nil, ""
		}
		b.WriteString("; ")
		commands = append(commands, command)
	}
}

// reparse tells how raw, taken for itself, differs from the command.
func reparse(raw []byte, lim *resp.Limits, command []string) string {
	r := resp.NewReader(bytes.NewReader(raw), lim)
	args, again, err := r.Next()
	if err != nil || !bytes.Equal(again, raw) || len(args) != len(command) {
		return fmt.Sprintf("raw %.80q is read as %.80q, error %v", raw, again, err)
	}
	for i := range args {
		if string(args[i]) != command[i] {
			return fmt.Sprintf("raw %.80q has argument %d %.80q, not %.80q", raw, i, args[i], command[i])
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		return fmt.Sprintf("raw %.80q is followed by %v", raw, err)
	}
	return ""
}

func errorText(err error) string {
	var bad *resp.ProtocolError
	switch {
	case errors.As(err, &bad):
		return bad.Reply
	case err == io.EOF:
		return "EOF"
	case err == io.ErrUnexpectedEOF:
		return "cut"
	}
	return err.Error()
}

func TestVerdicts(t *testing.T) {
	for _, v := range verdicts {
		lim := resp.Limits{Authenticated: true}
		if got, _, _ := transcribe(strings.NewReader(v.in), &lim); got != v.want {
			t.Errorf("%s: %.80q\n got %.200s\nwant %.200s", v.name, v.in, got, v.want)
		}
	}
	for _, v := range unauthenticated {
		if got, _, _ := transcribe(strings.NewReader(v.in), nil); got != v.want {
			t.Errorf("unauthenticated, %s: %.80q\n got %.200s\nwant %.200s", v.name, v.in, got, v.want)
		}
	}
}

// TestSplits cuts each request in two at every byte, and into single bytes.
func TestSplits(t *testing.T) {
	lim := resp.Limits{Authenticated: true}
	for _, v := range verdicts {
		in := []byte(v.in)
		step := 1 + len(in)/300
		for i := 0; i <= len(in); i += step {
			if got, _, _ := transcribe(&pieces{in[:i], in[i:]}, &lim); got != v.want {
				t.Fatalf("%s: %.80q cut at %d\n got %.200s\nwant %.200s", v.name, v.in, i, got, v.want)
			}
		}
		var single pieces
		for i := range in {
			single = append(single, in[i:i+1])
		}
		if got, _, _ := transcribe(&single, &lim); got != v.want {
			t.Errorf("%s: %.80q byte by byte\n got %.200s\nwant %.200s", v.name, v.in, got, v.want)
		}
	}
}

// redisReplies is what redis-server answers to these commands and this verdict.
// Commands that it does not know show their arguments in the error.
func redisReplies(commands [][]string, verdict string) string {
	cString := func(s string, most int) string {
		s, _, _ = strings.Cut(s, "\x00")
		return s[:min(len(s), most)]
	}
	var b strings.Builder
	for _, c := range commands {
		switch {
		case c[0] == "PING" && len(c) == 1:
			b.WriteString("+PONG\r\n")
		case c[0] == "ECHO" && len(c) == 2:
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(c[1]), c[1])
		case c[0] == "PING", c[0] == "ECHO":
			fmt.Fprintf(&b, "-ERR wrong number of arguments for '%s' command\r\n", strings.ToLower(c[0]))
		default:
			var args string
			for _, arg := range c[1:] {
				if len(args) < 128 {
					args += "'" + cString(arg, 128-len(args)) + "' "
				}
			}
			line := "ERR unknown command '" + cString(c[0], 128) + "', with args beginning with: " + args
			b.WriteString("-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(line) + "\r\n")
		}
	}
	if strings.HasPrefix(verdict, "ERR ") {
		b.WriteString("-" + verdict + "\r\n")
	}
	return b.String()
}

// TestVerdictsAgainstRedis asks redis-server for all that the tables say.
func TestVerdictsAgainstRedis(t *testing.T) {
	socket := transcript.StartJudge(t).Socket
	for _, v := range verdicts {
		lim := resp.Limits{Authenticated: true}
		_, commands, verdict := transcribe(strings.NewReader(v.in), &lim)
		if got, want := string(ask(t, socket, []byte(v.in))), redisReplies(commands, verdict); got != want {
			t.Errorf("%s: %.80q\nredis-server answers %.300q\n     our Reader says %.300q", v.name, v.in, got, want)
		}
	}
	socket = transcript.StartJudge(t, "--requirepass", "x").Socket
	for _, v := range unauthenticated {
		_, commands, verdict := transcribe(strings.NewReader(v.in), nil)
		// An unknown command is told so before it is asked for a password.
		if got, want := string(ask(t, socket, []byte(v.in))), redisReplies(commands, verdict); got != want {
			t.Errorf("unauthenticated, %s: %.80q\nredis-server answers %.300q\n     our Reader says %.300q", v.name, v.in, got, want)
		}
	}
}

// TestRandomAgainstRedis lets redis-server judge random requests, made of the
// bytes on which verdicts turn.
func TestRandomAgainstRedis(t *testing.T) {
	socket := transcript.StartJudge(t).Socket
	words := []string{
		"\r\n", "\r\n", "\r\n", "\n", "\r", " ", "\t", "\v", "*", "$", "*1", "*2", "$1", "$2", "*1\r\n$4\r\nPING\r\n",
		"*2\r\n$4\r\nECHO\r\n", "$3\r\nabc\r\n", "0", "1", "-", "-1", "+", "\"", "\"", "'", "'", "\\", "\\x", "\\x4", "a", "f", "n", "none ",
		"ECHO ", "\xff",
	}
	rng := newRand(1)
	for range 3000 {
		var in []byte
		for range 1 + rng.IntN(12) {
			in = append(in, words[rng.IntN(len(words))]...)
		}
		lim := resp.Limits{Authenticated: true}
		text, commands, verdict := transcribe(bytes.NewReader(in), &lim)
		if got, want := string(ask(t, socket, in)), redisReplies(commands, verdict); got != want {
			t.Fatalf("%q\nredis-server answers %q\n     our Reader says %q\n from %s", in, got, want, text)
		}
	}
}
