package contention

import (
	"fmt"
	"sync"
)

// Section is the critical section that a lock is meant to guard. The zero value is empty and ready; its methods
// may be called from any goroutine.
type Section struct {
	mu     sync.Mutex
	inside int
	turn   uint64 // grows by one with every entry, and never shrinks
	count  Count
}

// Count is what a Section has seen.
type Count struct {
	Holders    int // entries
	Overlapped int // holders who were not alone: found somebody inside, or were joined by somebody
	Most       int // most inside at once
}

// String is for a test's message.
func (c Count) String() string {
	return fmt.Sprintf("%d holders, %d overlapped, at most %d at once", c.Holders, c.Overlapped, c.Most)
}

// Visit is one stay in a Section.
type Visit struct {
	section *Section
	turn    uint64
	joined  bool // somebody was inside on entry; counted already
	left    bool
}

// Enter is called by who believes to hold the lock. It does not block.
func (s *Section) Enter() *Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	s.inside++
	s.count.Holders++
	s.count.Most = max(s.count.Most, s.inside)
	v := &Visit{section: s, turn: s.turn, joined: s.inside > 1}
	if v.joined {
		s.count.Overlapped++
	}
	return v
}

// Leave ends the visit. If the turn has moved on since, somebody has come in meanwhile, even if they are gone
// again, and this holder was not alone. Leaving twice does nothing.
func (v *Visit) Leave() {
	s := v.section
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.left {
		return
	}
	v.left = true
	s.inside--
	if !v.joined && s.turn != v.turn {
		s.count.Overlapped++
	}
}

// Inside is how many are in the section now.
func (s *Section) Inside() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inside
}

// Count is what was seen so far. It is complete when everybody has left.
func (s *Section) Count() Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
