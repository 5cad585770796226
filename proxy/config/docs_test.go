package config

import (
	"os"
	"strings"
	"testing"
)

const docsPath = "../../docs/CONFIG.md"

func TestDocs(t *testing.T) {
	want := Docs()
	if os.Getenv("LATCHKEY_UPDATE") == "1" {
		if err := os.WriteFile(docsPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/CONFIG.md is not what the directive table says; run LATCHKEY_UPDATE=1 go test ./proxy/config -run Docs")
	}
}

// TestTable checks what the types cannot: every entry is complete and means what it says.
func TestTable(t *testing.T) {
	for _, d := range New().Directives() {
		if d.Summary == "" || !strings.HasSuffix(d.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", d.Name, d.Summary)
		}
		if d.Group == "" {
			t.Errorf("%s has no group", d.Name)
		}
		if d.Kind.number() && d.Min > d.Max {
			t.Errorf("%s: least value %d is above greatest %d", d.Name, d.Min, d.Max)
		}
		if (d.Kind == Enum || d.Kind == Flags) != (len(d.Enum) > 0) {
			t.Errorf("%s: kind %s with choices %q", d.Name, d.Kind, d.Enum)
		}
		if d.Kind == Lines && (d.Mutable || d.Default != "") {
			t.Errorf("%s: lines have no default and cannot be set at runtime", d.Name)
		}
		if d.Protected && !d.Mutable {
			t.Errorf("%s is protected but nobody may set it", d.Name)
		}
	}
}
