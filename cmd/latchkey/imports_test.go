package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/latchkey-proxy/latchkey"

// room is a folder whose packages, those of deeper folders included, stand on
// one line of the house: they may import what stands on lines below.
type room struct {
	path string
	line int
	may  []string // exceptions: rooms on the same line
}

// leaf is the lowest line: what stands there imports no room.
const leaf = 5

// house is the one that docs/ARCHITECTURE.md draws.
var house = []room{
	{path: "cmd/latchkey", line: 0},
	{path: "examples", line: 0},

	{path: "proxy", line: 1},

	{path: "scripting", line: 2},
	{path: "plugins", line: 2},

	{path: "store/command", line: 3},

	{path: "store", line: 4},

	{path: "cmd/latchkey/cli", line: leaf, may: []string{"proxy/quoting"}}, // the prompt takes words
	{path: "store/underload", line: leaf},
	{path: "store/underrace", line: leaf},
	{path: "plugins/fuel", line: leaf},
	{path: "plugins/manifest", line: leaf},
	{path: "proxy/config", line: leaf, may: []string{"store/glob", "proxy/quoting"}}, // CONFIG GET takes patterns; lines are words
	{path: "proxy/netloop", line: leaf},
	{path: "proxy/quoting", line: leaf},
	{path: "proxy/resp", line: leaf},
	{path: "proxy/upstream", line: leaf, may: []string{"proxy/resp"}}, // replies are frames
	{path: "store/aof", line: leaf},
	{path: "store/command/transcript", line: leaf, may: []string{"proxy/quoting"}}, // lines are words
	{path: "store/glob", line: leaf},
	{path: "store/rdb", line: leaf},
}

// TestImports keeps the imports pointing down. Tests may import what they like.
func TestImports(t *testing.T) {
	imports := packages(t)
	if len(imports) < 10 {
		t.Errorf("only %d packages were found: does go list see the whole module?", len(imports))
	}
	for _, text := range violations(house, imports) {
		t.Error(text)
	}
}

// TestImportsRules shows that the rules can be broken, and how that reads.
func TestImportsRules(t *testing.T) {
	const other = "golang.org/x/sys/unix"
	tests := []struct {
		name    string
		imports map[string][]string
		want    []string
	}{
		{"down", map[string][]string{
			"cmd/latchkey":   {"proxy", "scripting", "cmd/latchkey/cli"},
			"proxy":          {"store/command", "store", "proxy/resp"},
			"plugins":        {"plugins/fuel", "store/command"},
			"proxy/upstream": {"proxy/resp"},
		}, nil},
		{"within a room", map[string][]string{"scripting": {"scripting/cjson"}}, nil},
		{"not ours", map[string][]string{"store": {other}}, nil},
		{
			"up",
			map[string][]string{"store": {"store/command"}},
			[]string{"store imports store/command, which stands above it (lines 4 and 3 of the house)"},
		},
		{
			"across",
			map[string][]string{"scripting": {"plugins"}},
			[]string{"scripting imports plugins, which stands beside it (line 2 of the house)"},
		},
		{
			"deeper folders",
			map[string][]string{"store/command/x": {"proxy/y/z"}},
			[]string{"store/command/x imports proxy/y/z, which stands above it (lines 3 and 1 of the house)"},
		},
		{
			"a leaf and a leaf",
			map[string][]string{"proxy/resp": {"proxy/upstream"}},
			[]string{"proxy/resp imports proxy/upstream, which stands beside it (line 5 of the house)"},
		},
		{
			"a leaf and the room around it",
			map[string][]string{"plugins/fuel": {"plugins"}},
			[]string{"plugins/fuel imports plugins, which stands above it (lines 5 and 2 of the house)"},
		},
		{
			"no room",
			map[string][]string{"attic": {"store"}, "store": {"cellar"}},
			[]string{"attic stands in no room of the house", "store imports cellar, which stands in no room of the house"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			full := make(map[string][]string)
			for pkg, list := range tt.imports {
				for _, path := range list {
					if path != other {
						path = module + "/" + path
					}
					full[module+"/"+pkg] = append(full[module+"/"+pkg], path)
				}
			}
			if got := violations(house, full); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// violations returns a sentence for each import that does not point down. The
// keys of imports are packages of the module, the values what they import.
func violations(house []room, imports map[string][]string) []string {
	var found []string
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		from := strings.TrimPrefix(pkg, module+"/")
		a, ok := roomOf(house, from)
		if !ok {
			found = append(found, from+" stands in no room of the house")
			continue
		}
		for _, imported := range imports[pkg] {
			to, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			b, ok := roomOf(house, to)
			switch {
			case !ok:
				found = append(found, fmt.Sprintf("%s imports %s, which stands in no room of the house", from, to))
			case a.path == b.path || b.line > a.line || slices.Contains(a.may, b.path):
			case a.line == b.line:
				found = append(found, fmt.Sprintf("%s imports %s, which stands beside it (line %d of the house)", from, to, a.line))
			default:
				found = append(found, fmt.Sprintf("%s imports %s, which stands above it (lines %d and %d of the house)", from, to, a.line, b.line))
			}
		}
	}
	return found
}

// roomOf is the room of the deepest folder that holds the package.
func roomOf(house []room, pkg string) (room, bool) {
	var found room
	for _, r := range house {
		if (pkg == r.path || strings.HasPrefix(pkg, r.path+"/")) && len(r.path) > len(found.path) {
			found = r
		}
	}
	return found, found.path != ""
}

// packages are the module's packages and what they import, tests aside.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-pgo=off", "-json=ImportPath,Imports", module+"/...") // a profile makes packages of each program's own
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	imports := make(map[string][]string)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return imports
		}
		if err != nil {
			t.Fatalf("read the output of go list: %v", err)
		}
		imports[p.ImportPath] = p.Imports
	}
}
