package scripting

import (
	"container/list"
	"sync"
)

// Cache holds compiled scripts by name, bounded by count and bytes. When it is
// full the scripts that only EVAL brought leave first, the longest unused one
// before the others, then those of SCRIPT LOAD. Its methods may be called from any
// goroutine.
type Cache struct {
	mu       sync.Mutex
	scripts  map[SHA1]*cached
	evals    list.List // most recently used in front
	loads    list.List
	pinned   list.List // in no order; they do not leave
	bytes    int
	max      int
	maxBytes int
	evicted  int64

	// refused remembers the newest sources that did not compile, so that the
	// same bomb is not defused again while keys are locked.
	refused  map[SHA1]string
	refusals [maxRefusals]SHA1
	nextRef  int

	// pins counts the queued commands that name a script, there or not yet.
	pins        map[SHA1]int
	pinnedBytes int
}

const maxRefusals = 256

type cached struct {
	script *Script
	loaded bool
	pinned bool
	at     *list.Element
	size   int
}

const (
	defaultCacheScripts = 4096
	defaultCacheBytes   = 64 << 20
	// scriptOverhead is what a cached script takes beside its source and code.
	scriptOverhead = 1024
)

func (c *Cache) init(scripts, bytes int) {
	if scripts == 0 {
		scripts = defaultCacheScripts
	}
	if bytes == 0 {
		bytes = defaultCacheBytes
	}
	c.scripts, c.max, c.maxBytes = map[SHA1]*cached{}, scripts, bytes
	c.refused = map[SHA1]string{}
	c.pins = map[SHA1]int{}
}

// SetBounds changes what the cache may hold, at least one script, and evicts what is too much.
func (c *Cache) SetBounds(scripts, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max, c.maxBytes = max(scripts, 1), bytes
	for len(c.scripts) > c.max || c.bytes > c.maxBytes {
		if !c.evict() {
			return
		}
	}
}

// codeFactor is how much larger than its source compiled code is, about.
const codeFactor = 20

// InCache tells whether the script, found earlier, is in the cache still, and
// counts as its use. It takes no lock: the cache asks when it wants to evict the
// script, which then has a second chance.
func (s *Script) InCache() bool {
	if !s.cached.Load() {
		return false
	}
	if !s.used.Load() {
		s.used.Store(true)
	}
	return true
}

// Get returns a script and counts as its use; nil when it is not there.
func (c *Cache) Get(name SHA1) *Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.scripts[name]
	if e == nil {
		return nil
	}
	c.order(e).MoveToFront(e.at)
	return e.script
}

// refusal is the reply for a source that is known not to compile, "" for others.
func (c *Cache) refusal(name SHA1) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[name]
}

func (c *Cache) refuse(name SHA1, reply string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.refused[name]; ok {
		return
	}
	delete(c.refused, c.refusals[c.nextRef])
	c.refusals[c.nextRef] = name
	c.nextRef = (c.nextRef + 1) % maxRefusals
	c.refused[name] = reply
}

// Has tells whether a script is there, without using it (SCRIPT EXISTS).
func (c *Cache) Has(name SHA1) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts[name] != nil
}

// Add keeps a script. A loaded one stays longer than one of EVAL, and a script
// that EVAL brought becomes a loaded one by SCRIPT LOAD. One that is larger than
// the whole cache is not kept. fresh tells that the script was not there, or is a
// loaded one only now.
func (c *Cache) Add(s *Script, loaded bool) (kept, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.scripts[s.SHA]; e != nil {
		if !loaded || e.loaded {
			c.order(e).MoveToFront(e.at)
			return true, false
		}
		c.move(e, func() { e.loaded = true })
		return true, true
	}
	size := scriptOverhead + len(s.Source)*(1+codeFactor)
	if size > c.maxBytes {
		return false, false
	}
	for len(c.scripts) >= c.max || c.bytes+size > c.maxBytes {
		if !c.evict() {
			return false, false
		}
	}
	e := &cached{script: s, loaded: loaded, size: size}
	e.at = c.order(e).PushFront(e)
	s.cached.Store(true)
	c.scripts[s.SHA] = e
	c.bytes += size
	if c.pins[s.SHA] > 0 {
		c.pin(e)
	}
	return true, true
}

func (c *Cache) order(e *cached) *list.List {
	switch {
	case e.pinned:
		return &c.pinned
	case e.loaded:
		return &c.loads
	}
	return &c.evals
}

// move puts a script into the list where a change of it belongs.
func (c *Cache) move(e *cached, change func()) {
	c.order(e).Remove(e.at)
	change()
	e.at = c.order(e).PushFront(e)
}

// evict drops the script that is needed least; those that are pinned stay.
func (c *Cache) evict() bool {
	for _, l := range []*list.List{&c.evals, &c.loads} {
		at := l.Back()
		// Scripts in use come by a second time at most, whatever others do meanwhile.
		for n := 2 * l.Len(); n > 0 && at != nil; n-- {
			e, next := at.Value.(*cached), at.Prev()
			if !e.script.used.Swap(false) {
				c.remove(e)
				c.evicted++
				return true
			}
			l.MoveToFront(at)
			if at = next; at == nil {
				at = l.Back()
			}
		}
	}
	return false
}

func (c *Cache) remove(e *cached) {
	e.script.cached.Store(false)
	c.order(e).Remove(e.at)
	delete(c.scripts, e.script.SHA)
	c.bytes -= e.size
	if e.pinned {
		c.pinnedBytes -= e.size
	}
}

// Pin keeps a script from being evicted until Unpin, for one that is named in a
// queued MULTI, from the moment it is there. SCRIPT FLUSH takes it all the same.
// Half of the cache at most is pinned, or one script: clients must not be able to
// close it to others.
func (c *Cache) Pin(name SHA1) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins[name]++
	if e := c.scripts[name]; e != nil && !e.pinned {
		c.pin(e)
	}
}

func (c *Cache) pin(e *cached) {
	if c.pinned.Len() > 0 && (c.pinned.Len() >= c.max/2 || c.pinnedBytes+e.size > c.maxBytes/2) {
		return
	}
	c.move(e, func() { e.pinned = true })
	c.pinnedBytes += e.size
}

// Unpin undoes one Pin.
func (c *Cache) Unpin(name SHA1) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pins[name]--; c.pins[name] > 0 {
		return
	}
	delete(c.pins, name)
	if e := c.scripts[name]; e != nil && e.pinned {
		c.pinnedBytes -= e.size
		c.move(e, func() { e.pinned = false })
	}
}

// Flush empties the cache. Runs of its scripts go on.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.scripts {
		e.script.cached.Store(false)
	}
	clear(c.scripts)
	c.evals.Init()
	c.loads.Init()
	c.pinned.Init()
	c.bytes, c.pinnedBytes = 0, 0
	clear(c.refused)
}

// Loaded returns the scripts of SCRIPT LOAD, the longest unused one first.
func (c *Cache) Loaded() []*Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Script, 0, c.loads.Len())
	for _, l := range []*list.List{&c.loads, &c.pinned} {
		for at := l.Back(); at != nil; at = at.Prev() {
			if e := at.Value.(*cached); e.loaded {
				out = append(out, e.script)
			}
		}
	}
	return out
}

// CacheStats is what INFO says about the cache.
type CacheStats struct {
	Scripts int
	Bytes   int   // of sources and, estimated, code
	Evicted int64 // since the start
}

// Stats returns the present numbers.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{len(c.scripts), c.bytes, c.evicted}
}
