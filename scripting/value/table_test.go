package value

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
)

func TestValues(t *testing.T) {
	table := NewTable(0, 0)
	for _, tc := range []struct {
		v    Value
		kind Kind
		true bool
	}{
		{Nil, KindNil, false},
		{False, KindBool, false},
		{True, KindBool, true},
		{Number(0), KindNumber, true},
		{Number(math.Float64frombits(3 << 56)), KindNumber, true},
		{String(""), KindString, true},
		{String("x"), KindString, true},
		{FromTable(table), KindTable, true},
		{Light(0), KindLight, true},
		{Light(7), KindLight, true},
	} {
		if tc.v.Kind() != tc.kind || tc.v.Truthy() != tc.true || tc.v.IsNil() != (tc.kind == KindNil) ||
			tc.v.IsNumber() != (tc.kind == KindNumber) || tc.v.IsString() != (tc.kind == KindString) || tc.v.IsTable() != (tc.kind == KindTable) {
			t.Errorf("%v of kind %v is taken for a %v, true %v", tc.v, tc.kind, tc.v.Kind(), tc.v.Truthy())
		}
		if !Equal(tc.v, tc.v) {
			t.Errorf("%v is not equal to itself", tc.v)
		}
	}
	if Equal(Number(math.NaN()), Number(math.NaN())) || !Equal(Number(0), Number(math.Copysign(0, -1))) {
		t.Error("NaN equals itself, or 0 is not -0")
	}
	if Equal(String("1"), Number(1)) || Equal(Nil, False) || Equal(Light(0), Nil) || !Equal(String("ab"), String(strings.Clone("ab"))) {
		t.Error("values of different kinds are equal, or equal strings differ")
	}
	if String("").AsString() != "" || String("a\x00b").AsString() != "a\x00b" || Light(9).AsLight() != 9 {
		t.Error("a value does not give back what it was made of")
	}
}

// TestTableAsMap does what a map does.
func TestTableAsMap(t *testing.T) {
	keys := []Value{True, False, Light(0), Light(1), Number(0.5), Number(-1), Number(1 << 40), Number(math.Inf(1)), FromTable(NewTable(0, 0))}
	for i := range 40 {
		keys = append(keys, Int(i), String(strings.Repeat("k", i)))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		table := NewTable(r.IntN(9), r.IntN(9))
		want := map[int]float64{}
		for range 200 {
			k := r.IntN(len(keys))
			if r.IntN(3) == 0 {
				table.Set(keys[k], Nil)
				delete(want, k)
			} else {
				f := r.Float64()
				table.Set(keys[k], Number(f))
				want[k] = f
			}
			for i, k := range keys {
				f, ok := want[i]
				if v := table.Get(k); ok != !v.IsNil() || ok && v.AsNumber() != f {
					t.Fatalf("round %d: key %d holds %v, want %v %v", round, i, v, f, ok)
				}
			}
		}
		n := 0
		for k, v, _ := table.Next(Nil); !k.IsNil(); k, v, _ = table.Next(k) {
			if !Equal(table.Get(k), v) {
				t.Fatalf("round %d: next gives a pair that is not in the table", round)
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("round %d: next gives %d pairs, want %d", round, n, len(want))
		}
	}
}

// TestBorders has what redis-server answers for the length of tables with holes.
func TestBorders(t *testing.T) {
	one := Number(1)
	holes := NewTable(0, 3)
	holes.SetStr("n", one)
	holes.SetInt(3, one)
	holes.SetInt(1, one)
	if n := holes.Len(); n != 1 {
		t.Errorf("#{n=1,[3]=3,[1]=1} is %d, want 1", n)
	}
	list := NewTable(4, 0)
	for _, i := range []int{1, 2, 4} {
		list.SetInt(i, one)
	}
	if n := list.Len(); n != 4 {
		t.Errorf("#{1,2,nil,4} is %d, want 4", n)
	}
	list.SetInt(4, Nil)
	if n := list.Len(); n != 2 {
		t.Errorf("#{1,2,nil,nil} is %d, want 2", n)
	}
	grown := NewTable(0, 0)
	for i := 1; i <= 1000; i++ {
		grown.SetInt(i, one)
	}
	if n := grown.Len(); n != 1000 || len(grown.array) != 1024 {
		t.Errorf("a thousand elements have length %d in an array of %d", n, len(grown.array))
	}
	if a := Array(nil, []Value{one, one, one}); a.Len() != 3 || len(a.array) != 4 {
		t.Errorf("Array of three has length %d in an array of %d", a.Len(), len(a.array))
	}
}

func TestTableErrors(t *testing.T) {
	table := NewTable(0, 0)
	if err := table.Set(Nil, True); !errors.Is(err, ErrNilIndex) {
		t.Errorf("storing under nil: %v", err)
	}
	if err := table.Set(Number(math.NaN()), True); !errors.Is(err, ErrNaNIndex) {
		t.Errorf("storing under NaN: %v", err)
	}
	if _, _, err := table.Next(String("x")); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("next of an unknown key: %v", err)
	}
}

