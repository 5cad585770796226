package plugin

import (
	"fmt"
	"os/exec"
	"runtime/debug"
	"syscall"
)

// apply bounds this process, which gives way to others.
func (l limits) apply() error {
	for _, r := range []struct {
		what  string
		which int
		max   uint64
	}{
		{"processor time", syscall.RLIMIT_CPU, uint64(l.seconds)},
		{"address space", syscall.RLIMIT_AS, uint64(l.space)},
		{"core files", syscall.RLIMIT_CORE, 0},
	} {
		if err := syscall.Setrlimit(r.which, &syscall.Rlimit{Cur: r.max, Max: r.max}); err != nil {
			return fmt.Errorf("cannot limit %s: %w", r.what, err)
		}
	}
	debug.SetMemoryLimit(l.heap)
	return syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
}

// detach keeps the terminal's signals from the child: the server ends it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
