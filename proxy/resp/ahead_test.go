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

// What Ahead has cut is judged by the limits that are found when it is due.
func TestAheadIsJudgedAnew(t *testing.T) {
	const get = "*2\r\n$3\r\nGET\r\n$9\r\nkey:00001\r\n"
	for _, tt := range []struct {
		what   string
		change func(lim *Limits)
		want   string
	}{
		{"none", func(*Limits) {}, ""},
		{"proto-max-bulk-len", func(lim *Limits) { lim.MaxBulk = 8 }, errInvalidBulk.Error()},
		{"client-query-buffer-limit", func(lim *Limits) { lim.MaxQuery = 16 }, ErrQueryLimit.Error()},
		{"arguments", func(lim *Limits) { lim.MaxMultibulk = 1 }, errInvalidCount.Error()},
	} {
		lim := &Limits{Authenticated: true}
		r := NewReader(strings.NewReader(strings.Repeat(get, 4)), lim)
		for i := range 2 {
			if _, _, err := r.Next(); err != nil {
				t.Fatalf("%s: Next %d: %v", tt.what, i, err)
			}
			if got := len(r.Ahead(1, make([][]byte, 0, 8))); got != 3-i {
				t.Fatalf("%s: Ahead saw %d commands, want %d", tt.what, got, 3-i)
			}
		}
		tt.change(lim)
		if !r.Buffered() {
			t.Errorf("%s: there is nothing to return any more", tt.what)
		}
		got := ""
		if _, _, err := r.Next(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s changed after Ahead: Next says %q, want %q", tt.what, got, tt.want)
		}
	}

	// Who authenticates may send more: what could not be cut before can now.
	lim := &Limits{}
	big := strings.Repeat("v", unauthenticatedBulk+1)
	r := NewReader(strings.NewReader(get+get+fmt.Sprintf("*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(big), big)), lim)
	for i, want := range []int{9, 9, len(big)} {
		args, _, err := r.Next()
		if err != nil || len(args[1]) != want {
			t.Fatalf("command %d: %v, want an argument of %d bytes", i, err, want)
		}
		r.Ahead(1, make([][]byte, 0, 8))
		lim.Authenticated = true
	}
}

func BenchmarkAhead(b *testing.B) {
	in := strings.Repeat("*3\r\n$5\r\nSETNX\r\n$16\r\nkey:000000000001\r\n$8\r\nvvvvvvvv\r\n", 16)
	dst := make([][]byte, 0, 16)
	src := strings.NewReader(in)
	r := NewReader(src, &Limits{Authenticated: true})
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(in)
		for i := range 16 {
			if _, _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
			if i == 0 {
				r.Ahead(1, dst)
			}
			r.Buffered()
		}
	}
}
