package histories

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestModelRefuses shows the model histories that a lock cannot have: a checker
// that says yes to everything would prove nothing.
func TestModelRefuses(t *testing.T) {
	type done struct {
		from, to int64
		op       operation
		out      string
	}
	tests := []struct {
		name string
		ok   bool
		ops  []done
	}{
		{"two holders", false, []done{{1, 4, operation{kind: opSetNX, token: "a"}, "1"}, {2, 3, operation{kind: opSetNX, token: "b"}, "1"}}},
		{"one holder", true, []done{{1, 4, operation{kind: opSetNX, token: "a"}, "1"}, {2, 3, operation{kind: opSetNX, token: "b"}, "0"}}},
		{"a release of what another holds", false, []done{
			{1, 2, operation{kind: opSetNX, token: "a"}, "1"}, {3, 4, operation{kind: opReleaseIf, token: "b"}, "1"},
		}},
		{"freed before its time", false, []done{
			{1, 2, operation{kind: opSetNXPX, token: "a", ms: 10}, "OK"},
			{3, 4, operation{kind: opAdvance, ms: 9}, "OK"},
			{5, 6, operation{kind: opSetNXPX, token: "b", ms: 10}, "OK"},
		}},
		{"freed in time", true, []done{
			{1, 2, operation{kind: opSetNXPX, token: "a", ms: 10}, "OK"},
			{3, 4, operation{kind: opAdvance, ms: 10}, "OK"},
			{5, 6, operation{kind: opSetNXPX, token: "b", ms: 10}, "OK"},
		}},
		{"what failed remains", false, []done{{1, 2, operation{kind: opPoison, token: "a"}, undone}, {3, 4, operation{kind: opGet}, "a"}}},
		{"a lost update", false, []done{{1, 4, operation{kind: opIncr}, "1"}, {2, 3, operation{kind: opIncr}, "1"}}},
		{"an unknown outcome, done", true, []done{{1, never, operation{kind: opSetNX, token: "a"}, unknown}, {3, 4, operation{kind: opGet}, "a"}}},
		{"an unknown outcome, not done", true, []done{{1, never, operation{kind: opSetNX, token: "a"}, unknown}, {3, 4, operation{kind: opGet}, none}}},
		{"an unknown outcome, done and undone", false, []done{
			{1, never, operation{kind: opSetNX, token: "a"}, unknown}, {3, 4, operation{kind: opGet}, "a"}, {5, 6, operation{kind: opGet}, none},
		}},
	}
	for _, tt := range tests {
		var ops []porcupine.Operation
		for i, d := range tt.ops {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: d.op, Output: d.out, Call: d.from, Return: d.to})
		}
		if got := porcupine.CheckOperations(model(0), ops); got != tt.ok {
			t.Errorf("%s: the model says %v, want %v", tt.name, got, tt.ok)
		}
	}
}
