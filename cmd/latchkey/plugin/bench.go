package plugin

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	benchRounds = 5
	benchCalls  = 100_000
	benchTime   = 3 * time.Second // of a round, which ends then with fewer calls
)

// bench runs one command again and again on a store of its own, without a
// network, in rounds.
func bench(args []string, stdout, stderr io.Writer) int {
	calls := benchCalls
	var setup [][]string
	words, err := options(args, true, map[string]func(string) error{
		"-n": func(v string) (err error) {
			if calls, err = strconv.Atoi(v); err != nil || calls <= 0 {
				return errors.New("wanted a number of calls above 0")
			}
			return nil
		},
		"--setup": func(v string) error {
			setup = append(setup, strings.Fields(v))
			return nil
		},
	}, nil)
	if err != nil {
		return usageError(stderr, err.Error())
	}
	if len(words) < 2 {
		return usageError(stderr, "bench takes a module and a command")
	}
	b, err := newBench(words[0])
	if err != nil {
		return failed(stderr, err)
	}
	defer b.end()
	for _, c := range setup {
		if len(c) == 0 {
			continue
		}
		if reply := b.run(c); strings.HasPrefix(reply, "-") {
			return failed(stderr, fmt.Errorf("%s: %s", strings.Join(c, " "), strings.TrimSpace(reply[1:])))
		}
	}
	reply := b.run(words[1:])
	if m := b.host.List(); len(m) == 1 && m[0].Calls == 0 {
		return failed(stderr, fmt.Errorf("%s calls nothing of the module %s: %s", strings.Join(words[1:], " "), m[0].Name, strings.TrimSpace(strings.TrimPrefix(reply, "-"))))
	}
	if strings.HasPrefix(reply, "-PLUGINERR ") {
		return failed(stderr, fmt.Errorf("%s: %s", strings.Join(words[1:], " "), strings.TrimSpace(reply[1:])))
	}
	fmt.Fprintf(stdout, "reply         %s\n", strings.TrimSpace(strings.ReplaceAll(reply, "\r\n", " ")))
	var times []float64
	total, least := 0, calls
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range benchRounds {
		began := time.Now()
		done := b.loop(words[1:], calls)
		times = append(times, float64(time.Since(began).Nanoseconds())/float64(done))
		total, least = total+done, min(least, done)
	}
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	n := float64(total)
	fmt.Fprintf(stdout, "time          %.0f ns a call (median of %d rounds of %d; %.0f to %.0f)\n", times[benchRounds/2], benchRounds, least, times[0], times[benchRounds-1])
	fmt.Fprintf(stdout, "allocations   %.1f a call, %.0f bytes\n", float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	fmt.Fprintf(stdout, "heap          %d KiB after all calls and a collection\n", after.HeapAlloc>>10)
	for _, m := range b.host.List() {
		fmt.Fprintf(stdout, "module        %d calls, %d errors, %d traps, %d KiB of linear memory in %d instances\n", m.Calls, m.Errors, m.Traps, m.MemoryBytes>>10, m.Instances)
	}
	return exitOK
}

// benchServer is a store with a module, without a network.
type benchServer struct {
	host *plugins.Host
	end  func() // of the host
	eng  *command.Engine
	sess command.Session
	w    *resp.Writer
}

func newBench(path string) (*benchServer, error) {
	st, err := store.New(store.Options{Log: &store.MemoryLog{}})
	if err != nil {
		return nil, err
	}
	table, err := command.NewTable(command.Families()...)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	host, end, err := newHost()
	if err != nil {
		return nil, err
	}
	if err := host.Load(table, plugins.Loading{Path: path}); err != nil {
		end()
		return nil, err
	}
	b := &benchServer{host: host, end: end, eng: &command.Engine{Table: table, Store: st, Log: log}, w: resp.NewWriter()}
	b.eng.SlowAfter.Store(-1)
	b.sess.Tx, b.sess.Proto = st.NewTx(), 2
	return b, nil
}

// run is one command and its reply, in RESP2.
func (b *benchServer) run(words []string) string {
	b.loop(words, 1)
	return string(b.w.Bytes())
}

// loop runs a command n times, or until benchTime is over, and returns how often it did.
func (b *benchServer) loop(words []string, n int) (done int) {
	argv := make([][]byte, len(words))
	for i, w := range words {
		argv[i] = []byte(w)
	}
	spec, problem := b.eng.Table.Find(argv)
	began := time.Now()
	// The clock is looked at after 1, 2, 4, ... calls: it costs, too.
	for look := 1; done < n; done++ {
		b.w.Reset()
		if spec == nil {
			b.w.Error(problem)
			return 1
		}
		b.sess.BeginBatch()
		b.eng.Run(&command.Call{S: &b.sess, Spec: spec, Args: argv, Reply: b.w})
		if done == look {
			if time.Since(began) > benchTime {
				return done + 1
			}
			look += min(look, 1024)
		}
	}
	return done
}
