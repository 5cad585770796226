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
	bytes    int
	max      int
	maxBytes int
	evicted  int64

	// refused remembers the newest sources that did not compile, so that the
	// same bomb is not defused again while keys are locked.
	refused  map[SHA1]string
	refusals [maxRefusals]SHA1
	nextRef  int
}

const maxRefusals = 256

type cached struct {
	script *Script
	loaded bool
	at     *list.Element
	size   int
	pins   int
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
// the whole cache is not kept.
func (c *Cache) Add(s *Script, loaded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.scripts[s.SHA]; e != nil {
		if loaded && !e.loaded {
			c.evals.Remove(e.at)
			e.loaded = true
			e.at = c.loads.PushFront(e)
		}
		return
	}
	size := scriptOverhead + len(s.Source)*(1+codeFactor)
	if size > c.maxBytes {
		return
	}
	for len(c.scripts) >= c.max || c.bytes+size > c.maxBytes {
		if !c.evict() {
			return
		}
	}
	e := &cached{script: s, loaded: loaded, size: size}
	e.at = c.order(e).PushFront(e)
	c.scripts[s.SHA] = e
	c.bytes += size
}

func (c *Cache) order(e *cached) *list.List {
	if e.loaded {
		return &c.loads
	}
	return &c.evals
}

// evict drops the script that is needed least; those that are pinned stay.
func (c *Cache) evict() bool {
	for _, l := range []*list.List{&c.evals, &c.loads} {
		for at := l.Back(); at != nil; at = at.Prev() {
			if e := at.Value.(*cached); e.pins == 0 {
				c.remove(e)
				c.evicted++
				return true
			}
		}
	}
	return false
}

func (c *Cache) remove(e *cached) {
	c.order(e).Remove(e.at)
	delete(c.scripts, e.script.SHA)
	c.bytes -= e.size
}

// Pin keeps a script from being evicted until Unpin, for one that is named in a
// queued MULTI; ok is false when it is not there. SCRIPT FLUSH takes it all the same.
func (c *Cache) Pin(name SHA1) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.scripts[name]
	if e != nil {
		e.pins++
	}
	return e != nil
}

// Unpin undoes one Pin.
func (c *Cache) Unpin(name SHA1) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.scripts[name]; e != nil && e.pins > 0 {
		e.pins--
	}
}

// Flush empties the cache. Runs of its scripts go on.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.scripts)
	c.evals.Init()
	c.loads.Init()
	c.bytes = 0
	clear(c.refused)
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
