package scripting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Flags are what a script's first line declares, #!lua flags=no-writes,..., or a
// function when it is registered.
type Flags uint8

// The flags, as Redis 7 names them. NoCluster, AllowCrossSlotKeys and AllowStale
// are understood and change nothing: there is neither cluster nor replica.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlotKeys
	// HasShebang is set for scripts with such a line and for functions; without
	// it Redis is lenient in ways it is not for scripts with one.
	HasShebang
)

// flagNames are the flags in the order of FUNCTION LIST.
var flagNames = [...]string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// flagNamed is the flag of a name, 0 if there is none.
func flagNamed(name string) Flags {
	for i, n := range flagNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// Names are the flags' names, in the order of FUNCTION LIST.
func (f Flags) Names() []string {
	var names []string
	for i, n := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// command are the flags of a command that runs what has declared these. One that
// has declared nothing may do anything.
func (f Flags) command(of command.Flags) command.Flags {
	switch {
	case f&HasShebang == 0:
		return of
	case f&NoWrites != 0:
		return of &^ command.MayReplicate
	}
	return of&^command.MayReplicate | command.Write
}

// errWASMEngine answers a first line that asks for WebAssembly.
var errWASMEngine = errors.New("ERR Engine 'wasm' is reserved: load WASM with MODULE LOAD")

// shebang reads the first line of a script that begins with #! and returns
// what is to be compiled: the line goes, its line break stays.
func (s *Script) shebang() (string, error) {
	src := strings.TrimPrefix(s.Source, "\xef\xbb\xbf") // a byte-order mark from an editor
	if !strings.HasPrefix(src, "#!") {
		return src, nil
	}
	end := firstLine(src)
	if end < 0 {
		return "", errors.New("ERR Invalid script shebang")
	}
	words, ok := splitWords(src[:end])
	if !ok {
		return "", errors.New("ERR Invalid engine in script shebang")
	}
	switch engine := words[0]; engine {
	case "#!lua":
	case "#!wasm":
		return "", errWASMEngine
	default:
		return "", fmt.Errorf("ERR Unexpected engine in script shebang: %s", engine)
	}
	s.Flags |= HasShebang
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return "", fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		if list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			flag := flagNamed(name)
			if flag == 0 {
				return "", fmt.Errorf("ERR Unexpected flag in script shebang: %s", name)
			}
			s.Flags |= flag
		}
	}
	return src[end:], nil
}

// firstLine is the length of the first line of src, or -1 where C finds no end of
// it: none is there, or behind a NUL only.
func firstLine(src string) int { return strings.IndexByte(text.CString(src), '\n') }

// splitWords splits a first line as Redis does: at white space, with "..." and
// its escapes and '...' around what may contain some. ok is false when a quote is
// not closed, or is followed by anything but white space.
func splitWords(line string) (words []string, ok bool) {
	for {
		line = strings.TrimLeft(line, whiteSpace)
		if line == "" {
			return words, true
		}
		word, rest, ok := firstWord(line)
		if !ok {
			return nil, false
		}
		words, line = append(words, word), rest
	}
}

const whiteSpace = " \t\n\v\f\r"

func firstWord(s string) (word, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case strings.IndexByte(whiteSpace, c) >= 0:
			return b.String(), s[i:], true
		case c == '"' || c == '\'':
			n := quoted(&b, s[i+1:], c)
			if n < 0 {
				return "", "", false
			}
			i += n + 1
			if i+1 < len(s) && strings.IndexByte(whiteSpace, s[i+1]) < 0 {
				return "", "", false
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", true
}

// quoted writes what stands before the closing quote and returns where that is,
// or -1.
func quoted(b *strings.Builder, s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			return i
		case c != '\\' || i+1 == len(s):
		case quote == '\'':
			if s[i+1] == '\'' {
				i++
				c = '\''
			}
		case s[i+1] == 'x' && i+3 < len(s) && isHex(s[i+2]) && isHex(s[i+3]):
			c = hexDigit(s[i+2])<<4 | hexDigit(s[i+3])
			i += 3
		default:
			i++
			c = s[i]
			if at := strings.IndexByte("nrtba", c); at >= 0 {
				c = "\n\r\t\b\a"[at]
			}
		}
		b.WriteByte(c)
	}
	return -1
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func hexDigit(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
