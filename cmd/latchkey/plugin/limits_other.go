//go:build !linux

package plugin

import (
	"os/exec"
	"runtime/debug"
)

// apply bounds what can be bounded everywhere; the server bounds the time.
func (l limits) apply() error {
	debug.SetMemoryLimit(l.heap)
	return nil
}

func detach(*exec.Cmd) {}
