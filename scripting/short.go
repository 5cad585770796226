package scripting

import "sync/atomic"

// A script begins under the latches of its keys, as a quick command does, and most
// scripts end there: taking, extending and freeing a lock are a few instructions.
// One that takes longer is undone and runs again with its keys locked
// (store.Tx.Promote), for which it has then paid twice. So each script remembers
// how it went lately.

// instructionNanos is about what an instruction takes, in ns.
const instructionNanos = 16

// shortHint is what is known of how long a script takes. It only saves time: what
// a script may do, and with which keys, never depends on it.
type shortHint struct {
	thrown  atomic.Int32 // rises by thrownOff with each failed try, falls by one with each that went well
	skipped atomic.Uint32
}

const (
	thrownOff  = 2
	thrownLots = 4 // from here on the script is not tried
	thrownMost = 8
	// retryEvery is how many runs of a script that is not tried pass between tries.
	retryEvery = 64
)

// lengthy tells whether a script should not be tried under latches now.
func (h *shortHint) lengthy() bool {
	return h.thrown.Load() >= thrownLots && h.skipped.Add(1)%retryEvery != 0
}

// ranShort remembers how a try went.
func (h *shortHint) ranShort(well bool) {
	switch n := h.thrown.Load(); {
	case !well:
		h.thrown.Store(min(n+thrownOff, thrownMost))
	case n > 0:
		h.thrown.Store(n - 1)
	}
}
