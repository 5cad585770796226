package scripts

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// step is a command and the reply that both servers must give, as a regular
// expression. A first word that ends in .lua is that script: its keys, a comma,
// its arguments.
type step struct{ command, want string }

var replays = map[string][]step{
	"unlock": {
		{"unlock.lua lock , mine", "0"},
		{"SET lock mine NX PX 30000", "OK"},
		{"unlock.lua lock , another", "0"},
		{"GET lock", "mine"},
		{"unlock.lua lock , mine", "1"},
		{"EXISTS lock", "0"},
	},
	"extend": {
		{"extend.lua lock , mine 60000", "0"},
		{"SET lock mine NX PX 1000", "OK"},
		{"extend.lua lock , another 60000", "0"},
		{"PTTL lock", `\d{1,4}`},
		{"extend.lua lock , mine 60000", "1"},
		{"PTTL lock", `(59\d\d\d|60000)`},
		{"extend.lua lock , mine soon", "ERR value is not an integer or out of range.*"},
	},
	"takeover": {
		{"takeover.lua lock , mine 60000", "[1 ]"},
		{"GET lock", `\d{13} mine`},
		{"takeover.lua lock , another 60000", `[0 (59\d\d\d|60000)]`},
		{"GET lock", `\d{13} mine`},
		{"SET lock 1700000000000", "OK"},
		{"takeover.lua lock , another 60000", "[1 1700000000000]"},
		{"GET lock", `\d{13} another`},
		{"SET lock rubbish", "OK"},
		{"takeover.lua lock , mine 60000", "[1 rubbish]"},
	},
	"semaphore": {
		{"semaphore.lua s:1 s:2 s:3 , a 60000", "1"},
		{"semaphore.lua s:1 s:2 s:3 , b 60000", "2"},
		{"semaphore.lua s:1 s:2 s:3 , a 60000", "1"},
		{"semaphore.lua s:1 s:2 s:3 , c 60000", "3"},
		{"semaphore.lua s:1 s:2 s:3 , d 60000", "0"},
		{"unlock.lua s:2 , b", "1"},
		{"semaphore.lua s:1 s:2 s:3 , d 60000", "2"},
		{"MGET s:1 s:2 s:3", "[a d c]"},
		{"PTTL s:2", `(59\d\d\d|60000)`},
	},
	"ratelimit": {
		{"ratelimit.lua rate , 2 60000", "[1 1]"},
		{"ratelimit.lua rate , 2 60000", "[1 0]"},
		{"ratelimit.lua rate , 2 60000", `[0 (59\d\d\d|60000)]`},
		{"LLEN rate", "2"},
		{"PTTL rate", `(59\d\d\d|60000)`},
		{"LSET rate 0 1000", "OK"}, // long ago
		{"ratelimit.lua rate , 2 60000", "[1 0]"},
		{"ratelimit.lua rate , 2 60000", `[0 (59\d\d\d|60000)]`},
		{"ratelimit.lua other , 0 60000", "[0 60000]"},
	},
}

// TestScripts replays each script on latchkey and, if it is installed, on
// redis-server.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) != len(replays) {
		t.Errorf("there are the scripts %v and %d replays (%v): each needs one", files, len(replays), err)
	}
	latchkey, runner := startLatchkey(t)
	for name, addr := range map[string]func(t *testing.T) string{
		"latchkey":     func(*testing.T) string { return latchkey },
		"redis-server": func(t *testing.T) string { return transcript.StartJudge(t).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr(t))
			for script, steps := range replays {
				c.do("FLUSHALL")
				for _, s := range steps {
					got := show(c.do(s.words(t)...))
					pattern := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(s.want)
					if !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
						t.Errorf("%s: %s\n got %s\nwant %s", script, s.command, got, s.want)
					}
				}
			}
		})
	}
	for _, counts := range runner.Tally() {
		if counts.Undeclared != 0 {
			t.Errorf("a script touches keys that it does not declare: %+v", counts)
		}
	}
}

// words are the command, a script as its EVAL.
func (s step) words(t *testing.T) []string {
	words := strings.Fields(s.command)
	if !strings.HasSuffix(words[0], ".lua") {
		return words
	}
	src, err := os.ReadFile(words[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(src), "redis-cli --eval "+words[0]+" ") {
		t.Errorf("%s does not say how redis-cli calls it", words[0])
	}
	keys := 0
	for words[1+keys] != "," {
		keys++
	}
	out := append([]string{"EVAL", string(src), strconv.Itoa(keys)}, words[1:1+keys]...)
	return append(out, words[2+keys:]...)
}

func show(r transcript.Reply) string {
	if r.Kind != transcript.Array {
		return r.Text
	}
	var elems []string
	for _, e := range r.Elems {
		elems = append(elems, show(e))
	}
	return "[" + strings.Join(elems, " ") + "]"
}

func startLatchkey(t *testing.T) (addr string, r *scripting.Runner) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	e, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r = scripting.NewRunner(e, scripting.Settings{}, runtime.NumCPU(), log)
	s, err := proxy.New(proxy.Options{Families: append(command.Families(), r.Specs()), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	t.Cleanup(func() { s.Close(time.Second) })
	return l.Addr().String(), r
}

type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) do(words ...string) transcript.Reply {
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		c.t.Fatal(err)
	}
	r, err := transcript.ReadReply(c.r)
	if err != nil {
		c.t.Fatalf("%.40q: %v", words, err)
	}
	return r
}
