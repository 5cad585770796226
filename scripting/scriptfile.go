package scripting

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// scriptFile keeps the scripts of SCRIPT LOAD for the next start. The file is
// made of Redis commands, so that `redis-cli --pipe` can load it into any Redis:
// for each script
//
//	*3 $6 SCRIPT $4 LOAD   $n  <source>
//	*3 $6 SCRIPT $6 EXISTS $40 <SHA1 of the source>
//
// whose second half is the checksum of the first. A script is appended before
// SCRIPT LOAD is answered, so a program that is killed loses none; it is synced
// to the disk within a second. When half of the file is scripts that have left the
// cache, it is written anew and put in the old one's place.
//
// A file that cannot be written costs a line in the log and the scripts' life
// beyond the next start, never a command.
type scriptFile struct {
	cache *Cache
	log   *slog.Logger

	mu     sync.Mutex // held around a change of the cache too, so that file and cache agree
	path   string
	f      *os.File // nil after a failure, until the next attempt
	size   int64
	fresh  int64 // size when it was last written anew
	synced bool
	failed error

	wake chan struct{}
	stop chan struct{}
	done chan struct{}
}

const (
	// slackBytes is how much a small file may grow before it is written anew.
	slackBytes = 1 << 20
	// maxFileBytes is the largest file that is read.
	maxFileBytes = 1 << 30
	syncEvery    = time.Second
	mendEvery    = 10 * time.Second
)

// FileStatus is what INFO says of the file of scripts.
type FileStatus struct {
	Path  string // empty: scripts are not kept
	Bytes int64
	Err   error // why the newest scripts are not in it; nil: they are
}

