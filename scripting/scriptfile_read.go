package scripting

import (
	"bytes"
)

// The fixed parts of a script's record.
const (
	scriptHead = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$"
	scriptTail = "\r\n*3\r\n$6\r\nSCRIPT\r\n$6\r\nEXISTS\r\n$40\r\n"
)

// foundScripts is what a file of scripts holds.
type foundScripts struct {
	sources [][]byte // views, in the order of the file
	// torn are the bytes at its end, from tornAt on, that begin a record.
	torn, tornAt int
	// damage are the bytes that are no record; the first is at damagedAt.
	damage, damagedAt int
}

// readScripts finds the whole records of a file. It allocates nothing that the
// file only claims to hold, and looks for the next record behind damage.
func readScripts(data []byte) (found foundScripts) {
	for at := 0; at < len(data); {
		source, size, torn := readScript(data[at:])
		if source != nil {
			found.sources = append(found.sources, source)
			at += size
			continue
		}
		next := nextScript(data, at+1)
		if next < 0 && torn {
			found.torn, found.tornAt = len(data)-at, at
			return found
		}
		if next < 0 {
			next = len(data)
		}
		if found.damage == 0 {
			found.damagedAt = at
		}
		found.damage += next - at
		at = next
	}
	return found
}

// nextScript is the offset of the next whole record from at on, or -1.
func nextScript(data []byte, at int) int {
	for {
		n := bytes.Index(data[at:], []byte(scriptHead))
		if n < 0 {
			return -1
		}
		at += n
		if source, _, _ := readScript(data[at:]); source != nil {
			return at
		}
		at++
	}
}

// readScript reads the record that data begins with, whose checksum is right:
// otherwise source is nil, and torn tells that data is the beginning of one.
func readScript(data []byte) (source []byte, size int, torn bool) {
	rest, ok := bytes.CutPrefix(data, []byte(scriptHead))
	if !ok {
		return nil, 0, bytes.HasPrefix([]byte(scriptHead), data)
	}
	n, digits := 0, 0
	for digits < len(rest) && digits < 10 && rest[digits]-'0' < 10 {
		n = 10*n + int(rest[digits]-'0')
		digits++
	}
	rest = rest[digits:]
	switch {
	case len(rest) < 2:
		return nil, 0, digits < 10 && bytes.HasPrefix([]byte("\r\n"), rest)
	case digits == 0 || rest[0] != '\r' || rest[1] != '\n':
		return nil, 0, false
	}
	rest = rest[2:]
	if n >= len(rest) {
		return nil, 0, true
	}
	source, rest = rest[:n:n], rest[n:]
	tail, ok := bytes.CutPrefix(rest, []byte(scriptTail))
	if !ok {
		return nil, 0, bytes.HasPrefix([]byte(scriptTail), rest)
	}
	name := SumSHA1(source)
	want := append(name[:], "\r\n"...)
	if len(tail) < len(want) {
		return nil, 0, bytes.HasPrefix(want, tail)
	}
	if !bytes.HasPrefix(tail, want) {
		return nil, 0, false
	}
	return source, len(scriptHead) + digits + 2 + n + len(scriptTail) + len(want), false
}
