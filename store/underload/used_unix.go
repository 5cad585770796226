//go:build unix

package underload

import (
	"time"

	"golang.org/x/sys/unix"
)

// used is what this process and its children have used.
func used() (sum time.Duration, ok bool) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) != nil {
			return 0, false
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, true
}
