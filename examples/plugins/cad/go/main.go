// Cad compares the string at a key with a value, and deletes it, replaces it, or
// gives it a new time to live if they are equal. All three reply 1 if they were,
// 0 if not, -1 if there is no such key.
//
//	CAD.WASM key value                      compare and delete
//	CAS.WASM key old new [PX milliseconds]  compare and set
//	CAE.WASM key value milliseconds         compare and expire
package main

import (
	"bytes"
	"math"

	latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
)

func init() {
	latchkey.Register(latchkey.Module{
		Name: "cad", Version: "1.1.0",
		Commands: []latchkey.Command{
			{
				Name: "CAD.WASM", Arity: 3, Flags: []string{"write", "fast"}, Keys: latchkey.OneKey, ACL: []string{"write", "string", "fast"},
				Summary: "Deletes a string if it holds the given value.", Since: "1.0.0", Group: "string", Run: compareAndDelete,
			},
			{
				Name: "CAS.WASM", Arity: -4, Flags: []string{"write", "denyoom", "fast"}, Keys: latchkey.OneKey, ACL: []string{"write", "string", "fast"},
				Summary: "Replaces a string if it holds the given value.", Since: "1.1.0", Group: "string", Run: compareAndSet,
			},
			{
				Name: "CAE.WASM", Arity: 4, Flags: []string{"write", "fast"}, Keys: latchkey.OneKey, ACL: []string{"write", "string", "fast"},
				Summary: "Gives a string a time to live if it holds the given value.", Since: "1.1.0", Group: "string", Run: compareAndExpire,
			},
		},
		Capabilities: latchkey.Capabilities{Read: []string{""}, Write: []string{""}},
		Limits:       latchkey.Limits{Fuel: 100_000_000, MemoryPages: 256, Instances: 4},
	})
}

func main() { latchkey.Main() }

func compareAndDelete(c *latchkey.Call) error {
	result, err := c.CompareAndDeleteArgs(1, 2)
	if err != nil {
		return err
	}
	c.ReplyInt(int64(result))
	return nil
}

// lasts tells whether a key can live for so long from now on; Redis refuses times that overflow, too.
func lasts(c *latchkey.Call, ms int64) bool { return ms > 0 && ms <= math.MaxInt64-c.NowMS() }

func compareAndSet(c *latchkey.Call) error {
	ms := int64(0)
	switch {
	case c.NArg() == 4:
	case c.NArg() == 6 && c.Is(4, "px"):
		var err error
		if ms, err = c.Int(5); err != nil {
			return err
		}
		if !lasts(c, ms) {
			return latchkey.Error("ERR invalid expire time in 'cas.wasm' command")
		}
	default:
		return latchkey.Error("ERR syntax error")
	}
	result, err := c.CompareAndSet(c.Arg(1), c.Arg(2), c.Arg(3), ms)
	if err != nil {
		return err
	}
	c.ReplyInt(int64(result))
	return nil
}

// value is room for what compareAndExpire compares. Only its capacity outlives a
// call.
var value []byte

func compareAndExpire(c *latchkey.Call) error {
	ms, err := c.Int(3)
	if err != nil {
		return err
	}
	if !lasts(c, ms) {
		return latchkey.Error("ERR invalid expire time in 'cae.wasm' command")
	}
	held, ok, err := c.AppendGet(value[:0], c.Arg(1))
	if err != nil {
		return err
	}
	if cap(held) <= 4096 {
		value = held
	}
	switch {
	case !ok:
		c.ReplyInt(-1)
	case !bytes.Equal(held, c.Arg(2)):
		c.ReplyInt(0)
	default:
		if _, err := c.PExpire(c.Arg(1), ms); err != nil {
			return err
		}
		c.ReplyInt(1)
	}
	return nil
}
