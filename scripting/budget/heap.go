package budget

import "runtime/metrics"

// HeapSample is what the collector knows, process-wide.
type HeapSample struct {
	Objects int64 // bytes of objects, dead ones not yet swept included
	Live    int64 // bytes the last finished cycle found alive
	Cycles  int64
	// All is Live with what is known not to be a script's, which a reader may take off the others.
	All int64
}

// Worth tells whether so many bytes that were allocated since the collector was last
// asked to run are worth a cycle, which goes through all that is alive.
func (s HeapSample) Worth(allocated int64) bool { return allocated >= s.All/8 }

// ReadHeap asks the collector, which takes a microsecond or two.
func ReadHeap() HeapSample {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(s)
	live := int64(s[1].Value.Uint64())
	return HeapSample{int64(s[0].Value.Uint64()), live, int64(s[2].Value.Uint64()), live}
}
