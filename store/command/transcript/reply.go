package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind is the kind of a [Reply]: the byte that leads it on the wire, and two of
// its own for RESP2's absent values, which share their bytes with others.
type Kind byte

// The kinds of replies.
const (
	Status   Kind = '+'
	Error    Kind = '-'
	Int      Kind = ':'
	Bulk     Kind = '$'
	Array    Kind = '*'
	Null     Kind = '_'
	Double   Kind = ','
	Bool     Kind = '#'
	Big      Kind = '('
	Verbatim Kind = '='
	Map      Kind = '%'
	Set      Kind = '~'
	Push     Kind = '>'
	NilBulk  Kind = 'n' // $-1
	NilArray Kind = 'N' // *-1
)

// Reply is one reply, of either protocol.
type Reply struct {
	Kind  Kind
	Text  string  // of all that are not aggregates, as it stood on the wire
	Elems []Reply // of aggregates; a map's keys and values in turn
}

// Words are the texts in a reply, those of aggregates one after the other.
func (r Reply) Words() []string {
	switch r.Kind {
	case Array, Map, Set, Push:
		var words []string
		for _, e := range r.Elems {
			words = append(words, e.Words()...)
		}
		return words
	}
	return []string{r.Text}
}

const (
	maxReplyBytes = 64 << 20
	maxReplyDepth = 32
	maxReplyElems = 1 << 20
)

// ReadReply reads one reply of RESP2 or RESP3. It is the tests' own reader,
// written apart from the server's codec so that a mistake there cannot hide
// behind the same mistake here. Lengths are bounded before memory is taken.
func ReadReply(r *bufio.Reader) (Reply, error) { return readReply(r, 0) }

func readReply(r *bufio.Reader, depth int) (Reply, error) {
	if depth > maxReplyDepth {
		return Reply{}, fmt.Errorf("reply nested deeper than %d", maxReplyDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return Reply{}, err
	}
	if line == "" {
		return Reply{}, errors.New("empty line where a reply should begin")
	}
	kind, rest := Kind(line[0]), line[1:]
	switch kind {
	case Status, Error, Int, Double, Bool, Big, Null:
		if kind == Int {
			if _, err := strconv.ParseInt(rest, 10, 64); err != nil {
				return Reply{}, fmt.Errorf("not an integer: %q", line)
			}
		}
		return Reply{Kind: kind, Text: rest}, nil
	case Bulk, Verbatim:
		n, err := replyLen(line, maxReplyBytes)
		if err != nil {
			return Reply{}, err
		}
		if n < 0 {
			return Reply{Kind: NilBulk}, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return Reply{}, fmt.Errorf("in a string of %d bytes: %w", n, err)
		}
		if string(b[n:]) != "\r\n" {
			return Reply{}, fmt.Errorf("a string of %d bytes does not end in CR LF: %q", n, b)
		}
		return Reply{Kind: kind, Text: string(b[:n])}, nil
	case Array, Map, Set, Push:
		n, err := replyLen(line, maxReplyElems)
		if err != nil {
			return Reply{}, err
		}
		if n < 0 {
			return Reply{Kind: NilArray}, nil
		}
		if kind == Map {
			n *= 2
		}
		reply := Reply{Kind: kind}
		for range n {
			e, err := readReply(r, depth+1)
			if err != nil {
				return Reply{}, err
			}
			reply.Elems = append(reply.Elems, e)
		}
		return reply, nil
	}
	return Reply{}, fmt.Errorf("unknown kind of reply: %q", line)
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	if !strings.HasSuffix(line, "\r\n") {
		return "", fmt.Errorf("line does not end in CR LF: %q", line)
	}
	return line[:len(line)-2], nil
}

// replyLen reads the length in an aggregate's or a string's first line; -1
// stands for an absent one, which Kinds other than $ and * do not have.
func replyLen(line string, limit int) (int, error) {
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < -1 || n > limit || n == -1 && line[0] != '$' && line[0] != '*' {
		return 0, fmt.Errorf("bad length: %q", line)
	}
	return n, nil
}

// Lines are the reply as it stands in a transcript, without indent; the lines
// of an aggregate's elements are indented by two spaces a level.
func (r Reply) Lines() []string { return r.appendText(nil, "") }

func (r Reply) appendText(lines []string, indent string) []string {
	var s string
	switch r.Kind {
	case Bulk:
		s = Quote(r.Text)
	case Verbatim:
		format, text, _ := strings.Cut(r.Text, ":")
		s = "=" + format + ":" + Quote(text)
	case NilBulk:
		s = "(nil)"
	case NilArray:
		s = "(nil array)"
	case Null:
		s = "(null)"
	case noReply:
		s = "(no reply)"
	case closed:
		s = "(closed)"
	case notSent:
		s = "(not sent: " + r.Text + ")"
	case Status, Error:
		s = string(rune(r.Kind)) + plainOrQuoted(r.Text)
	case Array, Set, Push:
		s = string(rune(r.Kind)) + strconv.Itoa(len(r.Elems))
	case Map:
		s = "%" + strconv.Itoa(len(r.Elems)/2)
	default:
		s = string(rune(r.Kind)) + r.Text
	}
	lines = append(lines, indent+s)
	for _, e := range r.Elems {
		lines = e.appendText(lines, indent+"  ")
	}
	return lines
}

// plainOrQuoted quotes a line that an editor or a reader could get wrong.
func plainOrQuoted(s string) string {
	if strings.HasSuffix(s, " ") || strings.HasPrefix(s, `"`) ||
		strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
		return Quote(s)
	}
	return s
}

// isAggregate reports whether elements follow the first line of a reply of this
// kind.
func (k Kind) isAggregate() bool { return k == Array || k == Map || k == Set || k == Push }
