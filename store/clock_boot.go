//go:build linux || openbsd || darwin

package store

import "golang.org/x/sys/unix"

// bootNano is a clock that neither steps nor stops while the machine sleeps, in
// nanoseconds since a point that is fixed for one boot.
func bootNano() (ns int64, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(bootClock, &ts) != nil {
		return 0, false
	}
	return ts.Nano(), true
}
