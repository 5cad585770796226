package command

import (
	"errors"
	"strings"
	"testing"
)

func TestRename(t *testing.T) {
	handler := func(*Call) {}
	table, err := NewTable([]*Spec{
		{Name: "a", Arity: 1, Access: Free, Handler: handler},
		{Name: "b", Arity: 1, Access: Free, Handler: handler},
		{Name: "c", Arity: -2, Access: Free, Sub: []*Spec{{Name: "x", Arity: 2, Access: Free, Handler: handler}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, to string
		err      error
	}{
		{"nosuch", "x", ErrRenameUnknown},
		{"a", "B", ErrRenameTaken},
		{"c|x", "y", ErrRenameUnknown},
		{"a", strings.Repeat("n", maxName+1), ErrRenameName},
		{"A", "Old B", nil},
		{"b", "a", nil},
		{"C", "", nil},
		{"c", "d", ErrRenameUnknown},
	} {
		if err := table.Rename(step.name, step.to); !errors.Is(err, step.err) {
			t.Errorf("Rename(%q, %q) is %v, want %v", step.name, step.to, err, step.err)
		}
	}
	for called, own := range map[string]string{"OLD b": "a", "A": "b", "b": "", "c": ""} {
		got := ""
		if s := table.Lookup([]byte(called)); s != nil {
			got = s.FullName()
			if !s.Renamed() {
				t.Errorf("%s, called %s, does not count as renamed", got, called)
			}
		}
		if got != own {
			t.Errorf("%s finds %q, want %q", called, got, own)
		}
	}
	if err := table.Rename("a", "b"); err != nil || table.Lookup([]byte("b")).Renamed() {
		t.Errorf("a command that has got its own name back (%v) still counts as renamed", err)
	}
}
