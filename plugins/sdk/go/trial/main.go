// Trial is a plugin that calls what the examples do not, and of no use otherwise: the
// SDK's test. trial.transcript has its answers.
package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
)

func init() {
	write, readonly := []string{"write"}, []string{"readonly"}
	one := latchkey.OneKey
	latchkey.Register(latchkey.Module{
		Name: "trial", Version: "1.0.0", WakeVersion: 2,
		Commands: []latchkey.Command{
			{Name: "TRIAL.KEYS", Arity: 2, Flags: write, Keys: one, Summary: "Goes through the functions of keys.", Run: keys},
			{Name: "TRIAL.RUN", Arity: -3, Flags: write, Keys: one, Summary: "Runs a command.", Run: run},
			{Name: "TRIAL.STATE", Arity: 3, Flags: write, Keys: one, State: "write", Summary: "Writes and reads states.", Run: state},
			{Name: "TRIAL.REPLY", Arity: 1, Flags: readonly, Summary: "Gives a reply of every kind.", Run: reply},
			{Name: "TRIAL.FAIL", Arity: -3, Flags: write, Keys: one, Summary: "Fails.", Run: fail},
			{Name: "TRIAL.ABOUT", Arity: -1, Flags: readonly, Summary: "Says what is known of the client.", Run: about},
			{Name: "TRIAL.LATER", Arity: 3, Flags: write, Keys: one, Summary: "Sets a timer, and binds the client.", Run: later},
			{Name: "TRIAL.WAIT", Arity: 3, Flags: append(write, "blocking"), Keys: one, Summary: "Waits for a key.", Run: wait, Wake: wake},
			{Name: "TRIAL.WAKE", Arity: 2, Flags: write, Keys: one, Summary: "Wakes who waits.", Run: func(c *latchkey.Call) error {
				c.ReplyNull()
				return c.WakeKey(c.Arg(1))
			}},
			{Name: "TRIAL.AGAIN", Arity: 3, Flags: append(write, "blocking"), Keys: one, Summary: "Waits for a key, and is run again.", Run: again},
		},
		Capabilities: latchkey.Capabilities{
			Read: []string{""}, Write: []string{""}, Commands: []string{"INCRBY", "RPUSH", "LRANGE", "GET", "TRIAL.REPLY"},
			Timers: true, Events: []string{"string"}, State: "write", Block: true, Clients: true,
		},
		Limits: latchkey.Limits{Fuel: 1_000_000_000, MemoryPages: 256},
		Config: []latchkey.Param{
			{Name: "text", Type: "string", Default: "some text"},
			{Name: "number", Type: "int", Default: 7, Max: 9},
			{Name: "flag", Type: "bool", Default: true},
		},
		Init: func() error { initialised = true; return nil },
		Timer: func(c *latchkey.Call, token int64) error {
			_, err := c.IncrBy([]byte("timer"), token)
			return err
		},
		Event: func(c *latchkey.Call, class latchkey.EventClass, event string, key []byte) error {
			if class != latchkey.EventString || string(key) != "watched" {
				return nil
			}
			_, err := c.Set([]byte("seen"), []byte(event), latchkey.SetOptions{})
			return err
		},
		Closed: func(c *latchkey.Call, key []byte, token int64) error {
			_, err := c.Set(key, []byte("closed"), latchkey.SetOptions{PX: token})
			return err
		},
	})
}

func main() { latchkey.Main() }

var initialised bool

// is panics, with the line, unless what a function returned is as wanted.
func is(have ...any) func(want ...any) {
	return func(want ...any) {
		if h, w := fmt.Sprintf("%q", have), fmt.Sprintf("%q", want); h != w {
			_, _, line, _ := runtime.Caller(1)
			panic(fmt.Sprintf("line %d: have %s, want %s", line, h, w))
		}
	}
}

