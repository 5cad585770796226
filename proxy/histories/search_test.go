package histories

import (
	"math/rand/v2"
	"slices"

	"github.com/anishathalye/porcupine"
)

// arrange looks for an order in which a register could have run a history, and
// narrows the operations' intervals to it. porcupine, which has the last word,
// then follows that order without a guess. When it has found none, nil comes
// back; all says that it has tried every one.
//
// Where porcupine tries each order of the refusals and reads between two
// changes, of which 64 clients produce dozens, arrange takes every operation
// that changes nothing as soon as its answer is right: to run it later could
// not be better for any other.
func arrange(m porcupine.Model, ops []porcupine.Operation) (narrowed []porcupine.Operation, all bool) {
	s := &search{ops: ops, model: m, done: make([]bool, len(ops)), mark: make([]uint64, len(ops)), failed: map[place]bool{}}
	for i := range s.mark {
		s.mark[i] = rand.Uint64()
		if ops[i].Output != unknown {
			s.left++
		}
	}
	if !s.from(m.Init(), 0, 0) {
		return nil, len(s.failed) <= patience
	}
	out := make([]porcupine.Operation, 0, len(ops))
	latest := int64(-1)
	for n, i := range s.order {
		// The instant of an operation is the earliest that its own beginning and
		// the operations before it allow.
		o := ops[i]
		latest = max(latest, o.Call)
		o.Call = latest*int64(len(ops)+1) + int64(n)
		o.Return = o.Call
		out = append(out, o)
	}
	for i, o := range ops {
		if !s.done[i] { // unknown, and not needed
			o.Call, o.Return = (latest+1)*int64(len(ops)+1)+int64(len(ops)), never
			out = append(out, o)
		}
	}
	return out, false
}

type search struct {
	ops    []porcupine.Operation // by Call
	model  porcupine.Model
	done   []bool
	mark   []uint64 // random, to tell sets of operations apart
	left   int      // operations that must still be run
	order  []int
	failed map[place]bool
}

// place is where the search has been: what was run, and what came of it.
type place struct {
	set   uint64
	state any
}

// patience is how many places a search visits.
const patience = 1 << 19

func (s *search) run(i int) {
	s.done[i] = true
	s.order = append(s.order, i)
	if s.ops[i].Output != unknown {
		s.left--
	}
}

func (s *search) back(n int) {
	for _, i := range s.order[n:] {
		s.done[i] = false
		if s.ops[i].Output != unknown {
			s.left++
		}
	}
	s.order = s.order[:n]
}

// from goes on with the operations that are not done, of which none is before
// first.
func (s *search) from(state any, set uint64, first int) bool {
	begun := len(s.order)
	var next []int
	for again := true; again; {
		again, next = false, next[:0]
		for first < len(s.ops) && s.done[first] {
			first++
		}
		deadline := int64(never) // of all that are not done
		for i := first; i < len(s.ops) && s.ops[i].Call <= deadline; i++ {
			if !s.done[i] {
				deadline = min(deadline, s.ops[i].Return)
			}
		}
		for i := first; i < len(s.ops) && s.ops[i].Call <= deadline; i++ {
			if s.done[i] {
				continue
			}
			if !observes(s.ops[i]) {
				next = append(next, i)
				continue
			}
			if ok, after := s.model.Step(state, s.ops[i].Input, s.ops[i].Output); ok {
				state, set, again = after, set^s.mark[i], true
				s.run(i)
			}
		}
	}
	if s.left == 0 {
		return true
	}
	at := place{set, state}
	if s.failed[at] || len(s.failed) > patience {
		s.back(begun)
		return false
	}
	// Who must be done first is tried first.
	slices.SortStableFunc(next, func(a, b int) int {
		switch x, y := s.ops[a].Return, s.ops[b].Return; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, i := range next {
		ok, after := s.model.Step(state, s.ops[i].Input, s.ops[i].Output)
		if !ok {
			continue
		}
		n := len(s.order)
		s.run(i)
		if s.from(after, set^s.mark[i], first) {
			return true
		}
		s.back(n)
	}
	s.failed[at] = true
	s.back(begun)
	return false
}

// observes tells whether an operation, by what it was answered, changed nothing.
func observes(o porcupine.Operation) bool {
	answer := o.Output.(string)
	if answer == unknown {
		return false
	}
	in := o.Input.(operation)
	switch in.kind {
	case opGet:
		return true
	case opDel:
		return answer == "0"
	case opReleaseIf:
		return answer != "1"
	case opSetNX, opSetNXPX, opSetNXGet, opAcquire:
		return !wrote(in, answer)
	}
	return false
}
