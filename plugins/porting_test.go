package plugins_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestPorting: docs/PORTING.md says of every function of Redis's module API, as the header of Redis 7.2 declares them,
// what becomes of it, and names no function of ours that there is not.
func TestPorting(t *testing.T) {
	list, err := os.ReadFile("testdata/redis-module-api-7.2.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/PORTING.md")
	if err != nil {
		t.Fatal(err)
	}
	left := make(map[string]bool)
	for _, name := range strings.Fields(string(list)) {
		left[name] = true
	}
	ours := regexp.MustCompile("`([a-z]+_[a-z_]+)`")
	known := []string{"lk_wake", "lk_timer", "lk_event", "lk_closed"}
	for _, f := range plugins.HostFunctions() {
		known = append(known, f.Name)
	}
	inside := false
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) != 4:
			inside = false
		case strings.TrimSpace(cells[1]) == "Redis's module API":
			inside = true
		case !inside || strings.HasPrefix(cells[1], "---"):
		default:
			for name := range strings.SplitSeq(cells[1], ",") {
				if name = strings.TrimSpace(name); !left[name] {
					t.Errorf("%s is no function of Redis's, or has two lines", name)
				}
				delete(left, name)
			}
			if strings.TrimSpace(cells[2]) == "" {
				t.Errorf("nothing is said of%s", cells[1])
			}
			for _, m := range ours.FindAllStringSubmatch(cells[2], -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s is no function of ours, in place of%s", m[1], cells[1])
				}
			}
		}
	}
	for name := range left {
		t.Errorf("docs/PORTING.md does not say what becomes of RedisModule_%s", name)
	}
}
