//go:build linux && (amd64 || arm64)

package netloop

import (
	"syscall"
	"time"
	"unsafe"
)

// Before a system call that may wait, Go's scheduler is told, and its monitor looks
// after the processor that the goroutine may have given up. A loop under load waits
// ten thousand times a second for some microseconds each, and keeps the monitor
// awake, which costs as much as a third of what the commands do. So while waits are
// brisk the loop does not tell: it keeps its processor, for no longer than
// keptFor, and tells the scheduler if nothing has come by then.
//
// The collector and the monitor can have the processor at once all the same: both
// send the thread a signal, which ends the system call, and the goroutine yields on
// its way to the next. Goroutines that wait for this processor are taken over by
// others, hence New's condition; were all others busy, they would have waited for
// the monitor otherwise, which takes up to 10 ms to notice.

const (
	// keptFor is how long a wait may keep the processor, in ms.
	keptFor = 1
	// brisk is how short a wait must be for the next to keep the processor, in ns:
	// so short that it would have kept it itself.
	brisk = int64(keptFor * time.Millisecond)
)

// wait fetches events when there are some.
func (l *Loop) wait() (n int, errno syscall.Errno) {
	if l.brisk {
		if n, errno = l.fetch(keptFor); n != 0 || errno != 0 {
			return n, errno
		}
	}
	r, _, errno := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events)), maxEvents, ^uintptr(0), 0, 0)
	return int(r), errno
}

// fetch fetches events, and waits up to millis for some without telling the
// scheduler.
func (l *Loop) fetch(millis int) (n int, errno syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events)), maxEvents, uintptr(millis), 0, 0)
	return int(r), errno
}
