// Fairlock is a lock whose waiters are served first come, first served, without
// polling. Who gets it gets a fencing number with it, greater than every one
// before. The lock ends with its lease, and when the connection of its holder ends.
//
//	FAIRLOCK.ACQUIRE key lease-ms [timeout-ms]   the fence, or nil; waits if a timeout is given, for ever if it is 0
//	FAIRLOCK.RELEASE key fence                   1, 0 if another holds it, -1 if nobody does
//	FAIRLOCK.EXTEND key fence lease-ms           likewise; the lease counts from now
//	FAIRLOCK.STATUS key                          fence, client and lease in ms; nil if nobody holds it
package main

import (
	"encoding/binary"

	latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
)

func init() {
	lock := func(name string, arity int, flags []string, summary string, run func(*latchkey.Call) error) latchkey.Command {
		return latchkey.Command{
			Name: name, Arity: arity, Flags: flags, Keys: latchkey.OneKey, ACL: []string{"write", "fast"},
			Summary: summary, Since: "1.0.0", Group: "lock", Run: run,
		}
	}
	acquire := lock("FAIRLOCK.ACQUIRE", -3, []string{"write", "denyoom", "blocking"}, "Takes a lock, waiting for it if a timeout is given.", acquire)
	acquire.ACL = append(acquire.ACL, "blocking")
	acquire.Wake = wake
	status := lock("FAIRLOCK.STATUS", 2, []string{"readonly", "fast"}, "Says who holds a lock.", status)
	status.ACL = []string{"read", "fast"}
	latchkey.Register(latchkey.Module{
		Name: "fairlock", Version: "1.0.0",
		Commands: []latchkey.Command{
			acquire,
			lock("FAIRLOCK.RELEASE", 3, []string{"write", "fast"}, "Releases a lock that is held with this fence.", release),
			lock("FAIRLOCK.EXTEND", 4, []string{"write", "fast"}, "Begins the lease of a lock anew.", extend),
			status,
		},
		Capabilities: latchkey.Capabilities{Read: []string{""}, Write: []string{""}, Block: true, Clients: true},
		Limits:       latchkey.Limits{Fuel: 100_000_000, MemoryPages: 256, Instances: 4},
		Closed:       closed,
	})
}

func main() { latchkey.Main() }

// A lock is the state of its key: the fence and the holder's client id, eight bytes
// each, little endian. The lease is the key's time to live.
const (
	encoding  = 1
	stateSize = 16
)

type held struct{ fence, client int64 }

// holder reads a lock; free if nobody holds it.
func holder(c *latchkey.Call, key []byte) (h held, free bool, err error) {
	var state [stateSize]byte
	n, ok, err := c.ReadKeyState(key, 0, state[:])
	if err != nil || !ok {
		return h, true, err
	}
	if n != stateSize {
		return h, false, latchkey.Error("ERR the state of the lock is damaged")
	}
	h.fence = int64(binary.LittleEndian.Uint64(state[:]))
	h.client = int64(binary.LittleEndian.Uint64(state[8:]))
	return h, false, nil
}

func acquire(c *latchkey.Call) error {
	if c.NArg() > 4 {
		return latchkey.Error("ERR syntax error")
	}
	lease, err := lease(c, 2)
	if err != nil {
		return err
	}
	timeout := int64(-1)
	if c.NArg() == 4 {
		if timeout, err = c.Int(3); err != nil {
			return latchkey.Error("ERR timeout is not an integer or out of range")
		}
		if timeout < 0 {
			return latchkey.Error("ERR timeout is negative")
		}
	}
	key := c.Arg(1)
	h, free, err := holder(c, key)
	switch {
	case err != nil:
		return err
	case free:
		return take(c, key, lease)
	case timeout < 0:
		c.ReplyNull()
		return nil
	case h.client == me(c):
		return latchkey.Error("ERR this client holds the lock, and would wait for itself")
	}
	return c.Block(timeout, 0, key)
}

// wake is called in turn for those who wait, when the lock may be free.
func wake(c *latchkey.Call, _ int64, timeout bool) error {
	key := c.Arg(1)
	_, free, err := holder(c, key)
	switch {
	case err != nil:
		return err
	case free:
		lease, err := lease(c, 2)
		if err != nil {
			return err
		}
		return take(c, key, lease)
	case timeout:
		c.ReplyNull()
		return nil
	}
	return latchkey.ErrAgain
}

func take(c *latchkey.Call, key []byte, lease int64) error {
	fence := c.Fence()
	var state [stateSize]byte
	binary.LittleEndian.PutUint64(state[:], uint64(fence))
	binary.LittleEndian.PutUint64(state[8:], uint64(me(c)))
	if _, err := c.SetKeyState(key, state[:], encoding, latchkey.SetOptions{PX: lease}); err != nil {
		return err
	}
	if err := c.BindClient(key, fence); err != nil && err != latchkey.ErrContext {
		return err
	}
	c.ReplyInt(fence)
	return nil
}

func release(c *latchkey.Call) error {
	key := c.Arg(1)
	fence, err := c.Int(2)
	if err != nil {
		return err
	}
	h, free, err := holder(c, key)
	switch {
	case err != nil:
		return err
	case free:
		c.ReplyInt(-1)
		return nil
	case h.fence != fence:
		c.ReplyInt(0)
		return nil
	}
	if _, err := c.Del(key); err != nil {
		return err
	}
	if err := c.UnbindClient(key); err != nil {
		return err
	}
	c.ReplyInt(1)
	return nil
}

func extend(c *latchkey.Call) error {
	key := c.Arg(1)
	fence, err := c.Int(2)
	if err != nil {
		return err
	}
	lease, err := lease(c, 3)
	if err != nil {
		return err
	}
	h, free, err := holder(c, key)
	switch {
	case err != nil:
		return err
	case free:
		c.ReplyInt(-1)
		return nil
	case h.fence != fence:
		c.ReplyInt(0)
		return nil
	}
	if _, err := c.PExpire(key, lease); err != nil {
		return err
	}
	c.ReplyInt(1)
	return nil
}

func status(c *latchkey.Call) error {
	h, free, err := holder(c, c.Arg(1))
	if err != nil {
		return err
	}
	if free {
		c.ReplyNull()
		return nil
	}
	left, err := c.PTTL(c.Arg(1))
	if err != nil {
		return err
	}
	c.ReplyMap(3)
	c.ReplyString("fence")
	c.ReplyInt(h.fence)
	c.ReplyString("client")
	c.ReplyInt(h.client)
	c.ReplyString("lease")
	c.ReplyInt(left)
	return nil
}

// closed is called when a client is gone to whom a lock was given with this fence.
func closed(c *latchkey.Call, key []byte, fence int64) error {
	h, free, err := holder(c, key)
	if err != nil || free || h.fence != fence {
		return nil
	}
	_, err = c.Del(key)
	return err
}

// maxLease is ten years.
const maxLease = 10 * 365 * 24 * 3600 * 1000

func lease(c *latchkey.Call, i int) (int64, error) {
	ms, err := c.Int(i)
	if err != nil {
		return 0, err
	}
	if ms <= 0 || ms > maxLease {
		return 0, latchkey.Error("ERR the lease must be 1 to 315360000000 milliseconds")
	}
	return ms, nil
}

// me is the client's id, 0 in a call that has no client.
func me(c *latchkey.Call) int64 {
	id, _ := latchkey.ParseInt([]byte(c.Client(latchkey.ClientID)))
	return id
}
