package proxy

import (
	"bytes"
	"errors"
	"strconv"
)

// reply is a RESP2 reply of the upstream that latchkey itself reads.
type reply struct {
	kind  byte // one of + - : $ *
	text  []byte
	n     int64
	elems []reply
}

var errReply = errors.New("it sent a reply that cannot be read")

// maxReplyDepth is how deep arrays may nest; COMMAND's are 8 deep.
const maxReplyDepth = 16

// parseReply reads one whole reply, of which it keeps views.
func parseReply(frame []byte) (reply, error) {
	r, rest, err := parseElement(frame, 0)
	if err == nil && len(rest) != 0 {
		err = errReply
	}
	return r, err
}

func parseElement(b []byte, depth int) (r reply, rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 || depth > maxReplyDepth {
		return r, nil, errReply
	}
	r.kind = line[0]
	switch r.kind {
	case '+', '-':
		r.text = line[1:]
		return r, rest, nil
	case ':', '$', '*':
		if r.n, err = strconv.ParseInt(string(line[1:]), 10, 64); err != nil {
			return r, nil, errReply
		}
	default:
		return r, nil, errReply
	}
	switch {
	case r.kind == ':' || r.n < 0: // a number, or null
	case r.kind == '$':
		if r.n > int64(len(rest))-2 {
			return r, nil, errReply
		}
		r.text, rest = rest[:r.n], rest[r.n+2:]
		if n, err := strconv.ParseInt(string(r.text), 10, 64); err == nil {
			r.n = n
		}
	default:
		for range r.n { // grows with what is there, not with what is said
			var e reply
			if e, rest, err = parseElement(rest, depth+1); err != nil {
				return r, nil, err
			}
			r.elems = append(r.elems, e)
		}
	}
	return r, rest, nil
}

// field is the value of a key of a map, which in RESP2 is an array; an empty
// reply if there is none.
func (r *reply) field(name string) *reply {
	for i := 0; i+1 < len(r.elems); i += 2 {
		if string(r.elems[i].text) == name {
			return &r.elems[i+1]
		}
	}
	return &reply{}
}