// KeepIn reads the file of scripts at path, if there is one, into the cache, and
// keeps it up to date from then on, until Close. It is called before the first
// command. What is wrong with the file is logged, and what can be read of it is
// used; an error says that nothing will be kept.
func (r *Runner) KeepIn(path string) error {
	f := &scriptFile{
		cache: r.engine.Cache(), log: r.log, path: path,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := f.open(r.engine); err != nil {
		return err
	}
	r.file = f
	go f.keep()
	return nil
}

// MoveTo has the file of scripts written anew at another path, and kept there.
// The old one stays as it is.
func (r *Runner) MoveTo(path string) error {
	f := r.file
	if f == nil {
		return errors.New("scripts are not kept: see script-cache-file")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if path == f.path {
		return nil
	}
	if err := f.rewrite(path); err != nil {
		return err
	}
	f.path = path
	return nil
}

// File tells how the file of scripts does.
func (r *Runner) File() FileStatus {
	f := r.file
	if f == nil {
		return FileStatus{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return FileStatus{f.path, f.size, f.failed}
}

// Close syncs the file of scripts, if there is one, and ends the upkeep of it.
func (r *Runner) Close() {
	if f := r.file; f != nil {
		close(f.stop)
		<-f.done
	}
}

// open reads the file and makes it ready for appending.
func (f *scriptFile) open(e *Engine) error {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.rewrite(f.path)
	case err != nil:
		return fmt.Errorf("cannot use the file of scripts: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot use the file of scripts: %s is not a file", f.path)
	}
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("cannot use the file of scripts: %w", err)
	}
	if err := lockFile(file); err != nil {
		file.Close()
		return fmt.Errorf("cannot use the file of scripts: %s is in use by another server: %w", f.path, err)
	}
	if info.Size() > maxFileBytes {
		file.Close()
		return fmt.Errorf("cannot use the file of scripts: %s has %d bytes, more than %d", f.path, info.Size(), int64(maxFileBytes))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		file.Close()
		return fmt.Errorf("cannot use the file of scripts: %w", err)
	}
	f.f, f.size, f.fresh = file, int64(len(data)), int64(len(data))
	found := readScripts(data)
	refused := 0
	for _, src := range found.sources {
		s, err := e.Compile(src)
		if err != nil {
			refused++
			f.log.Warn("a kept script does not compile and is left out", "file", f.path, "sha", SumSHA1(src).String(), "err", err)
			continue
		}
		f.cache.Add(s, true)
	}
	switch {
	case found.damage != 0:
		aside, err := f.setAside(data)
		if err != nil {
			file.Close()
			return fmt.Errorf("the file of scripts %s is damaged at offset %d, and a copy cannot be made: %w", f.path, found.damagedAt, err)
		}
		f.log.Error("the file of scripts is damaged; what could be read of it is used",
			"file", f.path, "offset", found.damagedAt, "unreadable_bytes", found.damage, "scripts", len(found.sources), "copy", aside)
		return f.rewrite(f.path)
	case found.torn != 0:
		f.log.Warn("the file of scripts ended within a script, which was cut off",
			"file", f.path, "offset", found.tornAt, "cut_bytes", found.torn, "scripts", len(found.sources))
		if err := file.Truncate(int64(found.tornAt)); err != nil {
			file.Close()
			return fmt.Errorf("cannot cut the torn end off the file of scripts: %w", err)
		}
		f.size = int64(found.tornAt)
	}
	f.log.Info("scripts of SCRIPT LOAD are back", "file", f.path, "scripts", len(found.sources)-refused)
	if st := f.cache.Stats(); st.Scripts < len(found.sources)-refused {
		return f.rewrite(f.path) // the cache has become smaller
	}
	return nil
}

// setAside keeps a copy of a damaged file for whoever wants to look at it.
func (f *scriptFile) setAside(data []byte) (string, error) {
	aside := f.path + ".damaged"
	return aside, os.WriteFile(aside, data, 0o600)
}

// load adds a script to the cache and to the file.
func (f *scriptFile) load(s *Script) (kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, fresh := f.cache.Add(s, true)
	if !fresh {
		return kept
	}
	if f.f != nil {
		rec := appendScript(nil, s.Source, s.SHA)
		if _, err := f.f.Write(rec); err != nil {
			f.fail("cannot append to the file of scripts", err)
		} else {
			f.size += int64(len(rec))
		}
	}
	f.dirty()
	return true
}

// flush empties the cache and the file.
func (f *scriptFile) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cache.Flush()
	if f.f != nil {
		if err := f.f.Truncate(0); err != nil {
			f.fail("cannot empty the file of scripts", err)
		} else {
			f.size, f.fresh = 0, 0
		}
	}
	f.dirty()
}

// dirty has the upkeep look. The mutex is held.
func (f *scriptFile) dirty() {
	f.synced = false
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fail gives up the file until the next attempt. The mutex is held.
func (f *scriptFile) fail(what string, err error) {
	if f.failed == nil {
		f.log.Error(what+"; scripts loaded from now on may be missing after the next start, until it can be written again", "file", f.path, "err", err)
	}
	f.failed = err
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
}

// keep syncs the file, writes it anew when much of it is of no use any more, and
// mends it after a failure.
func (f *scriptFile) keep() {
	defer close(f.done)
	for {
		var retry <-chan time.Time
		f.mu.Lock()
		if f.failed != nil {
			retry = time.After(mendEvery)
		}
		f.mu.Unlock()
		select {
		case <-f.stop:
			f.upkeep()
			f.mu.Lock()
			if f.f != nil {
				f.f.Close()
				f.f = nil
			}
			f.mu.Unlock()
			return
		case <-retry:
			f.upkeep()
			continue
		case <-f.wake:
		}
		pause := time.NewTimer(syncEvery)
		select {
		case <-pause.C:
		case <-f.stop:
		}
		pause.Stop()
		f.upkeep()
	}
}

func (f *scriptFile) upkeep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil || f.size > 2*f.fresh+slackBytes {
		if err := f.rewrite(f.path); err != nil {
			f.fail("cannot write the file of scripts", err)
			return
		}
		if f.failed != nil {
			f.log.Info("the file of scripts is written again", "file", f.path)
			f.failed = nil
		}
		return
	}
	if f.synced {
		return
	}
	if err := f.f.Sync(); err != nil {
		// What the disk has of it now is unknown: it is written anew.
		f.fail("cannot sync the file of scripts", err)
		return
	}
	f.synced = true
}

// rewrite writes the loaded scripts of the cache to a new file and puts it at
// path. The mutex is held, but for the first time.
func (f *scriptFile) rewrite(path string) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write the file of scripts: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
			err = fmt.Errorf("cannot write the file of scripts: %w", err)
		}
	}()
	w := bufio.NewWriterSize(file, 64<<10)
	var rec []byte
	size := int64(0)
	for _, s := range f.cache.Loaded() {
		rec = appendScript(rec[:0], s.Source, s.SHA)
		if _, err := w.Write(rec); err != nil {
			return err
		}
		size += int64(len(rec))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := lockFile(file); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	f.f, f.size, f.fresh, f.synced = file, size, size, true
	return nil
}

// syncFolder makes a rename durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func appendScript(b []byte, source string, name SHA1) []byte {
	b = append(b, scriptHead...)
	b = strconv.AppendInt(b, int64(len(source)), 10)
	b = append(b, "\r\n"...)
	b = append(b, source...)
	b = append(b, scriptTail...)
	b = append(b, name[:]...)
	return append(b, "\r\n"...)
}