// keys goes through the functions one by one.
func keys(c *latchkey.Call) error {
	key, none := c.Arg(1), []byte(nil)
	ok, bad := error(nil), latchkey.ErrInvalid
	is(c.NArg(), c.NKeys(), c.DB(), initialised)(2, 1, 0, true)
	is(c.Get(key))(none, false, ok)
	is(c.PTTL(key))(int64(latchkey.NoKey), ok)
	is(c.Type(key))(latchkey.TypeNone, ok)
	is(c.Set(key, []byte("abcd"), latchkey.SetOptions{XX: true}))(false, ok)
	is(c.Set(key, []byte("abcd"), latchkey.SetOptions{NX: true, PX: 90_000}))(true, ok)
	is(c.Set(key, []byte("abcd"), latchkey.SetOptions{NX: true, XX: true}))(false, bad)
	is(c.Get(key))([]byte("abcd"), true, ok)
	is(c.AppendGet([]byte("x"), key))([]byte("xabcd"), true, ok)
	is(c.PTTL(key))(int64(90_000), ok)
	is(c.Set(key, []byte("abcde"), latchkey.SetOptions{KeepTTL: true}))(true, ok)
	is(c.PTTL(key))(int64(90_000), ok)
	is(c.IncrBy(key, 1))(int64(0), latchkey.ErrNotInt)
	is(c.Set(key, []byte("41"), latchkey.SetOptions{PXAT: c.NowMS() + 50_000}))(true, ok)
	is(c.PTTL(key))(int64(50_000), ok)
	is(c.IncrBy(key, 1))(int64(42), ok)
	is(c.PExpire(key, 0))(true, ok)
	is(c.PTTL(key))(int64(latchkey.NoTTL), ok)
	is(c.CompareAndSet(key, []byte("41"), []byte("1"), 0))(latchkey.Different, ok)
	is(c.CompareAndSet(key, []byte("42"), []byte("1"), 9))(latchkey.Equal, ok)
	is(c.CompareAndDelete(key, []byte("1")))(latchkey.Equal, ok)
	is(c.CompareAndDelete(key, []byte("1")))(latchkey.Missing, ok)
	is(c.Exists(key))(false, ok)
	is(c.PExpire(key, 1))(false, ok)
	is(c.Del(key))(false, ok)
	for _, other := range [][]byte{[]byte("not declared"), nil} {
		is(c.Get(other))(none, false, latchkey.ErrDenied)
		is(c.PTTL(other))(int64(0), latchkey.ErrDenied)
		is(c.Del(other))(false, latchkey.ErrDenied)
	}
	is(c.Set(key, nil, latchkey.SetOptions{}))(true, ok)
	is(c.Get(key))(none, true, ok)
	long := bytes.Repeat([]byte("x"), 100)
	is(c.Set(key, long, latchkey.SetOptions{}))(true, ok)
	is(c.Get(key))(long, true, ok)
	is(c.AppendGet(make([]byte, 0, 100), key))(long, true, ok)
	is(c.AppendGet(make([]byte, 1, 100), key))(append([]byte{0}, long...), true, ok)
	is(c.Notify("trial", key))(ok)
	is(c.Notify("", key))(bad)
	a, b := make([]byte, 16), make([]byte, 16)
	c.Random(a)
	c.Random(b)
	is(bytes.Equal(a, b), c.Fence() < c.Fence())(false, true)
	is(c.Is(0, "trial.keys"), c.Is(0, "trial.key"))(true, false)
	c.ReplySimple("OK")
	return nil
}

// run runs the command of its arguments from the second on, with the key put behind its name.
func run(c *latchkey.Call) error {
	args := [][]byte{c.Arg(2)}
	if string(c.Arg(1)) != "-" {
		args = append(args, c.Arg(1))
	}
	for i := 3; i < c.NArg(); i++ {
		args = append(args, c.Arg(i))
	}
	reply, err := c.Do(args...)
	if err != nil {
		return err
	}
	defer reply.Free()
	if err := reply.Err(); err != nil {
		return err
	}
	pass(c, reply)
	return nil
}

// pass replies a reply.
func pass(c *latchkey.Call, r latchkey.Reply) {
	elements := func() {
		n := 0
		for e, ok := r.Elem(0); ok; e, ok = r.Elem(n) {
			pass(c, e)
			n++
		}
		if r.Kind() == latchkey.KindMap {
			n /= 2
		}
		is(r.Len())(n)
		c.ReplyLen(n)
	}
	switch r.Kind() {
	case latchkey.KindNull:
		is(r.Len(), r.Bytes())(0, []byte(nil))
		c.ReplyNull()
	case latchkey.KindInt:
		c.ReplyInt(r.Int())
	case latchkey.KindBool:
		c.ReplyBool(r.Int() == 1)
	case latchkey.KindDouble:
		c.ReplyDouble(r.Double())
	case latchkey.KindBulk:
		is(r.Len())(len(r.Bytes()))
		c.ReplyBulk(r.Bytes())
	case latchkey.KindSimple:
		c.ReplySimple(string(r.Bytes()))
	case latchkey.KindBigNumber:
		c.ReplyBigNumber(string(r.Bytes()))
	case latchkey.KindVerbatim:
		c.ReplyVerbatim("txt", string(r.Bytes()))
	case latchkey.KindArray:
		c.ReplyArray(latchkey.Later)
		elements()
	case latchkey.KindMap:
		c.ReplyMap(latchkey.Later)
		elements()
	case latchkey.KindSet:
		c.ReplySet(latchkey.Later)
		elements()
	}
}

