//go:build darwin || freebsd || dragonfly

package proxy

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// systemMemory is the machine's memory in bytes, 0 where it cannot be asked.
func systemMemory() int64 {
	name := "hw.physmem"
	if runtime.GOOS == "darwin" {
		name = "hw.memsize"
	}
	n, err := unix.SysctlUint64(name)
	if err != nil {
		return 0
	}
	return int64(n)
}
