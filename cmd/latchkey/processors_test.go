package main

import (
	"runtime"
	"testing"
)

func TestProcessorsFollowLongScripts(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	p := newProcessors(before, 3)
	defer p.close()
	want := func(n int, when string) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != n {
			t.Fatalf("%s there are %d processors, want %d", when, got, n)
		}
	}
	p.long(true)
	p.long(true)
	want(before+3, "with two long scripts")
	p.long(false)
	p.rest()
	want(before+3, "with one long script left")
	p.long(false)
	want(before+3, "right after the last long script")
	p.long(true)
	p.long(false)
	p.rest()
	want(before, "a while after the last long script")
}
