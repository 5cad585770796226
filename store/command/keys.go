package command

import (
	"bytes"
	"errors"
	"strconv"
)

// ErrKeyCount: the arguments name an impossible number of keys.
var ErrKeyCount = errors.New("command: the number of keys is not valid for the arguments")

// Position is where a key stands and what is done with it.
type Position struct {
	Index int
	Flags KeyFlags
}

// AppendKeys appends the indexes of the keys among args. When the arguments do
// not allow it (a key count that is no number, say), ErrKeyCount comes back and
// the handler will find the right words.
func (s *Spec) AppendKeys(dst []Position, args [][]byte) ([]Position, error) {
	if s.single && len(args) > 1 && s.Keys[0].Flags&KeyNotKey == 0 {
		return append(dst, Position{1, s.Keys[0].Flags}), nil
	}
	for i := range s.Keys {
		var err error
		if dst, err = s.Keys[i].append(dst, args); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (k *KeySpec) append(dst []Position, args [][]byte) ([]Position, error) {
	if k.Flags&KeyNotKey != 0 {
		return dst, nil
	}
	first := k.Begin
	if k.Keyword != "" {
		first = k.find(args)
		if first < 0 {
			return dst, nil
		}
	}
	step := max(k.Step, 1)
	var last int
	if k.Count {
		at := first + k.CountAt
		if at >= len(args) {
			return dst, ErrKeyCount
		}
		n, ok := keyCount(args[at])
		first += k.FirstAt
		if !ok || n < 0 || n > (len(args)-first+step-1)/step {
			return dst, ErrKeyCount
		}
		last = first + (n-1)*step
	} else {
		switch {
		case k.Last >= 0:
			last = first + k.Last
		case k.Limit > 1 && k.Last == -1:
			last = first + (len(args)-first)/k.Limit - 1
		default:
			last = len(args) + k.Last
		}
		if last >= len(args) {
			return dst, ErrKeyCount
		}
	}
	for i := first; i <= last; i += step {
		dst = append(dst, Position{i, k.Flags})
	}
	return dst, nil
}

// keyCount parses a number of keys. Most are of one digit.
func keyCount(b []byte) (n int, ok bool) {
	if len(b) == 1 && '0' <= b[0] && b[0] <= '9' {
		return int(b[0] - '0'), true
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil
}

func (k *KeySpec) find(args [][]byte) int {
	if k.From >= 0 {
		for i := k.From; i < len(args)-1; i++ {
			if bytes.EqualFold(args[i], []byte(k.Keyword)) {
				return i + 1
			}
		}
		return -1
	}
	for i := len(args) + k.From; i > 0; i-- {
		if bytes.EqualFold(args[i], []byte(k.Keyword)) {
			return i + 1
		}
	}
	return -1
}

// oneKey tells whether the only key of the command is its first argument, the
// case that the hot path knows.
func (s *Spec) oneKey() bool {
	return len(s.Keys) == 1 && s.Extra == nil && s.Keys[0].Begin == 1 && s.Keys[0].Last == 0 && !s.Keys[0].Count && s.Keys[0].Keyword == ""
}

// isCounted tells whether all keys of the command stand behind their number, as those
// of EVAL.
func (s *Spec) isCounted() bool {
	if len(s.Keys) != 1 || s.Extra != nil {
		return false
	}
	k := &s.Keys[0]
	return k.Count && k.Keyword == "" && k.CountAt == 0 && k.FirstAt == 1 && k.Step <= 1 && k.Flags&KeyNotKey == 0
}

// onlyCounted is the key of a counted command that says it has one.
func (c *Call) onlyCounted() (name []byte, ok bool) {
	at := c.Spec.Keys[0].Begin
	if len(c.Args) <= at+1 || len(c.Args[at]) != 1 || c.Args[at][0] != '1' {
		return nil, false
	}
	return c.Args[at+1], true
}

// fewCounted is the number of keys of a counted command when it has one digit, as
// nearly always, and they are there.
func (c *Call) fewCounted() (n int, ok bool) {
	at := c.Spec.Keys[0].Begin
	if at >= len(c.Args) || len(c.Args[at]) != 1 {
		return 0, false
	}
	n = int(c.Args[at][0]) - '0'
	return n, 0 <= n && n <= 9 && n < len(c.Args)-at
}

// EachKey calls add for every key that the command names, with its logical
// database. Arguments that do not allow it name no keys.
func (c *Call) EachKey(add func(db int, name []byte)) {
	for _, p := range c.positions() {
		add(c.S.DB, c.Args[p.Index])
	}
	if c.Spec.Extra != nil {
		c.Spec.Extra(c, add)
	}
}

// positions are those of the keys that the key specs name, none if the arguments
// do not allow it. They live until the session's next command.
func (c *Call) positions() []Position {
	pos, err := c.Spec.AppendKeys(c.S.pos[:0], c.Args)
	c.S.pos = pos[:0]
	if err != nil {
		return nil
	}
	return pos
}

// stage adds the command's keys to its transaction and returns how many there are.
func (c *Call) stage() int {
	if c.Spec.Extra != nil {
		return c.stageExtra()
	}
	if c.Spec.counted {
		if n, ok := c.fewCounted(); ok {
			first := c.Spec.Keys[0].Begin + 1
			for _, name := range c.Args[first : first+n] {
				c.Tx.Add(c.S.DB, name)
			}
			return n
		}
	}
	pos := c.positions()
	for _, p := range pos {
		c.Tx.Add(c.S.DB, c.Args[p.Index])
	}
	return len(pos)
}

func (c *Call) stageExtra() (keys int) {
	c.EachKey(func(db int, name []byte) {
		c.Tx.Add(db, name)
		keys++
	})
	return keys
}

// FirstKey is the argument that the command's first key usually stands at, 1 if
// there is none or it cannot be told, and whether the key's value is read.
func (s *Spec) FirstKey() (at int, read bool) {
	if len(s.Keys) == 0 || s.Keys[0].Keyword != "" {
		return 1, false
	}
	k := &s.Keys[0]
	read = k.Flags&KeyAccess != 0
	if k.Count {
		return k.Begin + k.FirstAt, read
	}
	return k.Begin, read
}
