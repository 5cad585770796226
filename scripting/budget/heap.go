package budget

import "runtime/metrics"

// HeapSample is what the collector knows, process-wide.
type HeapSample struct {
	Objects int64 // bytes of objects, dead ones not yet swept included
	Live    int64 // bytes the last finished cycle found alive
	Cycles  int64
}

// ReadHeap asks the collector, which takes a microsecond or two.
func ReadHeap() HeapSample {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(s)
	return HeapSample{int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()), int64(s[2].Value.Uint64())}
}
