package resp_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"

	tidwall "github.com/tidwall/resp"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// split is a source that cuts text into pieces of the lengths that cuts lists,
// again and again.
type split struct {
	text, cuts []byte
	i          int
}

func (s *split) Read(b []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	most := len(s.text)
	if len(s.cuts) > 0 {
		most = 1 + int(s.cuts[s.i%len(s.cuts)])
		s.i++
	}
	n := copy(b, s.text[:min(most, len(s.text))])
	s.text = s.text[n:]
	return n, nil
}

// FuzzReader checks that commands and verdict do not depend on how the bytes
// arrive, on Buffered, Ahead or ReadAhead, and that memory stays within its bound.
func FuzzReader(f *testing.F) {
	for _, v := range verdicts {
		if len(v.in) < 1000 {
			f.Add([]byte(v.in), []byte{0, 3, 1}, uint16(0), true)
		}
	}
	f.Add([]byte(setnx+setnx), []byte{7}, uint16(40), false)
	f.Fuzz(func(t *testing.T, in, cuts []byte, maxQuery uint16, authenticated bool) {
		limits := func() *resp.Limits {
			return &resp.Limits{Authenticated: authenticated, MaxQuery: int(maxQuery), MaxInline: 100}
		}
		want, commands, verdict := transcribe(bytes.NewReader(in), limits())

		lim := limits()
		received, held := 0, 0
		lim.Grow = func(delta int) error { held += delta; return nil }
		src := split{text: in, cuts: cuts}
		r := resp.NewReader(readerFunc(func(b []byte) (int, error) {
			n, err := src.Read(b)
			received += n
			return n, err
		}), lim)
		for i := 0; ; i++ {
			args, _, err := r.Next()
			table := 0
			if err == nil {
				table = max(8, 2*len(args)) * 24 * 2
			}
			if bound := 2*received + 1<<20 + table; r.QueryMemory() > bound || held != r.QueryMemory() {
				t.Fatalf("command %d: %d bytes held, %d told, of %d received", i, r.QueryMemory(), held, received)
			}
			if err != nil {
				if got := errorText(err); i != len(commands) || got != verdict {
					t.Fatalf("%q split by %v ends with %q after %d commands, whole it is %s", in, cuts, got, i, want)
				}
				break
			}
			if i == len(commands) {
				t.Fatalf("%q split by %v goes on with %q, whole it is %s", in, cuts, args, want)
			}
			if len(cuts) > 0 && cuts[i%len(cuts)]%3 == 1 {
				r.ReadAhead()
			}
			if len(cuts) > 0 && cuts[i%len(cuts)]%2 == 1 {
				for j, name := range r.Ahead(0, make([][]byte, 0, 1+cuts[i%len(cuts)]%8)) {
					if i+1+j >= len(commands) || string(name) != commands[i+1+j][0] {
						t.Fatalf("%q split by %v: after command %d Ahead saw %q, whole it is %s", in, cuts, i, name, want)
					}
				}
			}
			if len(cuts) > 0 && cuts[i%len(cuts)]%2 == 1 {
				r.Buffered()
			}
			if got, want := fmt.Sprintf("%q", args), fmt.Sprintf("%q", commands[i]); got != want {
				t.Fatalf("%q split by %v: command %d is %s, whole it is %s", in, cuts, i, got, want)
			}
		}
		r.Release()
		if held != 0 {
			t.Fatalf("after Release %d bytes are held", held)
		}
	})
}

// FuzzFrameReader checks that frames and errors do not depend on how the bytes
// arrive, and that memory stays within its bound.
func FuzzFrameReader(f *testing.F) {
	for _, c := range frameCases {
		f.Add([]byte(c.in), []byte{0, 3, 1}, uint16(0))
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, most uint16) {
		want := frames(bytes.NewReader(in), int(most))
		if got := frames(&split{text: in, cuts: cuts}, int(most)); got != want {
			t.Fatalf("%q split by %v: %s\nwhole it is %s", in, cuts, got, want)
		}
		r := resp.NewFrameReader(bytes.NewReader(in), int(most), nil)
		var raw []byte
		for {
			f, err := r.Next()
			if r.Memory() > 2*len(in)+1<<20 {
				t.Fatalf("%d bytes held for %d", r.Memory(), len(in))
			}
			if err != nil {
				break
			}
			r.Buffered()
			raw = append(raw, f.Raw...)
		}
		if !bytes.HasPrefix(in, raw) {
			t.Fatalf("frames %q are no beginning of %q", raw, in)
		}
	})
}

// FuzzWriterRoundTrip writes random replies, which must be read back as one
// frame each by our reader and, in RESP2, by an independent one.
func FuzzWriterRoundTrip(f *testing.F) {
	for i := range byte(16) {
		f.Add([]byte{5, 3, i, 2, i, 7, 0}, "a\r\nb", 0.1, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, plan []byte, text string, number float64, resp3 bool) {
		var w resp.Writer
		w.SetProto(2)
		if resp3 {
			w.SetProto(3)
		}
		take := func() byte {
			if len(plan) == 0 {
				return 0
			}
			c := plan[0]
			plan = plan[1:]
			return c
		}
		var describe func(depth int)
		describe = func(depth int) {
			kind := take() % 15
			if kind >= 11 && depth == 20 {
				kind = 0
			}
			switch kind {
			case 0:
				w.Int(int64(math.Float64bits(number)))
			case 1:
				w.Status(text)
			case 2:
				w.Error(text)
			case 3:
				w.Bulk([]byte(text))
			case 4:
				w.BulkString(text)
			case 5:
				w.Null()
			case 6:
				w.NullArray()
			case 7:
				w.Double(number)
			case 8:
				w.Bool(number > 0)
			case 9:
				w.BigNumber("-12345678901234567890")
			case 10:
				w.Verbatim(text, text)
			case 11, 12:
				n := int(take() % 5)
				w.Array(n)
				for range n {
					describe(depth + 1)
				}
			case 13:
				n := int(take() % 3)
				w.Map(n)
				for range 2 * n {
					describe(depth + 1)
				}
			case 14:
				mark := w.Mark()
				w.Push(1)
				w.Rewind(mark)
				w.Set(1)
				describe(depth + 1)
			}
		}
		count := 0
		for count == 0 || len(plan) > 0 && count < 10 {
			describe(0)
			count++
		}
		r := resp.NewFrameReader(bytes.NewReader(w.Bytes()), 0, nil)
		var raw []byte
		for i := range count {
			f, err := r.Next()
			if err != nil {
				t.Fatalf("reply %d of %q: %v", i, w.Bytes(), err)
			}
			raw = append(raw, f.Raw...)
		}
		if _, err := r.Next(); err != io.EOF || !bytes.Equal(raw, w.Bytes()) {
			t.Fatalf("%q is read as %q and then %v", w.Bytes(), raw, err)
		}
		if resp3 {
			return
		}
		other := tidwall.NewReader(bytes.NewReader(w.Bytes()))
		total := 0
		for i := range count {
			_, n, err := other.ReadValue()
			if err != nil {
				t.Fatalf("tidwall/resp: reply %d of %q: %v", i, w.Bytes(), err)
			}
			total += n
		}
		if total != w.Len() {
			t.Fatalf("tidwall/resp reads %d of %d bytes of %q", total, w.Len(), w.Bytes())
		}
	})
}
