package store

import "sync/atomic"

// Fence draws fencing numbers: each is greater than every one drawn before, so
// whoever took a lock later holds the greater number. Gaps are allowed; the
// numbers stay below 2^53 so that Lua and JavaScript hold them exactly.
//
// It starts at the larger of the persisted high-water mark and Unix
// microseconds, which is what keeps it growing across restarts.
type fence struct{ last atomic.Int64 }

func (f *fence) start(mark, unixMicro int64) { f.last.Store(max(mark, unixMicro)) }

func (f *fence) draw() int64 { return f.last.Add(1) }
