package command

import (
	"strings"
	"testing"
)

// TestCountedKeys: the quick way to the keys behind their number finds what the
// key specs find.
func TestCountedKeys(t *testing.T) {
	handler := func(*Call) {}
	spec := &Spec{Name: "count", Arity: -2, Flags: ReadOnly, Keys: []KeySpec{{Begin: 2, Count: true, FirstAt: 1, Step: 1}}, Handler: handler}
	odd := &Spec{Name: "odd", Arity: -2, Flags: ReadOnly, Keys: []KeySpec{{Begin: 1, Count: true, FirstAt: 1, Step: 2}}, Handler: handler}
	if _, err := NewTable([]*Spec{spec, odd}); err != nil {
		t.Fatal(err)
	}
	if !spec.counted || odd.counted {
		t.Fatalf("counted are %v and %v, want true and false", spec.counted, odd.counted)
	}
	for _, line := range []string{
		"count x 0", "count x 0 a", "count x 1 a", "count x 2 a b c", "count x 3 a b c", "count x 4 a b c", "count x 9 a",
		"count x", "count x -1 a", "count x 01 a", "count x / a", "count x : a", "count x 10 a b c d e f g h i j",
	} {
		c := &Call{S: &Session{}, Spec: spec}
		for _, word := range strings.Fields(line) {
			c.Args = append(c.Args, []byte(word))
		}
		n, ok := c.fewCounted()
		if want := len(c.positions()); ok && n != want {
			t.Errorf("%s: %d keys, want %d", line, n, want)
		} else if !ok && want != 0 && want < 10 && line != "count x 01 a" {
			t.Errorf("%s: its %d keys are not found quickly", line, want)
		}
	}
}
