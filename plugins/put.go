package plugins

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const errPutDenied = "ERR LATCHKEY PLUGIN PUT not allowed. If the enable-plugin-put option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."

// putSpec is the container of latchkey's own administration.
func (h *Host) putSpec() *command.Spec {
	return &command.Spec{
		Name: "latchkey", Arity: -2, Access: command.Free, Group: "server", Since: "7.2.0", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about latchkey itself.",
		Help: []string{
			"PLUGIN PUT <name> <sha256> <bytes>",
			"    Write a module to plugin-dir, as <name>.wasm, if its bytes have the digest.",
			"    MODULE LOAD or MODULE RELOAD then takes it from there.",
		},
		Sub: []*command.Spec{
			{
				Name: "plugin", Arity: 6, Flags: loadFlags, Access: command.Free, Handler: h.putCommand,
				Group: "server", Since: "7.2.0", Complexity: "O(N) with N being the length of the module",
				Summary: "Writes a module to plugin-dir, for those without a shell on the server's machine.", Syntax: "PUT name sha256 bytes",
				Differs: "latchkey's own; off unless enable-plugin-put allows it.",
			},
			command.HelpSpec("latchkey", "7.2.0"),
		},
	}
}

func (h *Host) putCommand(c *command.Call) {
	if !c.Is(2, "put") {
		c.Err(fmt.Sprintf("ERR LATCHKEY PLUGIN takes PUT, not '%.128s'", c.Args[2]))
		return
	}
	if h.opt.PutAllowed == nil || !h.opt.PutAllowed(c) {
		c.Err(errPutDenied)
		return
	}
	path, err := h.put(string(c.Args[3]), string(c.Args[4]), c.Args[5])
	if err != nil {
		h.opt.Log.Warn("a module was not stored", "err", err)
		c.Err("ERR " + err.Error())
		return
	}
	h.opt.Log.Info("a module was stored", "path", path, "bytes", len(c.Args[5]))
	c.Reply.BulkString(path)
}

// put checks a module as far as it can be without compiling it, and writes it to
// Dir in one step: who loads that name meanwhile reads the old file or the new. The
// path is returned.
func (h *Host) put(name, digest string, wasm []byte) (string, error) {
	if h.opt.Dir == "" {
		return "", errors.New("plugin-dir is not set; it is where modules are stored")
	}
	name = strings.TrimSuffix(name, ".wasm")
	if !isDigest(digest) {
		digest = digestPrefix + digest
	}
	if err := checkDigest(wasm, digest); err != nil {
		return "", err
	}
	if err := checkFile(wasm); err != nil {
		return "", err
	}
	man, err := manifest.Read(wasm)
	if err != nil {
		return "", err
	}
	// The manifest's name is known to be letters, digits, '_' and '-': no path.
	if man.Name != name {
		return "", fmt.Errorf("the bytes hold the module %s, wanted %s", man.Name, name)
	}
	if err := fuel.Check(wasm, fuel.Limits{}); err != nil {
		return "", err
	}
	path := filepath.Join(h.opt.Dir, name+".wasm")
	if err := replaceFile(path, wasm); err != nil {
		return "", fmt.Errorf("plugin-dir %s: %w", h.opt.Dir, plain(err))
	}
	return path, nil
}

// replaceFile writes a file in one step, durably. It is for the server's user
// alone (mode 0600), whatever was there before: nobody else has to read what was
// sent to the server.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err2 := f.Sync(); err == nil {
		err = err2
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync() // of the file's name
}
