package scripting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// librarySet is all libraries that there are at a moment. It never changes: a
// command that loads or deletes makes another one.
type librarySet struct {
	libraries map[string]*Library
	functions map[string]*Function // by name in lower case: calls ignore case
	bytes     int64
	lsn       uint64 // of the record that made it
}

var noLibraries = &librarySet{}

// sorted are the libraries in the order of their names.
func (s *librarySet) sorted() []*Library {
	return slices.SortedFunc(maps.Values(s.libraries), func(a, b *Library) int { return strings.Compare(a.Name, b.Name) })
}

// foldName is what functions are found by: Redis ignores the case of their names.
func foldName(name string) string { return strings.ToLower(name) }

// maxFoldedName is how long a name may be that find need not copy.
const maxFoldedName = 128

// find is the function that a client calls name, nil if there is none.
func (s *librarySet) find(name []byte) *Function {
	if len(name) > maxFoldedName {
		return s.functions[foldName(string(name))]
	}
	var folded [maxFoldedName]byte
	for i, c := range name {
		if c-'A' < 26 {
			c |= 0x20
		}
		folded[i] = c
	}
	return s.functions[string(folded[:len(name)])]
}

func (s *librarySet) clone() *librarySet {
	n := &librarySet{maps.Clone(s.libraries), maps.Clone(s.functions), s.bytes, s.lsn}
	if n.libraries == nil {
		n.libraries, n.functions = map[string]*Library{}, map[string]*Function{}
	}
	return n
}

func (s *librarySet) remove(lib *Library) {
	for _, f := range lib.Functions {
		delete(s.functions, foldName(f.Name))
	}
	delete(s.libraries, lib.Name)
	s.bytes -= int64(lib.size)
}

// without is the set without one library.
func (s *librarySet) without(lib *Library) *librarySet {
	n := s.clone()
	n.remove(lib)
	return n
}

// with is the set with libraries added, or the text of the error. Libraries of
// the same names are replaced when replace is set. exists words the error when
// it is not.
func (s *librarySet) with(libs []*Library, replace bool, b LibraryBounds, exists string) (*librarySet, string) {
	n := s.clone()
	for _, lib := range libs {
		old := s.libraries[lib.Name]
		if old == nil {
			continue
		}
		if !replace {
			return nil, fmt.Sprintf(exists, lib.Name)
		}
		n.remove(old)
	}
	for _, lib := range libs {
		for _, f := range lib.Functions {
			key := foldName(f.Name)
			if n.functions[key] != nil {
				return nil, fmt.Sprintf("ERR Function %s already exists", f.Name)
			}
			n.functions[key] = f
		}
		n.libraries[lib.Name] = lib
		n.bytes += int64(lib.size)
	}
	switch {
	case len(n.libraries) > b.Libraries && len(n.libraries) > len(s.libraries):
		return nil, fmt.Sprintf("ERR there are %d function libraries already, more are not allowed (function-max-libraries)", len(s.libraries))
	case n.bytes > b.Bytes && n.bytes > s.bytes:
		return nil, fmt.Sprintf("ERR the function libraries would take %d bytes, more than %d (function-max-bytes)", n.bytes, b.Bytes)
	}
	return n, ""
}
