package store

import "golang.org/x/sys/unix"

// bootClock goes on while the machine sleeps, and no step of the wall clock moves it
// (clock_gettime(3): CLOCK_UPTIME_RAW is the one that stops).
const bootClock = unix.CLOCK_MONOTONIC_RAW
