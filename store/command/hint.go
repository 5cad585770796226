package command

import "sync/atomic"

// Hint is what is known of how long a Bounded command takes. One begins under the
// latches of its keys, as a quick command does, and most end there: taking,
// extending and freeing a lock are a few instructions. One that takes longer is
// undone and runs again with its keys locked (store.Tx.Promote), for which it has
// then paid twice; so a script remembers how it went lately, and a command of a
// module. It only saves time: what a command may do, and with which keys, never
// depends on it. Any goroutine may use it.
type Hint struct {
	thrown  atomic.Int32 // rises by thrownOff with each failed try, falls by one with each that went well
	skipped atomic.Uint32
}

const (
	thrownOff  = 2
	thrownLots = 4 // from here on the command is not tried
	thrownMost = 8
	// retryEvery is how many runs of a command that is not tried pass between tries.
	retryEvery = 64
)

// Lengthy tells whether the command should not be tried under latches now.
func (h *Hint) Lengthy() bool {
	return h.thrown.Load() >= thrownLots && h.skipped.Add(1)%retryEvery != 0
}

// Tried remembers how a try went.
func (h *Hint) Tried(well bool) {
	switch n := h.thrown.Load(); {
	case !well:
		h.thrown.Store(min(n+thrownOff, thrownMost))
	case n > 0:
		h.thrown.Store(n - 1)
	}
}
