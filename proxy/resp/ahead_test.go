package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAheadSeesWhatNextReturns(t *testing.T) {
	var in strings.Builder
	var keys []string
	for i := range 12 {
		key := fmt.Sprintf("key:%d", i)
		keys = append(keys, key)
		fmt.Fprintf(&in, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nv\r\n", len(key), key)
	}
	whole := in.String()
	// What follows the whole commands is no command yet, or none that Ahead knows.
	for _, tail := range []string{"", "*3\r\n$3\r\nSE", "PING\r\n", "*-1\r\n", "*1\r\n$4\r\nPING\r\n"} {
		r := NewReader(strings.NewReader(whole+tail), &Limits{Authenticated: true})
		if got := r.Ahead(1, make([][]byte, 0, 4)); len(got) != 0 {
			t.Fatalf("before anything was read Ahead returned %q", got)
		}
		for i, key := range keys {
			args, _, err := r.Next()
			if err != nil || string(args[1]) != key {
				t.Fatalf("Next %d returned %q, %v; want the key %s", i, args, err, key)
			}
			if i%3 == 1 {
				r.Buffered() // parses one command ahead
			}
			var got []string
			for _, k := range r.Ahead(1, make([][]byte, 0, 5)) {
				got = append(got, string(k))
			}
			want := keys[i+1 : min(i+6, len(keys))]
			if !slices.Equal(got, want) {
				t.Fatalf("tail %q: after command %d Ahead returned %q, want %q", tail, i, got, want)
			}
			if string(args[1]) != key {
				t.Fatalf("Ahead changed the views of the last Next: %q", args)
			}
		}
	}
}

func BenchmarkAhead(b *testing.B) {
	in := strings.Repeat("*3\r\n$5\r\nSETNX\r\n$16\r\nkey:000000000001\r\n$8\r\nvvvvvvvv\r\n", 16)
	r := NewReader(strings.NewReader(in), &Limits{Authenticated: true})
	if _, _, err := r.Next(); err != nil {
		b.Fatal(err)
	}
	dst := make([][]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		r.Ahead(1, dst)
	}
}
