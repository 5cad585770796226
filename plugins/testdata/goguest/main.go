//go:build wasip1

// A guest made by Go's own toolchain, for the tests: what the runtime needs of
// WASI is there, and takes nothing from the host.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
	"unsafe"
)

//go:wasmimport latchkey_v1 reply_int
func replyInt(n int64)

//go:wasmimport latchkey_v1 now_ms
func nowMS() int64

var arena []byte

//go:wasmexport lk_abi
func abi() int32 { return 1 }

//go:wasmexport lk_init
func start() int32 { return 0 }

//go:wasmexport lk_arena
func room(size int32) unsafe.Pointer {
	words := make([]uint64, (size+7)/8)
	arena = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
	return unsafe.Pointer(&arena[0])
}

//go:wasmexport lk_command
func command(id, argc int32, frame unsafe.Pointer) int32 {
	switch id {
	case 0: // what WASI gives
		fmt.Print("one line, ")
		fmt.Println("and", len(os.Args), "arguments,", len(os.Environ()), "variables")
		if _, err := os.ReadFile("/etc/passwd"); err == nil {
			return 1
		}
		var b [16]byte
		rand.Read(b[:])
		began := time.Now()
		time.Sleep(time.Hour)
		if time.Since(began) < time.Hour {
			return 2
		}
		if d := nowMS() - began.UnixMilli(); d != 0 {
			return 3
		}
		replyInt(int64(b[0]))
	case 1:
		panic("on purpose")
	case 2:
		select {}
	case 4: // a goroutine that outlives its command, and acts in the next
		go func() {
			time.Sleep(time.Nanosecond)
			for {
				replyInt(7)
			}
		}()
		replyInt(1)
	case 3:
		os.Exit(3)
	}
	return 0
}

func main() {}
