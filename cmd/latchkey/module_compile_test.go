package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// largeModule is a module of many functions that are as large as they may be, which
// call each other: no shape refuses it, and to compile it takes seconds.
func largeModule(t *testing.T) string {
	t.Helper()
	const functions, calls = 20, 60_000
	section := func(id byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	code, kinds := []byte{functions}, []byte{functions}
	for range functions {
		body := []byte{0} // no locals
		for range calls {
			body = append(body, 0x10, 0) // call 0
		}
		body = append(body, 0x0b)
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
		kinds = append(kinds, 0)
	}
	wasm := append([]byte("\x00asm\x01\x00\x00\x00"), section(1, []byte{1, 0x60, 0, 0})...)
	wasm = append(append(wasm, section(3, kinds)...), section(10, code)...)
	packed, err := manifest.Pack(wasm, []byte(`{"name": "large", "version": "1.0.0", "abi": {"min": 1, "max": 1}, "commands": [{"name": "LARGE.RUN", "id": 1, "arity": 1, "summary": "Is large."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "large.wasm")
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCompilationIsBounded: a module that takes longer to compile than it may is
// refused and leaves nothing behind, and others are served all the while.
func TestCompilationIsBounded(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	dial, stop := withModule(t, "--plugin-cache-dir", cache)
	defer stop()
	loads, c := dial(), dial()
	c.want("+OK", "CONFIG SET plugin-max-compile-time 200")
	before, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	loads.send("MODULE LOAD " + largeModule(t))
	refused := make(chan string)
	go func() { refused <- loads.value() }()
	served := 0
	for waiting := true; waiting; {
		select {
		case got := <-refused:
			// On a machine whose processors others have, it is not done in time.
			if !strings.HasPrefix(got, "-ERR Error loading the extension: ") || !strings.Contains(got, ": the module cannot be compiled: compiling it ") ||
				!strings.Contains(got, "plugin-max-compile-time") || !strings.HasSuffix(got, " 200ms of processor time") {
				t.Errorf("MODULE LOAD of what takes seconds to compile replied %s", got)
			}
			waiting = false
		default:
			served++
			c.want("+OK", fmt.Sprint("SET k ", served))
			c.want(":0", "ABI.RUN abi:k @1 #1 !exists =")
		}
	}
	if served < 10 {
		t.Errorf("%d commands were served while a module was compiled", served)
	}
	if got := c.ask("MODULE LIST"); strings.Contains(got, "large") {
		t.Errorf("MODULE LIST replied %s after the module was refused", got)
	}
	if after, err := os.ReadDir(cache); err != nil || len(after) != len(before) {
		t.Errorf("in the cache: %v (%v), want %v", after, err, before)
	}
}
