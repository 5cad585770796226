package scripting

import (
	"strings"
	"testing"
)

// The virtual machine fills a table up to an index beyond its array; a script pays for
// the array and the one that it outgrew before there is either. Closures fill nothing.
func TestGapIsCharged(t *testing.T) {
	vm, closures := bothEngines(t)
	for _, src := range []string{
		"local t = {} t[1000000] = 1 return 1",
		"local t = {1, 2, 3} t[1000000] = 1 return 1",
		"local t = {} table.insert(t, 1000000, 1) return 1",
		"local t, i = {}, 1000000 t[i] = 1 return 1",
	} {
		grown := watchHeap()
		const room = 30 << 20 // for the array, but not for both
		if got := eval(vm, newFakeStore(), src, Limits{Memory: room}); !strings.Contains(got, "memory") {
			t.Errorf("%s\non the machine with %d MB: %q", src, room>>20, got)
		}
		if most := grown(); most > room/2 {
			t.Errorf("%s\nthe heap grew by %d MB before the script was ended", src, most>>20)
		}
		if got := eval(vm, newFakeStore(), src, Limits{Memory: 64 << 20}); got != ":1\r\n" {
			t.Errorf("%s\non the machine with 64 MB: %q", src, got)
		}
		if got := eval(closures, newFakeStore(), src, Limits{Memory: 1 << 20}); got != ":1\r\n" {
			t.Errorf("%s\non closures with 1 MB: %q", src, got)
		}
	}
}
