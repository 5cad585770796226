package plugins

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// MaxFile bounds the file of a module, in bytes.
const MaxFile = 16 << 20

// read returns the bytes of a module's file, which must lie in Dir, and where it
// lies when all links are followed. The error begins with the path.
func (h *Host) read(path string) ([]byte, string, error) {
	real, err := h.locate(path)
	var wasm []byte
	if err == nil {
		if wasm, err = readRegular(real, MaxFile); err == nil {
			err = checkFile(wasm)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w; wanted %s", err, h.wanted())
	case err == nil:
		return wasm, real, nil
	}
	return nil, "", fmt.Errorf("%s: %w", shown(path), err)
}

// wanted is what a path must name.
func (h *Host) wanted() string {
	if h.opt.Dir == "" {
		return "a WebAssembly module (.wasm)"
	}
	return "a WebAssembly module (.wasm) in plugin-dir " + h.opt.Dir
}

// shown is a path as an error says it.
func shown(path string) string {
	const most = 256
	if quoted := fmt.Sprintf("%q", path); path == "" || quoted != `"`+path+`"` {
		path = quoted
	}
	if len(path) > most {
		return path[:most] + "..."
	}
	return path
}

// locate follows all links of a path, which must lead into Dir. Of what lies
// elsewhere nothing is told, not even whether it is there.
func (h *Host) locate(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path is empty; wanted that of " + h.wanted())
	}
	real, err := follow(path)
	if h.opt.Dir == "" {
		return real, err
	}
	dir, problem := follow(h.opt.Dir)
	if problem != nil {
		return "", fmt.Errorf("modules are loaded from plugin-dir %s only: %v", h.opt.Dir, problem)
	}
	in := within(dir, real)
	if err != nil {
		in = within(dir, absolute(path)) || within(absolute(h.opt.Dir), absolute(path))
	}
	if !in {
		return "", fmt.Errorf("modules are loaded from plugin-dir %s only", h.opt.Dir)
	}
	return real, err
}

func follow(path string) (string, error) {
	real, err := filepath.EvalSymlinks(absolute(path))
	if err != nil {
		if err = plain(err); strings.HasSuffix(err.Error(), "too many links") {
			err = errors.New("too many symbolic links")
		}
		return "", err
	}
	return real, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path // there is no working directory; so it will not be found
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// ReadFile returns the bytes of a file that is to be a module, or a part of one. The
// error, which begins with the path, says what was found if that is no regular file,
// or one of more than max bytes.
func ReadFile(path string, max int) ([]byte, error) {
	real, err := follow(path)
	var b []byte
	if err == nil {
		b, err = readRegular(real, int64(max))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(path), err)
	}
	return b, nil
}

// readRegular reads the file at path, which has no links in it.
func readRegular(path string, max int64) ([]byte, error) {
	// It is not opened before it is known what it is: for a pipe that waits, and to a
	// device it may do something. Nor does it wait if the file was exchanged since.
	st, err := os.Lstat(path)
	if err != nil {
		return nil, plain(err)
	}
	if err := checkRegular(st, max); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		return nil, plain(err)
	}
	if err := checkRegular(st, max); err != nil {
		return nil, err
	}
	if st.Size() == 0 {
		// Nor is anything read of what makes it up as it is asked, and may never end: /proc/kmsg is a
		// regular file of no bytes.
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	switch {
	case err != nil:
		return nil, plain(err)
	case int64(len(b)) > max:
		return nil, tooLarge(int64(len(b)), max)
	}
	return b, nil
}

// checkRegular refuses what is no file, or a file that is too large to look at.
func checkRegular(st fs.FileInfo, max int64) error {
	found := "something else"
	switch mode := st.Mode(); {
	case mode.IsRegular() && st.Size() > max:
		return tooLarge(st.Size(), max)
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		found = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		found = "a named pipe"
	case mode&fs.ModeSocket != 0:
		found = "a socket"
	case mode&fs.ModeDevice != 0:
		found = "a device"
	}
	return fmt.Errorf("found %s, wanted a regular file", found)
}

func tooLarge(size, max int64) error {
	return fmt.Errorf("the file has %d bytes, at most %d are read", size, max)
}

// natives are the formats of libraries that are made for the machine, by how they
// begin.
var natives = []struct{ magic, name string }{
	{"\x7fELF", "ELF"}, {"\xcf\xfa\xed\xfe", "Mach-O"}, {"\xca\xfe\xba\xbe", "Mach-O"}, {"MZ", "PE"},
}

// checkFile refuses what is no WebAssembly module.
func checkFile(wasm []byte) error {
	const magic = "\x00asm"
	if len(wasm) > MaxFile {
		return tooLarge(int64(len(wasm)), MaxFile)
	}
	for _, n := range natives {
		if bytes.HasPrefix(wasm, []byte(n.magic)) {
			return fmt.Errorf("this is a native library (%s), made for Redis's C module API; latchkey loads WebAssembly modules (.wasm) with a %s section", n.name, manifest.SectionName)
		}
	}
	switch {
	case len(wasm) == 0:
		return errors.New("not a WebAssembly module: the file is empty")
	case bytes.HasPrefix(bytes.TrimSpace(wasm[:min(len(wasm), 256)]), []byte("(module")):
		return errors.New("not a WebAssembly module, but the text of one; wat2wasm makes a module of it")
	case !bytes.HasPrefix(wasm, []byte(magic)):
		return fmt.Errorf("not a WebAssembly module: it begins with %q, wanted %q", wasm[:min(len(wasm), 16)], magic)
	case len(wasm) < 8:
		return fmt.Errorf("not a WebAssembly module: it ends after %d bytes, within its head", len(wasm))
	}
	switch v := binary.LittleEndian.Uint32(wasm[4:]); v {
	case 1:
		return nil
	case 0x1000d:
		return errors.New("this is a WebAssembly component, wanted a module (version 1)")
	default:
		return fmt.Errorf("this is WebAssembly of version %d, wanted 1", v)
	}
}

// plain leaves out of a path error what the caller says itself.
func plain(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
