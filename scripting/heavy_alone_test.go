package scripting

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkHeavyAlone is the scripts of testdata/heavy that need no store, on the
// closure engine without a server around it: for profiles and counts of instructions.
func BenchmarkHeavyAlone(b *testing.B) {
	for _, name := range []string{"02-loop", "03-table", "04-hash-table", "05-sort", "06-cjson", "07-strings", "10-functions"} {
		source, err := os.ReadFile(filepath.Join("testdata/heavy", name+".lua"))
		if err != nil {
			b.Fatal(err)
		}
		_, name, _ = strings.Cut(name, "-")
		b.Run(name, func(b *testing.B) { benchmarkOn(b, newEngine(b, Options{}), string(source)) })
	}
}
