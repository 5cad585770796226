package scripting

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkHeavy has scripts of testdata/heavy, and the rate limiter of the examples, run by whole servers: redis-server, and ours
// with each engine. What is reported beside the time over the wire is the server's own
// figure, INFO commandstats' microseconds a call.
func BenchmarkHeavy(b *testing.B) {
	files, err := filepath.Glob("testdata/heavy/*.lua")
	if err != nil || len(files) < 9 {
		b.Fatalf("%d scripts, %v", len(files), err)
	}
	files = append(files, "../examples/scripts/ratelimit.lua")
	servers := []struct {
		name string
		ask  *asker
	}{
		{"redis", redisAsker(b)},
		{"closures", dialServer(b, startLatchkey(b, Options{}, Settings{}))},
		{"vm", dialServer(b, startLatchkey(b, Options{VMOnly: true}, Settings{}))},
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		for _, s := range servers {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				do := func(args ...string) string {
					r, err := s.ask.ask(2, args...)
					if err != nil || r.Kind == '-' {
						b.Fatalf("%s: %s %v", args[0], r.Text, err)
					}
					return r.Text
				}
				do("FLUSHALL") // what the script before has left
				sha := do("SCRIPT", "LOAD", string(source))
				call := []string{"EVALSHA", sha, "1", "heavy", "1000000", "60000", "token"}
				do(call...)
				do("CONFIG", "RESETSTAT")
				for b.Loop() {
					do(call...)
				}
				b.ReportMetric(usecPerCall(b, do("INFO", "commandstats")), "server-µs/op")
			})
		}
	}
}

var evalSHAStats = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`)

func usecPerCall(b *testing.B, info string) float64 {
	m := evalSHAStats.FindStringSubmatch(info)
	if m == nil {
		b.Fatalf("no figure of EVALSHA in %.200q", info)
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return f
}
