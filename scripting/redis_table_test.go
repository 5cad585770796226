package scripting

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// protocolCaller is a fakeStore with DEBUG PROTOCOL, which has a reply of each kind.
type protocolCaller struct{ *fakeStore }

func (p protocolCaller) Call(argv [][]byte, r command.Reply) error {
	switch {
	case string(argv[0]) == "lpop" && len(argv) == 2:
		r.Null()
		return nil
	case string(argv[0]) == "lpop":
		r.NullArray()
		return nil
	case string(argv[0]) != "debug":
		return p.fakeStore.Call(argv, r)
	}
	switch string(argv[2]) {
	case "string":
		r.BulkString("Hello World")
	case "integer":
		r.Int(12345)
	case "double":
		r.Double(3.141)
	case "bignum":
		r.BigNumber("1234567999999999999999999999999999999")
	case "null":
		r.Null()
	case "array":
		r.Array(3)
		for i := range 3 {
			r.Int(int64(i))
		}
	case "set":
		r.Set(3)
		for i := range 3 {
			r.Int(int64(i))
		}
	case "map":
		r.Map(3)
		for i := range 3 {
			r.Int(int64(i))
			r.Bool(i == 1)
		}
	case "verbatim":
		r.Verbatim("txt", "This is a verbatim\nstring")
	case "true", "false":
		r.Bool(string(argv[2]) == "true")
	case "attrib":
		r.BulkString("Some real reply following the attribute")
	}
	return nil
}

// TestRedisTableSameAsRedis replays what the redis table does and how values are
// converted both ways, for scripts and clients of both protocol versions.
func TestRedisTableSameAsRedis(t *testing.T) {
	lines, err := os.ReadFile("testdata/redis_table.txt")
	if err != nil {
		t.Fatal(err)
	}
	redis := startRedis(t, "--enable-debug-command", "yes")
	if got, err := redis.do("DEBUG", "set-disable-deny-scripts", "1"); got != "+OK\r\n" {
		t.Fatalf("DEBUG set-disable-deny-scripts: %q, %v", got, err)
	}
	e := newEngine(t, Options{Version: "7.0.15"})
	equal := 0
	for proto := 2; proto <= 3; proto++ {
		if _, err := redis.do("HELLO", fmt.Sprint(proto)); err != nil {
			t.Fatal(err)
		}
		for script := 2; script <= 3; script++ {
			if _, err := redis.do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			store := protocolCaller{newFakeStore()}
			differs := ""
			for i, line := range strings.Split(string(lines), "\n") {
				if why, ok := strings.CutPrefix(line, "# differs: "); ok {
					differs = why
					continue
				}
				if line == "" || strings.HasPrefix(line, "# ") {
					continue
				}
				src := fmt.Sprintf("redis.setresp(%d) %s", script, line)
				want, err := redis.do("EVAL", src, "0")
				if err != nil {
					t.Fatalf("line %d: redis-server went away at %q: %v", i+1, src, err)
				}
				w := resp.NewWriter()
				w.SetProto(proto)
				inv := &Invocation{
					Caller:   store,
					CheckACL: func(argv [][]byte) (bool, bool) { return true, string(argv[0]) == "get" || string(argv[0]) == "set" },
				}
				s, err := e.Compile([]byte(src))
				if err != nil {
					t.Fatalf("line %d: %q: %v", i+1, src, err)
				}
				if err := e.Run(s, inv, w); err != nil {
					w.Error(text.OneLine(err.Error()))
				}
				got := string(w.Bytes())
				switch {
				case got == want && differs != "" && !strings.Contains(line, "0/0"):
					t.Errorf("line %d, client %d: %s is marked as different (%s), and is not", i+1, proto, src, differs)
				case got != want && differs == "":
					t.Errorf("line %d, client %d: %s\n got %q\nwant %q, as redis-server answers", i+1, proto, src, clipText(got), clipText(want))
				case got == want:
					equal++
				}
				differs = ""
			}
		}
	}
	t.Logf("%d replies equal", equal)
}
