package scripting

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keeping is a runner whose scripts are kept at path, and what it logs.
func keeping(t *testing.T, path string, opts Options) (*Runner, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	r := NewRunner(newEngine(t, opts), Settings{}, 1, slog.New(slog.NewTextHandler(&log, nil)))
	if err := r.KeepIn(path); err != nil {
		t.Fatal(err)
	}
	return r, &log
}

func mustLoad(t *testing.T, r *Runner, src string) SHA1 {
	t.Helper()
	s := compiled(t, r.engine, src)
	if !r.load(s) {
		t.Fatalf("%q was not loaded", src)
	}
	return s.SHA
}

// loadedSources are what the cache holds of SCRIPT LOAD, in the order of use.
func loadedSources(r *Runner) []string {
	var out []string
	for _, s := range r.engine.Cache().Loaded() {
		out = append(out, s.Source)
	}
	return out
}

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestScriptsOutliveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripts")
	r, _ := keeping(t, path, Options{})
	sources := []string{"return 1", "return [[\r\n*3\r\n$6\r\nSCRIPT\r\n]]", "--\x00\xff\nreturn KEYS[1]"}
	for _, src := range sources {
		mustLoad(t, r, src)
		mustLoad(t, r, src) // once is enough
	}
	r.engine.Cache().Add(compiled(t, r.engine, "return 'of EVAL'"), false)
	// What a program that is killed now leaves behind:
	killed := filepath.Join(t.TempDir(), "scripts")
	if err := os.WriteFile(killed, fileOf(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, p := range []string{killed, path} {
		r, log := keeping(t, p, Options{})
		if got := loadedSources(r); !slices.Equal(got, sources) {
			t.Errorf("after the restart the loaded scripts are %q, want %q", got, sources)
		}
		if strings.Contains(log.String(), "WARN") || strings.Contains(log.String(), "ERROR") {
			t.Errorf("a whole file was complained of: %s", log)
		}
		r.Close()
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v (%v), want 0600: sources are nobody else's", info.Mode().Perm(), err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("there are %q, want the file alone", left)
	}
}

// TestScriptFileCutAnywhere cuts the file at each byte: what was whole is there,
// the torn end is reported, and the file goes on from there.
func TestScriptFileCutAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripts")
	r, _ := keeping(t, path, Options{})
	sources := []string{"return 1", "return 'two'", "return {3, [[\r\n]]}"}
	ends := []int{0}
	for _, src := range sources {
		mustLoad(t, r, src)
		ends = append(ends, len(fileOf(t, path)))
	}
	r.Close()
	whole := fileOf(t, path)
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for want+1 < len(ends) && ends[want+1] <= n {
			want++
		}
		r, log := keeping(t, path, Options{})
		if got := loadedSources(r); !slices.Equal(got, sources[:want]) {
			t.Fatalf("cut at byte %d: loaded are %q, want the first %d", n, got, want)
		}
		if torn := n != ends[want]; torn != strings.Contains(log.String(), fmt.Sprintf("offset=%d cut_bytes=%d", ends[want], n-ends[want])) {
			t.Fatalf("cut at byte %d of a record that begins at %d: the log says %s", n, ends[want], log)
		}
		mustLoad(t, r, "return 'after'")
		r.Close()
		r, _ = keeping(t, path, Options{})
		if got := loadedSources(r); len(got) != want+1 || got[want] != "return 'after'" {
			t.Fatalf("cut at byte %d, then a script was loaded: the next start has %q", n, got)
		}
		r.Close()
	}
}

// TestScriptFileDamagedAnywhere changes each byte: no other script than those that
// were loaded comes back, at most one is missing, and the damage is reported.
func TestScriptFileDamagedAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripts")
	r, _ := keeping(t, path, Options{})
	sources := []string{"return 1", "return 'two'", "return {3}"}
	for _, src := range sources {
		mustLoad(t, r, src)
	}
	r.Close()
	whole := fileOf(t, path)
	for n := range whole {
		bad := bytes.Clone(whole)
		bad[n] ^= 0x11
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, log := keeping(t, path, Options{})
		got := loadedSources(r)
		for _, src := range got {
			if !slices.Contains(sources, src) {
				t.Fatalf("byte %d was changed: %q came out of it", n, src)
			}
		}
		if len(got) != len(sources)-1 {
			t.Fatalf("byte %d was changed: %d scripts are left, want %d", n, len(got), len(sources)-1)
		}
		if !strings.Contains(log.String(), "offset=") {
			t.Fatalf("byte %d was changed: the log does not say where: %s", n, log)
		}
		r.Close()
		if found := readScripts(fileOf(t, path)); len(found.sources) != 2 || found.damage != 0 || found.torn != 0 {
			t.Fatalf("byte %d was changed: the mended file has %d scripts, %d damaged and %d torn bytes", n, len(found.sources), found.damage, found.torn)
		}
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Errorf("no copy of the damaged file is kept: %v", err)
	}
}

func TestScriptFileStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scripts")
	r, _ := keeping(t, path, Options{CacheScripts: 10})
	src := func(n int) string { return fmt.Sprintf("--%s\nreturn %d", strings.Repeat("x", 10_000), n) }
	for n := range 130 {
		mustLoad(t, r, src(n))
		r.file.upkeep() // which a timer calls
		if size := len(fileOf(t, path)); size > 2*10*11_000+slackBytes+11_000 {
			t.Fatalf("ten scripts of 10 kB take a file of %d bytes", size)
		}
	}
	r.Close()
	r, _ = keeping(t, path, Options{CacheScripts: 3})
	if got := loadedSources(r); len(got) != 3 || got[2] != src(129) || got[0] != src(127) {
		t.Errorf("a smaller cache holds %d scripts, want the three newest", len(got))
	}
	r.file.flush()
	if got := r.File(); got.Bytes != 0 || got.Err != nil || len(fileOf(t, path)) != 0 {
		t.Errorf("after SCRIPT FLUSH: %+v, %d bytes on the disk", got, len(fileOf(t, path)))
	}
	mustLoad(t, r, "return 'after'")
	r.Close()
	r, _ = keeping(t, path, Options{})
	defer r.Close()
	if got := loadedSources(r); !slices.Equal(got, []string{"return 'after'"}) {
		t.Errorf("after SCRIPT FLUSH, SCRIPT LOAD and a restart: %q", got)
	}
}

// TestScriptFileFails: a file that cannot be written costs no command, is
// reported once, and is mended when it can be.
func TestScriptFileFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "scripts")
	r, log := keeping(t, path, Options{})
	r.file.mu.Lock()
	r.file.f.Close() // the disk is gone
	r.file.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		mustLoad(t, r, fmt.Sprintf("return %d", n))
		r.file.upkeep()
	}
	if err := r.File().Err; err == nil || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("the failure is shown as %v, and logged %d times, want once:\n%s", err, strings.Count(log.String(), "level=ERROR"), log)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.file.upkeep()
	if err := r.File().Err; err != nil {
		t.Errorf("the file can be written again, still: %v", err)
	}
	r.Close()
	r, _ = keeping(t, path, Options{})
	defer r.Close()
	if got := loadedSources(r); len(got) != 5 {
		t.Errorf("%d scripts are back after the disk was, want 5", len(got))
	}
}

func TestScriptFileThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "scripts")
	first, _ := keeping(t, path, Options{})
	defer first.Close()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		path:                                  "is in use by another server",
		filepath.Join(dir, "folder"):          "is not a file",
		filepath.Join(dir, "none", "scripts"): "no such file or directory",
	} {
		r := NewRunner(newEngine(t, Options{}), Settings{}, 1, slog.New(slog.DiscardHandler))
		if err := r.KeepIn(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("KeepIn(%s): %v, want %q", p, err, want)
		}
		if !r.load(compiled(t, r.engine, "return 1")) || r.File() != (FileStatus{}) {
			t.Errorf("without a file a script cannot be loaded")
		}
		r.Close()
	}
}

func TestScriptFileMoves(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "scripts"), filepath.Join(t.TempDir(), "scripts")
	r, _ := keeping(t, one, Options{})
	mustLoad(t, r, "return 1")
	if err := r.MoveTo(filepath.Join(one, "none")); err == nil {
		t.Error("a move to where there is no folder went well")
	}
	mustLoad(t, r, "return 2")
	if err := r.MoveTo(two); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, r, "return 3")
	r.Close()
	for path, want := range map[string]int{one: 2, two: 3} {
		r, _ := keeping(t, path, Options{})
		if got := loadedSources(r); len(got) != want {
			t.Errorf("%s holds %q, want %d scripts", path, got, want)
		}
		r.Close()
	}
}

func FuzzReadScripts(f *testing.F) {
	f.Add(appendScript(appendScript(nil, "return 1", SumSHA1([]byte("return 1"))), "", SumSHA1(nil)))
	f.Add([]byte(scriptHead + "9999999999\r\nreturn 1" + scriptTail))
	f.Fuzz(func(t *testing.T, data []byte) {
		found := readScripts(data)
		n := found.torn + found.damage
		for _, src := range found.sources {
			n += len(appendScript(nil, string(src), SumSHA1(src)))
		}
		// A length with leading zeros reads as the same record, one byte longer.
		if n > len(data) {
			t.Errorf("%d bytes were accounted for, there are %d", n, len(data))
		}
	})
}
