package plugin

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// sdks are the SDKs' files below plugins/sdk, which a new project gets as sdk/.
var sdks = map[string][]string{
	"go":   {"go/*.go", "go/go.mod"},
	"c":    {"c/*.h"},
	"rust": {"rust/Cargo.toml", "rust/src/*.rs"},
	"assemblyscript": {
		"assemblyscript/asconfig.json", "assemblyscript/package.json", "assemblyscript/package-lock.json",
		"assemblyscript/lib/*.ts", "assemblyscript/lib/latchkey/*.ts",
	},
}

// The archives of the SDKs are the SDKs as they are; LATCHKEY_UPDATE=1 makes them anew.
func TestSDKArchives(t *testing.T) {
	for _, lang := range languages() {
		var want txtar.Archive
		for _, pattern := range sdks[lang] {
			found, err := filepath.Glob(filepath.Join("../../../plugins/sdk", pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf("no files like %s: %v", pattern, err)
			}
			for _, path := range found {
				if strings.HasSuffix(path, "_test.go") {
					continue
				}
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				rel, err := filepath.Rel(filepath.Join("../../../plugins/sdk", lang), path)
				if err != nil {
					t.Fatal(err)
				}
				want.Files = append(want.Files, txtar.File{Name: "sdk/" + filepath.ToSlash(rel), Data: data})
			}
		}
		path := "templates/" + lang + ".sdk.txtar"
		text := txtar.Format(&want)
		if os.Getenv("LATCHKEY_UPDATE") != "" {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not the SDK as it is (%v): run LATCHKEY_UPDATE=1 go test ./cmd/latchkey/plugin -run SDKArchives", path, err)
		}
	}
}

// tools are what it takes to build a project, programs and paths, and the Debian packages they are in.
var tools = map[string][][2]string{
	"go":             {{"go", "golang"}},
	"c":              {{"clang", "clang"}, {"wasm-ld", "lld"}},
	"rust":           {{"/usr/bin/rustc", "rustc"}, {"/usr/lib/rustlib/wasm32-unknown-unknown", "libstd-rust-dev-wasm32"}, {"wasm-ld", "lld"}},
	"assemblyscript": {{"npm", "npm"}},
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path)
}

// A new project builds, and passes its own test.
func TestNewProjects(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "latchkey")
	if out, err := exec.Command("go", "build", "-o", program, "../").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	langs := languages()
	if underrace.On { // the work is the compilers', which do not run under it
		langs = []string{"c"}
	}
	for _, lang := range langs {
		t.Run(lang, func(t *testing.T) {
			for _, tool := range tools[lang] {
				if _, err := exec.LookPath(tool[0]); err == nil || exists(tool[0]) {
					continue
				}
				if os.Getenv("LATCHKEY_CI") == "1" {
					t.Fatalf("%s not found: install the Debian package %s", tool[0], tool[1])
				}
				// It may: who writes plugins in one language need not have the compilers of the others.
				t.Skipf("%s not found: install the Debian package %s", tool[0], tool[1])
			}
			name := "my-plugin2"
			if lang == "go" {
				name = "fmt" // which is Go's own
			}
			project := filepath.Join(dir, lang)
			if code := newProject([]string{"--lang", lang, name, project}, io.Discard, os.Stderr); code != exitOK {
				t.Fatalf("exit code %d", code)
			}
			run := func(name string, args ...string) string {
				cmd := exec.Command(name, args...)
				cmd.Dir = project
				cmd.Env = append(os.Environ(), "LATCHKEY="+program, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "GOFLAGS=-mod=mod")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			run("sh", "build.sh")
			run(program, "plugin", "inspect", name+".wasm")
			if out := run(program, "plugin", "test", name+".wasm", name+".transcript"); !strings.Contains(out, "22 commands in RESP2 and RESP3, 0 of them") {
				t.Errorf("the project's test says %q", out)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "new takes --lang"},
		{[]string{"x"}, exitUsage, "new takes --lang"},
		{[]string{"--lang", "cobol", "x"}, exitUsage, "the languages are"},
		{[]string{"--lang", "go", "Big"}, exitUsage, "cannot be a plugin's name"},
		{[]string{"--lang", "go", "../x"}, exitUsage, "cannot be a plugin's name"},
		{[]string{"--lang", "go", "x", full}, exitFailed, "is not empty"},
		{[]string{"--lang", "go", "x", filepath.Join(full, "mine")}, exitFailed, "mine"},
	} {
		var said bytes.Buffer
		if code := newProject(tt.args, io.Discard, &said); code != tt.code || !strings.Contains(said.String(), tt.want) {
			t.Errorf("new %q: exit code %d and %q, want %d and %q", tt.args, code, said.String(), tt.code, tt.want)
		}
	}
	if !slices.Contains(languages(), "go") {
		t.Error("no template for Go")
	}
}
