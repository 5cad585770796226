// Package plugins_test tries the example plugins: every language must answer a
// plugin's transcript alike, and run with flat memory.
package plugins_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// calls are what each plugin's commands are run with again and again: they read,
// compare, write and fail.
var calls = map[string][]string{
	"cad":       {"SET k v", "CAD.WASM k w", "CAS.WASM k v w", "CAE.WASM k w 100000", "CAD.WASM k w", "CAD.WASM k"},
	"fairlock":  {"FAIRLOCK.ACQUIRE k 100000", "FAIRLOCK.STATUS k", "FAIRLOCK.EXTEND k 1 1000", "DEL k", "FAIRLOCK.RELEASE k 1", "FAIRLOCK.ACQUIRE k 0"},
	"ratelimit": {"CL.THROTTLE k 1000000 1000000 1", "CL.THROTTLE j 1 1 1000", "CL.THROTTLE k x 1 1", "DEL j"},
	"bloom":     {"BF.ADD k x", "BF.EXISTS k y", "BF.ADD k z", "BF.RESERVE k 0.1 10", "BF.RESERVE j 0.01 1000", "DEL j"},
}

// modules are the built modules of a plugin, by language.
func modules(t *testing.T, name string) []string {
	found, err := filepath.Glob(filepath.Join(name, "*", name+".wasm"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no modules of %s: %v", name, err)
	}
	return found
}

func TestTranscripts(t *testing.T) {
	program := filepath.Join(t.TempDir(), "latchkey")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/latchkey").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cache := t.TempDir()
	for name := range calls {
		for _, module := range modules(t, name) {
			t.Run(module, func(t *testing.T) {
				transcript := filepath.Join(name, name+".transcript")
				if own := filepath.Join(filepath.Dir(module), name+".transcript"); exists(own) {
					transcript = own // of a language that has not all of the commands
				}
				cmd := exec.Command(program, "plugin", "test", module, transcript)
				cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// server is a store with a module, without a network.
type server struct {
	t    *testing.T
	host *plugins.Host
	eng  *command.Engine
	sess command.Session
	w    *resp.Writer
}

func newServer(t *testing.T, module string) *server {
	log := slog.New(slog.DiscardHandler)
	st, err := store.New(store.Options{Log: &store.MemoryLog{}})
	if err != nil {
		t.Fatal(err)
	}
	table, err := command.NewTable(command.Families()...)
	if err != nil {
		t.Fatal(err)
	}
	host, err := plugins.New(plugins.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	if err := host.Load(table, plugins.Loading{Path: module}); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, host: host, eng: &command.Engine{Table: table, Store: st, Log: log}, w: resp.NewWriter()}
	s.eng.SlowAfter.Store(-1)
	s.sess.Tx, s.sess.Proto = st.NewTx(), 2
	return s
}

// run sends each command n times, by turns.
func (s *server) run(lines []string, n int) {
	var argvs [][][]byte
	for _, line := range lines {
		var argv [][]byte
		for _, word := range strings.Fields(line) {
			argv = append(argv, []byte(word))
		}
		argvs = append(argvs, argv)
	}
	for range n {
		for i, argv := range argvs {
			s.w.Reset()
			spec, problem := s.eng.Table.Find(argv)
			if spec == nil {
				s.w.Error(problem)
			} else {
				s.sess.BeginBatch()
				s.eng.Run(&command.Call{S: &s.sess, Spec: spec, Args: argv, Reply: s.w})
			}
			if reply := string(s.w.Bytes()); strings.HasPrefix(reply, "-PLUGIN") {
				s.t.Fatalf("%s: %s", lines[i], reply)
			}
		}
	}
}

// A guest's memory grows while it warms up; from then on calls leave it as it is, a
// million of them when LATCHKEY_MILLION=1 asks for so many. It is looked at ten times: in the second
// half it is never larger than it was in the first. An instance may be replaced, and the
// next is smaller at first.
func TestFlatMemory(t *testing.T) {
	million := 100_000 // which shows a leak of a few bytes a call
	switch {
	case os.Getenv("LATCHKEY_MILLION") == "1":
		million = 1_000_000 // make million
	case testing.Short():
		million = 50_000
	}
	for name, lines := range calls {
		for _, module := range modules(t, name) {
			t.Run(module, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, module)
				const looks = 10
				var half [2]int64 // the most bytes in each
				for i := range looks {
					s.run(lines, 2*million/looks/len(lines)) // the first half warms up
					m := &half[i/(looks/2)]
					*m = max(*m, s.host.List()[0].MemoryBytes)
				}
				end := s.host.List()[0]
				if half[1] > half[0] || end.Instances != 1 {
					t.Errorf("of %d calls the first half left up to %d bytes of linear memory, the second %d, in %d instances",
						end.Calls, half[0], half[1], end.Instances)
				}
				if end.Traps != 0 || end.Calls < int64(million)/int64(len(lines)) {
					t.Errorf("%d calls and %d traps", end.Calls, end.Traps)
				}
			})
		}
	}
}
