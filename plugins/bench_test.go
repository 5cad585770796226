package plugins_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// BenchmarkCommand runs whole commands of the cad example on a store, as a client's
// pipeline does, without the reading and writing of bytes. Of each the guest
// calls two host functions. Of other and held these are cad_args and reply_int, neither of
// which leaves the guest; of cas, which finds another's token too, the first is cas, which does.
// least-ns/op is that of the quickest window, which says more than the mean on a machine
// that others use.
func BenchmarkCommand(b *testing.B) {
	const window = 512
	const key, held = "lock:orders:42", "0123456789abcdef"
	for _, bm := range []struct {
		name            string
		builtin, plugin []string
	}{
		{"other", []string{"DELIFEQ", key, "theirs"}, []string{"CAD.WASM", key, "theirs"}},
		{"held", []string{"DELIFEQ", key, held}, []string{"CAD.WASM", key, held}},
		{"cas", []string{"SET", key, "new", "IFEQ", "theirs"}, []string{"CAS.WASM", key, "theirs", "new"}},
	} {
		for _, lang := range []string{"builtin", "c", "assemblyscript", "rust", "go", "wat"} {
			if bm.name == "cas" && lang == "wat" {
				continue // it has the first command only
			}
			b.Run(bm.name+"/"+lang, func(b *testing.B) {
				on := newBenchOn(b, plugins.Options{}, store.Options{})
				on.log.Keep = false
				words := bm.builtin
				if lang != "builtin" {
					words = bm.plugin
					on.want("+OK", "MODULE", "LOAD", cad(lang))
				}
				on.want("+OK", "SET", key, held)
				set, free := on.call("SET", key, held), on.call(words...)
				w := resp.NewWriter()
				var c command.Call
				run := func(again *command.Call) {
					c = *again
					c.Reply = w
					on.eng.Run(&c)
				}
				b.ReportAllocs()
				n, least, began := 0, time.Duration(1<<62), time.Now()
				for b.Loop() {
					if bm.name == "held" {
						run(set)
					}
					run(free)
					if n++; n%16 == 0 {
						w.Reset()
						on.sess.FlushStats()
						on.sess.BeginBatch()
					}
					if n%window == 0 {
						now := time.Now()
						least, began = min(least, now.Sub(began)), now
					}
				}
				if n >= window {
					b.ReportMetric(float64(least)/window, "least-ns/op")
				}
			})
		}
	}
}

// call makes a Call that can be run again and again.
func (b *bench) call(args ...string) *command.Call {
	argv := make([][]byte, len(args))
	for i, a := range args {
		argv[i] = []byte(a)
	}
	spec, msg := b.eng.Table.Find(argv)
	if spec == nil {
		b.t.Fatal(msg)
	}
	return &command.Call{S: &b.sess, Spec: spec, Args: argv}
}

// BenchmarkReload takes the Go guest, of 2 MB, from the cache of compiled code: load
// as a server does that was started again, from the disk, and reload as MODULE
// RELOAD does while the module runs. least-ms/op is that of the quickest.
func BenchmarkReload(b *testing.B) {
	cached := plugins.Options{CacheDir: filepath.Join(b.TempDir(), "cache")}
	newBenchOn(b, cached, store.Options{}).want("+OK", "MODULE", "LOAD", cad("go"))
	measure := func(b *testing.B, step func() time.Duration) {
		least := time.Duration(1 << 62)
		for b.Loop() {
			least = min(least, step())
		}
		b.ReportMetric(least.Seconds()*1e3, "least-ms/op")
	}
	b.Run("load", func(b *testing.B) {
		measure(b, func() time.Duration {
			b.StopTimer()
			on := newBenchOn(b, cached, store.Options{})
			defer on.host.Close()
			b.StartTimer()
			began := time.Now()
			on.want("+OK", "MODULE", "LOAD", cad("go"))
			return time.Since(began)
		})
	})
	b.Run("reload", func(b *testing.B) {
		on := newBenchOn(b, cached, store.Options{})
		on.want("+OK", "MODULE", "LOAD", cad("go"))
		measure(b, func() time.Duration {
			began := time.Now()
			on.want("+OK", "MODULE", "RELOAD", "cad")
			return time.Since(began)
		})
	})
}
