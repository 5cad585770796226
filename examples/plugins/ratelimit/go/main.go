// Ratelimit is the command of redis-cell: a limit on how often something may
// happen, by the generic cell rate algorithm.
//
//	CL.THROTTLE key max_burst count period [quantity]
//
// It allows count actions in period seconds, and max_burst at once beyond. The reply has
// five integers: 0 if the action is allowed and 1 if not; the limit, which is
// max_burst+1; how much of it remains; in how many seconds to try again, -1 if the action is allowed;
// in how many seconds the whole limit is there again.
package main

import (
	"math"
	"strconv"

	latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
)

func init() {
	latchkey.Register(latchkey.Module{
		Name: "ratelimit", Version: "1.0.0",
		Commands: []latchkey.Command{{
			Name: "CL.THROTTLE", Arity: -5, Flags: []string{"write", "denyoom", "fast"}, Keys: latchkey.OneKey, ACL: []string{"write", "string", "fast"},
			Summary: "Limits how often something may happen.", Since: "1.0.0", Group: "ratelimit", Run: throttle,
		}},
		Capabilities: latchkey.Capabilities{Read: []string{""}, Write: []string{""}},
		Limits:       latchkey.Limits{Fuel: 100_000_000, MemoryPages: 256, Instances: 4},
	})
}

func main() { latchkey.Main() }

const (
	second      = int64(1_000_000_000) // in the unit of all times here, nanoseconds
	millisecond = int64(1_000_000)

	// What the arguments may be at most, so that no sum of times overflows.
	maxBurst  = 1_000_000_000
	maxPeriod = 1_000_000_000 // seconds
	maxTime   = math.MaxInt64 / 4
)

// room is for the value that is read and the one that is written. Only its
// capacity outlives a call.
var room [64]byte

func throttle(c *latchkey.Call) error {
	if c.NArg() > 6 {
		return latchkey.Error("ERR wrong number of arguments for 'cl.throttle' command")
	}
	var n [4]int64 // max_burst, count, period, quantity
	n[3] = 1
	for i := 2; i < c.NArg(); i++ {
		v, err := c.Int(i)
		if err != nil {
			return err
		}
		if v < 0 || v > maxBurst {
			return latchkey.Error("ERR max_burst, count, period and quantity must be 0 to 1000000000")
		}
		n[i-2] = v
	}
	burst, count, period, quantity := n[0], n[1], n[2], n[3]
	if count == 0 || period == 0 {
		return latchkey.Error("ERR zero rates are not supported")
	}
	// The time between two actions at the allowed rate, and how far ahead of that
	// rate somebody may get.
	interval := int64(float64(period*second) / float64(count))
	tolerance := times(interval, burst+1)
	if interval == 0 || tolerance > maxTime {
		return latchkey.Error("ERR the rate is out of range")
	}
	increment := times(interval, quantity)
	if increment > maxTime {
		return latchkey.Error("ERR the quantity is out of range")
	}

	key, now := c.Arg(1), c.NowMS()*millisecond
	arrival := now // when the next action would be due at the allowed rate
	stored, ok, err := c.AppendGet(room[:0], key)
	if err != nil {
		return err
	}
	if ok {
		if arrival, ok = latchkey.ParseInt(stored); !ok || arrival < 0 || arrival > maxTime*3 {
			return latchkey.Error("ERR the key does not hold a limit")
		}
	}
	next := max(now, arrival) + increment
	early := next - tolerance - now // by how much this action comes too early
	limited, left, retry := int64(0), next-now, int64(-1)
	if early > 0 {
		limited, left = 1, arrival-now
		if increment <= tolerance {
			retry = seconds(early)
		}
	} else if quantity > 0 || !ok {
		// Below a millisecond there is nothing to remember.
		ms := max(left/millisecond, 1)
		if _, err := c.Set(key, strconv.AppendInt(room[:0], next, 10), latchkey.SetOptions{PX: ms}); err != nil {
			return err
		}
	}
	remaining := int64(0)
	if free := tolerance - left; free > -interval {
		remaining = free / interval
	}
	c.ReplyArray(5)
	c.ReplyInt(limited)
	c.ReplyInt(burst + 1)
	c.ReplyInt(remaining)
	c.ReplyInt(retry)
	c.ReplyInt(seconds(left))
	return nil
}

// times is a product of what is not negative, or more than maxTime.
func times(a, b int64) int64 {
	if b != 0 && a > maxTime/b {
		return maxTime + 1
	}
	return a * b
}

// seconds rounds up, so that nobody tries again too early, what has a
// millisecond or more beyond a whole second.
func seconds(t int64) int64 {
	s := t / second
	if t%second >= millisecond {
		s++
	}
	return s
}
