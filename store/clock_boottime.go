//go:build linux || openbsd

package store

import "golang.org/x/sys/unix"

// bootClock goes on while the machine sleeps, and no step of the wall clock moves it.
const bootClock = unix.CLOCK_BOOTTIME
