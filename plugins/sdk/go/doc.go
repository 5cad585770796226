// Package latchkey is for writing latchkey plugins in Go.
//
// A plugin is a program that registers a [Module] while it is initialised:
//
//	package main
//
//	import latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
//
//	func init() {
//		latchkey.Register(latchkey.Module{
//			Name: "hello", Version: "1.0.0",
//			Commands: []latchkey.Command{{
//				Name: "HELLO.SET", Arity: 3, Flags: []string{"write"}, Keys: latchkey.OneKey,
//				Summary: "Sets a key and says hello.",
//				Run: func(c *latchkey.Call) error {
//					if _, err := c.Set(c.Arg(1), c.Arg(2), latchkey.SetOptions{}); err != nil {
//						return err
//					}
//					c.ReplySimple("hello")
//					return nil
//				},
//			}},
//			Capabilities: latchkey.Capabilities{Write: []string{"hello:"}},
//		})
//	}
//
//	func main() { latchkey.Main() }
//
// Built for this machine and run, it prints its manifest; built for WebAssembly it
// is the module:
//
//	go run . >manifest.json
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o hello.wasm .
//	latchkey plugin pack hello.wasm manifest.json
//
// What to keep in mind:
//
//   - A command is a transaction. Return an error, or panic, and all that it wrote
//     is undone.
//   - Any call may reach any instance of the module: a package variable is a cache,
//     never a place for what must last.
//   - Arguments, and whatever else says so, are views that end when Run returns.
//   - No goroutine may outlive its command: what it asked of latchkey later would
//     end the instance.
//   - There are no files, no network and no environment. What is printed goes to
//     the server's log.
package latchkey