// state writes the states of a key and of the module, and reads them.
func state(c *latchkey.Call) error {
	key, text, buf := c.Arg(1), c.Arg(2), make([]byte, 8)
	ok, none := error(nil), []byte(nil)
	is(c.KeyState(key))(none, uint32(0), false, ok)
	is(c.ReadKeyState(key, 0, buf))(0, false, ok)
	is(c.WriteKeyState(key, 0, []byte("x")))(false, ok)
	is(c.State())(none, uint32(0), false, ok)
	is(c.SetKeyState(key, text, 3, latchkey.SetOptions{PX: 1000}))(true, ok)
	is(c.Type(key))(latchkey.TypeOwn, ok)
	is(c.KeyState(key))(text, uint32(3), true, ok)
	is(c.Get(key))(none, false, latchkey.ErrWrongType)
	is(c.WriteKeyState(key, 1, []byte("__")))(true, ok)
	is(c.WriteKeyState(key, uint32(len(text)), []byte("_")))(false, latchkey.ErrInvalid)
	is(c.ReadKeyState(key, 1, buf))(len(text)-1, true, ok)
	is(c.ReadKeyState(key, 100, buf))(0, false, latchkey.ErrInvalid)
	is(c.KeyState([]byte("not declared")))(none, uint32(0), false, latchkey.ErrDenied)
	is(c.SetState(text, 4))(ok)
	is(c.State())(text, uint32(4), true, ok)
	now, _, _, err := c.KeyState(key)
	c.ReplyBulk(now)
	return err
}

func reply(c *latchkey.Call) error {
	c.ReplyArray(9)
	c.ReplyNull()
	c.ReplyInt(-1 << 63)
	c.ReplyDouble(1.5)
	c.ReplyBool(true)
	c.ReplySimple("fine")
	c.ReplyBulk([]byte("\x00\xff"))
	c.ReplyBigNumber("-123456789012345678901234567890")
	c.ReplyVerbatim("txt", "some")
	c.ReplyMap(1)
	c.ReplyString("k")
	c.ReplySet(1)
	c.ReplyString("v")
	return nil
}

// fail writes the key, and fails in the way that the second argument says.
func fail(c *latchkey.Call) error {
	if _, err := c.Set(c.Arg(1), []byte("written"), latchkey.SetOptions{}); err != nil {
		return err
	}
	switch string(c.Arg(2)) {
	case "literal":
		return latchkey.Error("TRIAL failed")
	case "text":
		return fmt.Errorf("%d arguments", c.NArg())
	case "wrapped":
		return fmt.Errorf("while trying: %w", latchkey.Error("TRIAL was wrapped"))
	case "code":
		return fmt.Errorf("while trying: %w", latchkey.ErrDenied)
	case "oom":
		return latchkey.ErrOOM
	case "limit":
		return latchkey.ErrLimit
	case "context":
		return latchkey.ErrContext
	case "index":
		c.ReplyBulk(c.Arg(c.NArg()))
		return nil
	case "format":
		c.ReplyVerbatim("text", "")
		return nil
	}
	panic("what is " + string(c.Arg(2)))
}

// about tells what is known of the client, and of the configuration.
func about(c *latchkey.Call) error {
	is(c.Config("number"), c.Config("flag"), c.Config("none"))("7", "yes", "")
	latchkey.Log(latchkey.LogDebug, "about")
	c.ReplyArray(4)
	c.ReplyBool(strings.Contains(c.Client(latchkey.ClientAddr), ":") && c.Client(latchkey.ClientID) > "0")
	c.ReplyString(c.Client(latchkey.ClientName))
	c.ReplyString(c.Client(latchkey.ClientUser))
	c.ReplyString(c.Config("text"))
	return nil
}

// later sets a timer, cancels another, and binds the client to the key.
func later(c *latchkey.Call) error {
	ms, err := c.Int(2)
	if err != nil {
		return err
	}
	timer, err := c.SetTimer(ms, 5)
	is(timer > 0, err)(true, error(nil))
	is(c.SetTimer(-1, 5))(int64(0), latchkey.ErrInvalid)
	is(c.CancelTimer(1<<40))(false, error(nil))
	is(c.BindClient(c.Arg(1), 60_000))(error(nil))
	is(c.UnbindClient(c.Arg(1)))(error(nil))
	is(c.BindClient(c.Arg(1), 70_000))(error(nil))
	c.ReplyNull()
	return nil
}

func wait(c *latchkey.Call) error {
	ms, err := c.Int(2)
	if err != nil {
		return err
	}
	return c.Block(ms, 42, c.Arg(1))
}

func wake(c *latchkey.Call, token int64, timeout bool) error {
	value, ok, err := c.Get(c.Arg(1))
	is(token, err)(int64(42), error(nil))
	switch {
	case ok:
		c.ReplyBulk(value)
	case timeout:
		c.ReplySimple("TIMEOUT")
	default:
		return fmt.Errorf("not yet: %w", latchkey.ErrAgain)
	}
	return nil
}

// again has no Wake: it is run once more when the key is there.
func again(c *latchkey.Call) error {
	value, ok, err := c.Get(c.Arg(1))
	if err != nil || !ok {
		return c.Block(20, 0, c.Arg(1))
	}
	c.ReplyBulk(value)
	return nil
}
