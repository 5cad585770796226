package latchkey

import (
	"errors"
	"unsafe"
)

// What the host calls. docs/PLUGIN-ABI.md says when.

const (
	statusOK    = 0
	statusAgain = 1
)

// Main is for func main, which WebAssembly never calls.
func Main() {}

//go:wasmexport lk_abi
func guestABI() int32 { return 1 }

// arena is the room for frames; 64-bit words, because frames are aligned to 8.
var arena []uint64

//go:wasmexport lk_arena
func guestArena(size int32) unsafe.Pointer {
	if size < 0 {
		return nil
	}
	arena = nil // it may go before the other comes
	makeRoom(int(size))
	arena = make([]uint64, (int(size)+7)/8+1) // an empty argument at its end begins within
	return unsafe.Pointer(unsafe.SliceData(arena))
}

//go:wasmexport lk_init
func guestInit() int32 {
	if module.Name == "" {
		println("no module was registered: call latchkey.Register in an init function")
		return int32(ErrInvalid)
	}
	if module.Init != nil {
		return quiet(module.Init())
	}
	return statusOK
}

// Every command comes through here. Whether there is stack for it is looked at by what it
// calls.
//
//go:wasmexport lk_command
//go:nosplit
func guestCommand(id, argc int32, frame unsafe.Pointer) int32 {
	the = Call{int(argc), uintptr(frame)}
	if err := runs[uint32(id-1)%maxCommands](&the); err != nil {
		return status(err)
	}
	return statusOK
}

// begin makes a frame's arguments those of the call.
func begin(argc int32, frame unsafe.Pointer) *Call {
	the = Call{int(argc), uintptr(frame)}
	return &the
}

//go:wasmexport lk_wake
func guestWake(token int64, reason, argc int32, frame unsafe.Pointer) int32 {
	c := begin(argc, frame)
	cmd := commandNamed(c)
	switch {
	case cmd != nil && cmd.Wake != nil:
		return status(cmd.Wake(c, token, reason == 1))
	case reason == 1 || cmd == nil:
		c.ReplyNull()
		return statusOK
	}
	return status(cmd.Run(c))
}

// commandNamed is the command whose name is the frame's first argument.
func commandNamed(c *Call) *Command {
	name := c.Arg(0)
	for i := range module.Commands {
		if sameName(module.Commands[i].Name, name) {
			return &module.Commands[i]
		}
	}
	return nil
}

func sameName(a string, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(ch byte) byte {
	if 'A' <= ch && ch <= 'Z' {
		return ch + 'a' - 'A'
	}
	return ch
}

//go:wasmexport lk_timer
func guestTimer(token int64) int32 {
	if module.Timer == nil {
		return statusOK
	}
	the = Call{}
	return quiet(module.Timer(&the, token))
}

//go:wasmexport lk_event
func guestEvent(class, argc int32, frame unsafe.Pointer) int32 {
	c := begin(argc, frame)
	if module.Event == nil {
		return statusOK
	}
	return quiet(module.Event(c, EventClass(class), string(c.Arg(0)), c.Arg(1)))
}

//go:wasmexport lk_closed
func guestClosed(token int64, argc int32, frame unsafe.Pointer) int32 {
	c := begin(argc, frame)
	if module.Closed == nil {
		return statusOK
	}
	return quiet(module.Closed(c, c.Arg(0), token))
}

// status is what the host is told of err.
func status(err error) int32 {
	if err == nil {
		return statusOK
	}
	switch e := err.(type) {
	case Code:
		return int32(e)
	case errAgain:
		return statusAgain
	case Error:
		return replyError(string(e))
	}
	var code Code
	var text Error
	switch {
	case errors.Is(err, ErrAgain):
		return statusAgain
	case errors.As(err, &code):
		return int32(code)
	case errors.As(err, &text):
		return replyError(string(text))
	}
	return replyError("ERR " + err.Error())
}

// quiet is status where there is nobody to reply to: words go to the log.
func quiet(err error) int32 {
	var code Code
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &code):
		return int32(code)
	}
	println(err.Error())
	return int32(ErrInvalid)
}

func replyError(text string) int32 {
	hostReplyError(unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
	return statusOK
}
