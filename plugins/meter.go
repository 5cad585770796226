package plugins

import (
	"fmt"
	"runtime"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// workUnit is what a unit of work of a store.Meter is in units of fuel: ten
// nanoseconds of each.
const workUnit = 10

// charge counts what a host function does, in units of fuel, so that a guest
// which does little but call them is asked as often as one that computes. It
// costs the guest no fuel of its manifest.
func (in *instance) charge(units int64) {
	if in.hosted += units; in.due() {
		in.mayGoOn()
	}
}

// due tells whether host functions have cost so much that somebody must look.
func (in *instance) due() bool { return in.hosted >= in.dueAt }

// mayGoOn ends a call that has run for too long, or that nobody waits for. It is kept
// out of charge, which is a part of each host function for that.
//
//go:noinline
func (in *instance) mayGoOn() {
	if in.short {
		in.lengthen()
	}
	if t := in.look(); t != nil {
		panic(t)
	}
}

// lengthen spares a client's call that turns out to be long, and has changed nothing
// yet, to be run again by another instance: its keys are locked where it stands. What
// calls it, or what it has called, may count on the latches.
func (in *instance) lengthen() {
	if in.call.From != command.FromClient || !in.call.Tx.Lengthen() {
		return
	}
	in.short, in.dueAt = false, fuel.Slice
	in.call.S.Waits() // those before it in its pipeline took no part in what comes
}

// An instance is the store.Meter of the commands that its guest calls: these
// cannot be ended by a trap, and are told to give up instead.

// Pay charges what a command does, while it does it. It returns false when the
// guest must end.
func (in *instance) Pay(n int) bool {
	if in.ending == nil {
		if in.hosted += int64(n) * workUnit; in.due() {
			in.ending = in.look()
		}
	}
	return in.ending == nil
}

// Alloc charges bytes that a command is about to take, which stay until the call
// ends. It returns false when it must not.
func (in *instance) Alloc(n int) bool {
	if in.ending == nil {
		in.ending = in.keeps(n)
	}
	return in.ending == nil
}

// Check looks after something that took long, and returns false when the guest must
// end.
func (in *instance) Check() bool {
	if in.ending == nil {
		in.ending = in.look()
	}
	return in.ending == nil
}

// wrote counts bytes of values written, which are kept until the call ends.
func (in *instance) wrote(bytes int) {
	if t := in.keeps(bytes); t != nil {
		panic(t)
	}
}

func (in *instance) keeps(bytes int) *trap {
	if in.written += int64(bytes); in.written > maxWritten {
		return &trap{fmt.Sprintf("a call writes more than %d MiB", maxWritten>>20)}
	}
	return nil
}

// look tells why a call may not go on, or lets others run and returns nil.
func (in *instance) look() *trap {
	if in.call != nil {
		// Of a short one, too: run again it would be a call that began later.
		if t := in.killed(); t != nil {
			return t
		}
		if t := in.payCaller(); t != nil {
			return t
		}
	}
	if in.short {
		in.call.Tx.Promote()
		return &trap{reason: rerunReason}
	}
	in.worked += in.hosted
	in.hosted = 0
	took := time.Since(in.start())
	if took-in.yielded >= yieldEvery {
		in.yielded = took
		runtime.Gosched()
	}
	if limit := in.m.man.Limits.Fuel; limit > 0 && in.call != nil && in.spent >= limit {
		return &trap{fmt.Sprintf("out of fuel: more than the %d units of its manifest", limit)}
	}
	if limit := time.Duration(in.m.host.maxTime.Load()); took > limit {
		return &trap{fmt.Sprintf("ran for longer than plugin-max-time, %v", limit)}
	}
	if in.call != nil {
		select {
		case <-done(in.call):
			return &trap{"the client was killed or is gone"}
		default:
		}
	}
	return nil
}

// killed tells whether MODULE KILL has ended the call, or one that it is part of.
func (in *instance) killed() *trap {
	if in.m.kills.Load() != in.kills {
		return &trap{"killed by MODULE KILL"}
	}
	for c := in.within; c != nil; c = c.caller() {
		if c.m.kills.Load() != c.kills {
			return &trap{"the call of " + c.m.man.Name + " that it is part of was killed by MODULE KILL"}
		}
	}
	return nil
}

// payCaller charges the script or plugin that has called what the call has cost
// since the last time.
func (in *instance) payCaller() *trap {
	meter := in.call.Meter
	if meter == nil {
		return nil
	}
	used := in.used()
	work := max(0, used-in.paid) / workUnit
	in.paid += work * workUnit
	switch {
	case meter.Pay(int(work)):
		return nil
	case in.call.Tx.Clash():
		return &trap{reason: rerunReason}
	}
	return &trap{"the budget of its caller is exhausted"}
}
