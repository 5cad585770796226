//go:build unix

package plugins_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestBadPaths: whatever a path leads to, the error says which file, what was found
// and what is wanted, at once. Nothing is told of what lies elsewhere.
func TestBadPaths(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "plugins")
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	good, err := os.ReadFile(cad("c"))
	must(err)
	must(os.MkdirAll(in("folder.wasm"), 0o700))
	must(os.WriteFile(filepath.Join(top, "outside.wasm"), good, 0o600))
	must(os.Symlink("../outside.wasm", in("leads-out")))
	must(os.Symlink("..", in("up")))
	must(os.Symlink("nowhere", in("leads-nowhere")))
	must(os.Symlink("circle", in("circle")))
	must(os.Symlink(in("good"), in("leads-in")))
	must(os.Symlink(dir, filepath.Join(top, "other-name")))
	must(syscall.Mkfifo(in("pipe"), 0o600))
	l, err := net.Listen("unix", in("socket"))
	must(err)
	defer l.Close()
	for name, content := range map[string]string{
		"good": string(good), "empty": "", "text": "hello\n", "three": "\x00as", "four": "\x00asm", "elf": "\x7fELF\x02", "macho": "\xcf\xfa\xed\xfe",
		"wat": " (module)", "version 2": "\x00asm\x02\x00\x00\x00", "component": "\x00asm\x0d\x00\x01\x00", "bare": "\x00asm\x01\x00\x00\x00",
		"line\nbreak": "x", "forbidden": string(good),
	} {
		must(os.WriteFile(in(name), []byte(content), 0o600))
	}
	must(os.Chmod(in("forbidden"), 0))
	large, err := os.Create(in("large"))
	must(err)
	must(large.Truncate(16<<20 + 1))
	must(large.Close())

	const only = "modules are loaded from plugin-dir %s only"
	b := newBench(t, plugins.Options{Dir: dir})
	for path, want := range map[string]string{
		"":                                   `"": the path is empty; wanted that of a WebAssembly module (.wasm) in plugin-dir ` + dir,
		"nosuch.wasm":                        "nosuch.wasm: " + fmt.Sprintf(only, dir),
		top:                                  top + ": " + fmt.Sprintf(only, dir),
		"/":                                  "/: " + fmt.Sprintf(only, dir),
		"../../../../../../../../etc/passwd": fmt.Sprintf(only, dir),
		top + "/outside.wasm":                fmt.Sprintf(only, dir),
		top + "/not-there.wasm":              fmt.Sprintf(only, dir),
		dir + "/../outside.wasm":             fmt.Sprintf(only, dir),
		dir + "/../not-there.wasm":           fmt.Sprintf(only, dir),
		in("leads-out"):                      fmt.Sprintf(only, dir),
		in("up/outside.wasm"):                fmt.Sprintf(only, dir),
		dir:                                  dir + ": found a directory, wanted a regular file",
		in("folder.wasm"):                    "found a directory, wanted a regular file",
		in("pipe"):                           "found a named pipe, wanted a regular file",
		in("socket"):                         "found a socket, wanted a regular file",
		in("nosuch"):                         in("nosuch") + ": no such file or directory; wanted a WebAssembly module (.wasm) in plugin-dir " + dir,
		in("leads-nowhere"):                  "no such file or directory; wanted",
		in("circle"):                         "too many symbolic links",
		in("good/x"):                         "not a directory",
		in("empty"):                          "not a WebAssembly module: the file is empty",
		in("text"):                           `not a WebAssembly module: it begins with "hello\n", wanted "\x00asm"`,
		in("three"):                          `it begins with "\x00as", wanted "\x00asm"`,
		in("four"):                           "it ends after 4 bytes, within its head",
		in("elf"):                            "this is a native library (ELF), made for Redis's C module API; latchkey loads WebAssembly modules (.wasm) with a latchkey.manifest section",
		in("macho"):                          "this is a native library (Mach-O)",
		in("wat"):                            "but the text of one; wat2wasm makes a module of it",
		in("version 2"):                      "this is WebAssembly of version 2, wanted 1",
		in("component"):                      "this is a WebAssembly component, wanted a module (version 1)",
		in("bare"):                           "no custom section latchkey.manifest; latchkey plugin pack puts one in",
		in("large"):                          "the file has 16777217 bytes, at most 16777216 are read",
		in("line\nbreak"):                    `line\nbreak": not a WebAssembly module`,
		in("nul\x00byte"):                    `nul\x00byte": invalid argument`,
		in(strings.Repeat("x", 5000)):        "...: file name too long",
	} {
		got := b.do("MODULE", "LOAD", path)
		if !strings.HasPrefix(got, "-ERR Error loading the extension: ") || !strings.Contains(got, want) || len(got) > 700+len(dir) {
			t.Errorf("%.80q: %s\nwant %s", path, got, want)
		}
	}
	if os.Geteuid() != 0 {
		if got := b.do("MODULE", "LOAD", in("forbidden")); !strings.HasSuffix(got, in("forbidden")+": permission denied") {
			t.Errorf("a file that may not be read: %s", got)
		}
	}
	b.want("*0", "MODULE", "LIST")
	// By whatever name: what lies in plugin-dir is loaded.
	for _, path := range []string{in("leads-in"), dir + "/folder.wasm/../good", filepath.Join(top, "other-name", "good")} {
		b.want("+OK", "MODULE", "LOAD", path)
		b.want("+OK", "MODULE", "UNLOAD", "cad")
	}
	free := newBench(t, plugins.Options{})
	if got := free.do("MODULE", "LOAD", "/nosuch.wasm"); !strings.HasSuffix(got, ": /nosuch.wasm: no such file or directory; wanted a WebAssembly module (.wasm)") {
		t.Errorf("without plugin-dir: %s", got)
	}
	if _, err := os.Stat("/proc/version"); err == nil {
		if got := free.do("MODULE", "LOAD", "/proc/version"); !strings.HasSuffix(got, ": /proc/version: not a WebAssembly module: the file is empty") {
			t.Errorf("a file that the system makes up as it is read: %s", got)
		}
	}
	gone := newBench(t, plugins.Options{Dir: in("gone")})
	if got := gone.do("MODULE", "LOAD", in("good")); !strings.HasSuffix(got, "modules are loaded from plugin-dir "+in("gone")+" only: no such file or directory") {
		t.Errorf("plugin-dir that is not there: %s", got)
	}
}
