package histories

import (
	"slices"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// sharpen narrows the intervals of a history to what must have been, and leaves
// out what could have been at any time. No verdict changes by it: each narrowing
// follows from the fact that a token is written by one operation only, so that
// whoever has seen it came after that one and before the one that removed it.
// It only spares porcupine guesses: with 64 clients at once, a single wrong one
// is found out so late that it never comes back from it.
func sharpen(ops []porcupine.Operation) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops))
	for _, o := range ops {
		if o.Output == undone {
			continue // nothing was done: any register could have said so at any time
		}
		// Between two instants of the clock there is room for fine orders.
		o.Call *= grain
		if o.Return != never {
			o.Return = o.Return*grain + grain - 1
		}
		out = append(out, o)
	}
	terms := termsOf(out)
	counts := map[string]*porcupine.Operation{}
	for i := range out {
		if o := &out[i]; o.Input.(operation).kind == opIncr {
			counts[o.Output.(string)] = o
		}
	}
	for n := 1; n < len(counts); n++ {
		if a, b := counts[strconv.Itoa(n)], counts[strconv.Itoa(n+1)]; a != nil && b != nil {
			follows(a, b)
		}
	}
	for changed, turn := true, 0; changed && turn < 50; turn++ {
		changed = false
		for _, t := range terms {
			changed = t.narrow() || changed
		}
		for _, a := range terms {
			last := a.last()
			for _, b := range terms {
				// If a was still there when b had begun, then b came first, and all
				// of it before a began.
				if a != b && last.Call > b.begin.Return {
					changed = b.before(a) || changed
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b porcupine.Operation) int {
		switch {
		case a.Call < b.Call:
			return -1
		case a.Call > b.Call:
			return 1
		}
		return 0
	})
	return out
}

const grain = 1 << 10

// term is how long the register held one token.
type term struct {
	begin *porcupine.Operation   // wrote it
	seen  []*porcupine.Operation // answered it
	end   *porcupine.Operation   // removed it; nil: nobody, or its expiry
}

func termsOf(ops []porcupine.Operation) []*term {
	byToken := map[string]*term{}
	var terms []*term
	for i := range ops {
		o := ops[i].Input.(operation)
		if wrote(o, ops[i].Output.(string)) {
			t := &term{begin: &ops[i]}
			byToken[o.token] = t
			terms = append(terms, t)
		}
	}
	for i := range ops {
		o, answer := ops[i].Input.(operation), ops[i].Output.(string)
		if t := byToken[answer]; t != nil {
			if o.kind == opGetSet {
				t.end = &ops[i]
			} else {
				t.seen = append(t.seen, &ops[i])
			}
		}
		if o.kind == opReleaseIf && answer == "1" && byToken[o.token] != nil {
			byToken[o.token].end = &ops[i]
		}
	}
	for i := range ops {
		// The holder's DEL removes its token, or what the GETSETs of those who
		// came too late have made of it.
		o := ops[i].Input.(operation)
		t := byToken[o.token]
		if o.kind != opDel || ops[i].Output != "1" || t == nil {
			continue
		}
		for t.end != nil && byToken[t.end.Input.(operation).token] != nil && t.end.Input.(operation).kind == opGetSet {
			t = byToken[t.end.Input.(operation).token]
		}
		if t.end == nil {
			t.end = &ops[i]
		}
	}
	return slices.DeleteFunc(terms, func(t *term) bool {
		return t.begin.Output == unknown && len(t.seen) == 0 && t.end == nil // perhaps it never was
	})
}

// wrote tells whether an operation has, or may have, put its token there.
func wrote(o operation, answer string) bool {
	switch o.kind {
	case opSetNX, opAcquire:
		return answer == "1" || answer == unknown
	case opSetNXPX:
		return answer == "OK" || answer == unknown
	case opSetNXGet:
		return answer == none || answer == unknown
	case opGetSet:
		return true
	}
	return false
}

func (t *term) narrow() bool {
	changed := false
	for _, s := range t.seen {
		changed = follows(t.begin, s) || changed
		if t.end != nil {
			changed = follows(s, t.end) || changed
		}
	}
	if t.end != nil {
		changed = follows(t.begin, t.end) || changed
	}
	return changed
}

// last is the operation of the term that was called last.
func (t *term) last() *porcupine.Operation {
	last := t.begin
	for _, s := range t.seen {
		if s.Call > last.Call {
			last = s
		}
	}
	if t.end != nil && t.end.Call > last.Call {
		last = t.end
	}
	return last
}

// before notes that all of t happened before o began. A GETSET that ends t may
// be what begins o.
func (t *term) before(o *term) bool {
	changed := false
	for _, s := range t.seen {
		changed = follows(s, o.begin) || changed
	}
	if t.end != nil && t.end != o.begin {
		changed = follows(t.end, o.begin) || changed
	}
	if t.begin != o.begin {
		changed = follows(t.begin, o.begin) || changed
	}
	return changed
}

// follows notes that b happened after a.
func follows(a, b *porcupine.Operation) bool {
	changed := false
	if b.Call <= a.Call {
		b.Call, changed = a.Call+1, true
	}
	if a.Return >= b.Return && b.Return != never {
		a.Return, changed = b.Return-1, true
	}
	return changed
}

// contradiction tells what is wrong with a history at first sight, "" if
// nothing: an answer that nobody has written, or a change that two have made of
// one and the same value.
func contradiction(m porcupine.Model, ops []porcupine.Operation) string {
	written := map[string]bool{none: true, unknown: true, "0": true, "1": true, "OK": true}
	for _, o := range ops {
		if in := o.Input.(operation); wrote(in, o.Output.(string)) {
			written[in.token] = true
		}
	}
	taken := map[string]*porcupine.Operation{}
	for i := range ops {
		o := &ops[i]
		in, answer := o.Input.(operation), o.Output.(string)
		switch {
		case answer == unknown:
			continue
		case in.kind == opIncr:
		case !written[answer]:
			return m.DescribeOperation(in, answer) + ": nothing that was done has written this"
		case in.kind == opReleaseIf && answer == "1":
			answer = in.token
		case in.kind != opGetSet || answer == none:
			continue
		}
		if other := taken[answer]; other != nil {
			return m.DescribeOperation(in, o.Output) + ", and " + m.DescribeOperation(other.Input, other.Output) + ": both changed the same value"
		}
		taken[answer] = o
	}
	return ""
}
