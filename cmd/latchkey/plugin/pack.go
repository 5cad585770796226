package plugin

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// pack puts a manifest into a module. The file is replaced in one step, so that
// a server which reloads it meanwhile reads the old or the new.
func pack(args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 && len(args) != 3 {
		return usageError(stderr, "pack takes a module, a manifest, and the file to write if it is another")
	}
	module, document, out := args[0], args[1], args[0]
	if len(args) == 3 {
		out = args[2]
	}
	wasm, err := plugins.ReadFile(module, plugins.MaxFile)
	if err != nil {
		return failed(stderr, err)
	}
	doc, err := plugins.ReadFile(document, manifest.MaxBytes)
	if err != nil {
		return failed(stderr, err)
	}
	if _, err := manifest.Parse(doc); err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", document, err))
	}
	packed, err := manifest.Pack(wasm, doc)
	if err != nil {
		return failed(stderr, fmt.Errorf("%s: %w", module, err))
	}
	if len(packed) > plugins.MaxFile {
		return failed(stderr, fmt.Errorf("%s: with the manifest it has %d bytes, at most %d are loaded", module, len(packed), plugins.MaxFile))
	}
	if err := replaceFile(out, packed); err != nil {
		return failed(stderr, err)
	}
	fmt.Fprintf(stdout, "%s: %d bytes\n", out, len(packed))
	return exitOK
}

func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err2 := f.Chmod(0o644); err == nil {
		err = err2
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
