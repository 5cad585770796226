// Command pack puts a manifest into a module, for languages that cannot emit
// custom sections themselves:
//
//	go run ./examples/plugins/pack module.wasm manifest.json out.wasm
package main

import (
	"fmt"
	"os"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack module.wasm manifest.json out.wasm")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "pack: error: %v\n", err)
		os.Exit(1)
	}
}

func pack(module, document, out string) error {
	wasm, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	doc, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	packed, err := manifest.Pack(wasm, doc)
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644)
}