// TestAccount: growth is charged before it happens, and long chains pay.
func TestAccount(t *testing.T) {
	var a budget.Account
	a.Begin(&budget.Terms{Limits: budget.Limits{Memory: 1 << 20}, Now: time.Now, Heap: budget.ReadHeap})
	table := New(&a, 0, 0)
	func() {
		defer func() {
			if p := recover(); p != (budget.Ended{}) {
				t.Errorf("a table beyond the limit ends with %v, want budget.Ended", p)
			}
		}()
		for i := 1; i < 1<<20; i++ {
			table.SetInt(i, True)
		}
		t.Error("a table takes more than the limit")
	}()
	if !errors.Is(a.Stop, budget.ErrMemory) || len(table.array) > 1<<16 {
		t.Errorf("the account ends with %v and an array of %d", a.Stop, len(table.array))
	}
	a.Begin(&budget.Terms{Now: time.Now, Heap: budget.ReadHeap})
	table = New(&a, 0, 1<<12)
	for i := range 1 << 11 { // numbers whose words add up to the same
		table.Set(Number(math.Float64frombits(uint64(i)<<32|uint64(1<<31-i))), True)
	}
	before := a.Left
	table.Get(Number(math.Float64frombits(5000<<32 | 1<<31 - 5000)))
	if spent := before - a.Left; spent < 1000 {
		t.Errorf("a chain of %d keys cost %d instructions", 1<<11, spent)
	}
}

func TestHash(t *testing.T) {
	if h := HashString("a"); h != 1^(1<<5+0+'a') {
		t.Errorf("hash of a is %d", h)
	}
}

func BenchmarkGetHashed(b *testing.B) {
	table := NewTable(0, 4)
	for _, k := range []string{"call", "pcall", "log"} {
		table.SetStr(k, True)
	}
	hash := HashString("call")
	for b.Loop() {
		if table.GetHashed("call", hash).IsNil() {
			b.Fatal("not found")
		}
	}
}

// TestResizeMovesKeys: an array part that grows takes its keys from the hash part.
func TestResizeMovesKeys(t *testing.T) {
	tab := NewTable(0, 2)
	tab.SetInt(1, Int(-1))
	tab.SetInt(3, Int(-3))
	tab.SetStr("k", True)
	tab.Resize(3)
	tab.SetInt(1, Int(10))
	if got := tab.GetInt(1).AsNumber(); got != 10 {
		t.Errorf("t[1] is %v, want 10", got)
	}
	if got := tab.GetInt(3).AsNumber(); got != -3 {
		t.Errorf("t[3] is %v, want -3", got)
	}
	n := 0
	for at, k, _ := tab.NextAt(0); !k.IsNil(); at, k, _ = tab.NextAt(at) {
		n++
	}
	if n != 3 {
		t.Errorf("%d keys, want 3", n)
	}
}

// TestLengthNeedsNoSearch: what a table knows of its array never changes the length
// that Lua's search would find.
func TestLengthNeedsNoSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for round := range 400 {
		table := NewTable(r.IntN(6), r.IntN(4))
		for step := range 120 {
			switch n := table.Len(); r.IntN(12) {
			case 0:
				table.SetInt(1+r.IntN(40), Nil)
			case 1:
				table.SetInt(1+r.IntN(40), True)
			case 2:
				table.Set(String(strings.Repeat("k", r.IntN(9))), True)
			case 3:
				table.SetInt(n, Nil)
			case 4:
				table.Resize(r.IntN(50))
			case 5:
				k := r.IntN(len(table.Slots()) + 1)
				table.Shrink(k)
			case 6:
				values := make([]Value, r.IntN(9))
				for i := range values {
					values[i] = Bool(r.IntN(2) == 0)
					if r.IntN(8) == 0 {
						values[i] = Nil
					}
				}
				table = Array(nil, values)
			case 7:
				slots := table.Slots()
				k := r.IntN(len(slots) + 1)
				for i := range slots {
					slots[i] = Nil
					if i < k {
						slots[i] = False
					}
				}
				table.Filled(k)
			default:
				table.SetInt(n+1, Number(1))
			}
			forgetful := *table
			forgetful.filled = unknown
			if n, want := table.Len(), forgetful.Len(); n != want {
				t.Fatalf("round %d, step %d: the length is %d, a search finds %d", round, step, n, want)
			}
		}
	}
	list := NewTable(0, 1)
	list.SetStr("name", True)
	for i := range 100 {
		list.SetInt(i+1, True)
	}
	if list.filled != 100 {
		t.Errorf("of a list of a hundred %d are known to be filled", list.filled)
	}
}
