package histories

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// heldCommands are scripts written in Go: commands that lock their keys, look,
// take their time, and write. They test the store and the proxy by themselves,
// without a Lua machine between.
//
//	TEST.ACQUIRE key token at     set to token until Unix ms at, if absent; 1 or the value
//	TEST.RELEASE key token        delete if it holds token; 1 or the value
//	TEST.POISON key token         set to token, then fail
//	TEST.INCR key                 add one, by a read and a write
//	TEST.DOOR door key [key ...]  hold the keys until the test opens the door
//	TEST.SPIN ms key [key ...]    hold the keys and a processor
func heldCommands(d *doors) []*command.Spec {
	held := func(name string, arity int, keys []command.KeySpec, h command.Handler) *command.Spec {
		return &command.Spec{Name: name, Arity: arity, Flags: command.Write, Access: command.Locked, Keys: keys, Handler: h}
	}
	one := command.OneKey(command.KeyRW | command.KeyUpdate)
	rest := []command.KeySpec{{Begin: 2, Last: -1, Flags: command.KeyRW | command.KeyUpdate}}
	return []*command.Spec{
		held("test.acquire", 4, one, func(c *command.Call) {
			at, ok := c.Int(3)
			if !ok {
				return
			}
			k := c.Key(1)
			if k.Exists() {
				c.Reply.Bulk(k.Str())
				return
			}
			ponder()
			k.SetString(c.Args[2], store.ExpireAt(at))
			c.Reply.Int(1)
		}),
		held("test.release", 3, one, func(c *command.Call) {
			k := c.Key(1)
			if !k.Exists() {
				c.Reply.Null()
				return
			}
			if string(k.Str()) != string(c.Args[2]) {
				c.Reply.Bulk(k.Str())
				return
			}
			ponder()
			k.Delete()
			c.Reply.Int(1)
		}),
		held("test.poison", 3, one, func(c *command.Call) {
			c.Key(1).SetString(c.Args[2], store.NoTTL)
			ponder()
			c.Err("ERR poison")
		}),
		held("test.incr", 2, one, func(c *command.Call) {
			k := c.Key(1)
			n, _ := command.ParseInt(k.Str())
			ponder()
			k.SetString(command.FormatInt(n+1), store.KeepTTL)
			c.Reply.Int(n + 1)
		}),
		held("test.door", -3, rest, func(c *command.Call) {
			select {
			case <-d.enter(string(c.Args[1])):
				c.OK()
			case <-c.S.Wait.Done:
				c.Err(command.ErrCancelled)
			}
		}),
		held("test.spin", -3, rest, func(c *command.Call) {
			ms, ok := c.Int(1)
			if !ok {
				return
			}
			for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); {
			}
			c.OK()
		}),
	}
}

// ponder gives others the time to come between.
func ponder() {
	for range 4 {
		runtime.Gosched()
	}
}

// doors keep commands waiting until the test opens them. A door is made by
// whoever names it first.
type doors struct {
	mu    sync.Mutex
	named map[string]*door
	all   bool
}

type door struct {
	open    chan struct{}
	once    sync.Once
	entered atomic.Bool
}

func newDoors() *doors { return &doors{named: map[string]*door{}} }

func (d *doors) get(name string) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.named[name]
	if x == nil {
		x = &door{open: make(chan struct{})}
		d.named[name] = x
		if d.all {
			close(x.open)
			x.once.Do(func() {})
		}
	}
	return x
}

// enter notes that somebody stands at the door.
func (d *doors) enter(name string) <-chan struct{} {
	x := d.get(name)
	x.entered.Store(true)
	return x.open
}

// entered tells whether somebody has come to the door.
func (d *doors) entered(name string) bool { return d.get(name).entered.Load() }

func (d *doors) open(name string) {
	x := d.get(name)
	x.once.Do(func() { close(x.open) })
}

// openAll lets everybody through, now and later.
func (d *doors) openAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = true
	for _, x := range d.named {
		x.once.Do(func() { close(x.open) })
	}
}
