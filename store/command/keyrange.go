package command

import "math"

// KeyRange is where the keys of a command stand, as COMMAND told it before
// there were key specs: the first, the last (negative: from the end) and the
// step between them. All are zero when no range says it.
type KeyRange struct{ First, Last, Step int }

// KeyRange is the range that covers the most of the command's keys. complete is
// false when there are others, or when it takes more than a range to find them;
// COMMAND INFO then says "movablekeys".
func (s *Spec) KeyRange() (r KeyRange, complete bool) {
	if len(s.Keys) == 0 {
		return KeyRange{}, true
	}
	if k := &s.Keys[0]; len(s.Keys) == 1 && k.isRange() {
		return KeyRange{k.Begin, k.absoluteLast(), max(k.Step, 1)}, k.Flags&KeyIncomplete == 0
	}
	complete = true
	first, last := math.MaxInt, 0
	for i := range s.Keys {
		k := &s.Keys[i]
		if !k.isRange() || k.Step > 1 || last != 0 && last != k.Begin-1 {
			complete = false
			continue
		}
		complete = complete && k.Flags&KeyIncomplete == 0
		first = min(first, k.Begin)
		// As unsigned: one that counts from the end is the last.
		last = int(max(uint(last), uint(k.absoluteLast())))
	}
	if first == math.MaxInt {
		return KeyRange{}, false
	}
	return KeyRange{first, last, 1}, complete
}

// isRange tells whether the keys stand at places known beforehand.
func (k *KeySpec) isRange() bool { return k.Keyword == "" && !k.Count }

func (k *KeySpec) absoluteLast() int {
	if k.Last < 0 {
		return k.Last
	}
	return k.Begin + k.Last
}

// HasKeys tells whether some argument of the command may be a key.
func (s *Spec) HasKeys() bool {
	for i := range s.Keys {
		if s.Keys[i].Flags&KeyNotKey == 0 {
			return true
		}
	}
	return false
}
