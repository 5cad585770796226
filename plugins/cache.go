package plugins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// CompileFunc compiles instrumented code into dir, an empty folder, as CompileInto
// does. It returns ErrCompileTime when that takes more than so much processor
// time, counted in whole seconds, and ends with ctx.
type CompileFunc func(ctx context.Context, limit time.Duration, dir string, code []byte) error

// ErrCompileTime is what a CompileFunc returns for code that takes too long.
var ErrCompileTime = errors.New("plugins: compiling took too long")

// compilePatience is how many times its processor time a compilation may take on
// the clock: others may keep the processors busy.
const compilePatience = 10

// maxCacheBytes is how much native code the cache keeps; who was used longest ago
// leaves first.
const maxCacheBytes = 1 << 30

// runtimeConfig is how modules are compiled. Whoever compiles for the cache must
// use the same, or nothing is found there.
func runtimeConfig(maxPages int) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(uint32(maxPages))
}

// CompileInto compiles a module into dir in wazero's format. It is what the
// child process does; it registers and runs nothing.
func CompileInto(dir string, maxPages int, code []byte) error {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(maxPages).WithCompilationCache(cache))
	defer rt.Close(ctx)
	_, err = rt.CompileModule(ctx, code)
	return err
}

// codeCache is the folder of compiled modules. Its files are native code which
// the server runs, so it belongs to the server's user alone.
//
// Beside wazero's files, whose names only wazero can compute, stands one file
// for each module that was compiled, named by the digest of its instrumented
// code. It tells which of wazero's files it is, and that file's digest. So the server
// knows before it loads a module that it will find it, whole, and never
// compiles one itself.
type codeCache struct {
	dir     string
	compile CompileFunc
	mu      sync.Mutex // one compilation at a time, whoever asks
}

// openCodeCache makes the folder if it is not there. Everything in it must be out of reach
// of other users.
func openCodeCache(dir string, compile CompileFunc) (*codeCache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("plugin-cache-dir: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return nil, fmt.Errorf("plugin-cache-dir %s: %w", dir, err)
	}
	return &codeCache{dir: dir, compile: compile}, nil
}

// fill makes sure that the compiled form of code is in the cache. Compiling it
// takes no more than limit of processor time.
func (c *codeCache) fill(code []byte, limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	digest := sha256.Sum256(code)
	note := filepath.Join(c.dir, hex.EncodeToString(digest[:])+".entry")
	if c.holds(note) {
		now := time.Now()
		os.Chtimes(note, now, now) // for who leaves first
		return nil
	}
	work, err := os.MkdirTemp(c.dir, "compile-")
	if err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	defer os.RemoveAll(work)
	wall := min(max(limit, time.Second), math.MaxInt64/compilePatience) * compilePatience
	ctx, cancel := context.WithTimeout(context.Background(), wall)
	defer cancel()
	switch err := c.compile(ctx, limit, work, code); {
	case errors.Is(err, ErrCompileTime):
		return fmt.Errorf("compiling it took longer than plugin-max-compile-time, %v of processor time", limit)
	case ctx.Err() != nil:
		return fmt.Errorf("compiling it was not done after %v, for the machine is busy: plugin-max-compile-time is %v of processor time", wall, limit)
	case err != nil:
		return err
	}
	return c.adopt(work, note)
}

// holds tells whether what note names is there, as it was written.
func (c *codeCache) holds(note string) bool {
	text, err := os.ReadFile(note)
	if err != nil {
		return false
	}
	name, sum, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
	if !ok || !filepath.IsLocal(name) {
		return false
	}
	got, err := fileDigest(filepath.Join(c.dir, name))
	return err == nil && got == sum
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// adopt moves the one file that was compiled into work to its place, then notes
// it. Each step leaves the cache as it was or whole.
func (c *codeCache) adopt(work, note string) error {
	var found []string
	err := filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".tmp") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	if len(found) != 1 {
		return fmt.Errorf("the compiler left %d files, wanted one", len(found))
	}
	name, err := filepath.Rel(work, found[0])
	if err != nil {
		return err
	}
	sum, err := fileDigest(found[0])
	if err != nil {
		return err
	}
	to := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	if err := os.Rename(found[0], to); err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	temp := note + ".tmp"
	if err := os.WriteFile(temp, []byte(name+" "+sum+"\n"), 0o600); err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	if err := os.Rename(temp, note); err != nil {
		return fmt.Errorf("plugin-cache-dir: %w", err)
	}
	c.prune(note)
	return nil
}

// prune removes what was used longest ago until the rest fits. What was just
// added stays.
func (c *codeCache) prune(keep string) {
	notes, _ := filepath.Glob(filepath.Join(c.dir, "*.entry"))
	type entry struct {
		note, file string
		used       time.Time
		size       int64
	}
	var all []entry
	total := int64(0)
	for _, n := range notes {
		text, err := os.ReadFile(n)
		st, err2 := os.Stat(n)
		if err != nil || err2 != nil {
			continue
		}
		name, _, _ := bytes.Cut(text, []byte(" "))
		e := entry{note: n, used: st.ModTime()}
		if filepath.IsLocal(string(name)) {
			e.file = filepath.Join(c.dir, string(name))
			if st, err := os.Stat(e.file); err == nil {
				e.size = st.Size()
			}
		}
		total += e.size
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range all {
		if total <= maxCacheBytes {
			return
		}
		if e.note == keep {
			continue
		}
		os.Remove(e.note)
		if e.file != "" {
			os.Remove(e.file)
		}
		total -= e.size
	}
}

// errNotPrivate: somebody else could put native code into the cache.
var errNotPrivate = errors.New("the folder holds native code that the server runs; it must belong to the server's user and be closed to all others (mode 0700)")
