package plugins_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store/command"
)

func TestPut(t *testing.T) {
	dir := t.TempDir()
	anybody := func(*command.Call) bool { return true }
	wasm, err := os.ReadFile(cad("c"))
	if err != nil {
		t.Fatal(err)
	}
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}

	closed := newBench(t, plugins.Options{Dir: dir})
	if got := closed.do("LATCHKEY", "PLUGIN", "PUT", "cad", digest(wasm), string(wasm)); !strings.HasPrefix(got, "-ERR LATCHKEY PLUGIN PUT not allowed.") {
		t.Errorf("PUT is off unless allowed: %s", got)
	}
	nowhere := newBench(t, plugins.Options{PutAllowed: anybody})
	nowhere.want("-ERR plugin-dir is not set; it is where modules are stored", "LATCHKEY", "PLUGIN", "PUT", "cad", digest(wasm), string(wasm))

	b := newBench(t, plugins.Options{Dir: dir, PutAllowed: anybody})
	for name, tt := range map[string]struct{ name, digest, bytes, want string }{
		"another digest":      {"cad", digest(nil), string(wasm), "the file's SHA-256 is"},
		"no digest":           {"cad", "", string(wasm), "wanted sha256: and the 64 hexadecimal digits"},
		"a name not its own":  {"dac", digest(wasm), string(wasm), "hold the module cad, wanted dac"},
		"a path for a name":   {"../cad", digest(wasm), string(wasm), "hold the module cad, wanted ../cad"},
		"a native library":    {"cad", digest([]byte("\x7fELF")), "\x7fELF", "native library (ELF)"},
		"no module":           {"cad", digest([]byte("x")), "x", "not a WebAssembly module"},
		"without a manifest":  {"cad", digest(wasm[:8]), string(wasm[:8]), "no custom section latchkey.manifest"},
		"not PUT":             {"cad", "", "", ""},
		"what does not parse": {"cad", digest(wasm[:len(wasm)-3]), string(wasm[:len(wasm)-3]), ""},
	} {
		sub := "PUT"
		if name == "not PUT" {
			sub, tt.want = "GET", "LATCHKEY PLUGIN takes PUT, not 'GET'"
		}
		if got := b.do("LATCHKEY", "PLUGIN", sub, tt.name, tt.digest, tt.bytes); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Fatalf("%s: left in plugin-dir: %v", name, left)
		}
	}

	path := filepath.Join(dir, "cad.wasm")
	if got := b.do("LATCHKEY", "PLUGIN", "PUT", "CAD", digest(wasm), string(wasm)); !strings.Contains(got, "wanted CAD") {
		t.Errorf("names have their case: %s", got)
	}
	b.want("$"+lengthOf(path)+"\r\n"+path, "LATCHKEY", "PLUGIN", "PUT", "cad", strings.ToUpper(digest(wasm)), string(wasm))
	b.want("+OK", "MODULE", "LOAD", path, "sha256:"+digest(wasm))
	b.want("$"+lengthOf(path)+"\r\n"+path, "LATCHKEY", "PLUGIN", "PUT", "cad.wasm", "SHA256:"+digest(wasm), string(wasm))
	b.want("+OK", "MODULE", "RELOAD", "cad")
	b.want(":-1", "CAD.WASM", "k", "v")
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("in plugin-dir: %v, want the module alone", left)
	}
	// What was there with another mode, too, is for the server alone then.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	b.want("$"+lengthOf(path)+"\r\n"+path, "LATCHKEY", "PLUGIN", "PUT", "cad", digest(wasm), string(wasm))
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("the module's file: mode %v, %v; want 0600", st.Mode(), err)
	}
}

func lengthOf(s string) string { return strconv.Itoa(len(s)) }
