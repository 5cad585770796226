package resp_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// endless is a source that repeats its bytes, and returns them all or part of
// them at once.
type endless struct {
	text []byte
	pos  int
}

func (e *endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m := copy(b[n:], e.text[e.pos:])
		n += m
		e.pos = (e.pos + m) % len(e.text)
	}
	return n, nil
}

func benchmarkReader(b *testing.B, src io.Reader, ask bool) {
	r := resp.NewReader(src, &resp.Limits{Authenticated: true})
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
		if ask {
			r.Buffered()
		}
	}
}

func BenchmarkReader(b *testing.B) {
	b.Run("pipelined SETNX", func(b *testing.B) { benchmarkReader(b, &endless{text: []byte(setnx)}, false) })
	b.Run("pipelined SETNX, asking Buffered", func(b *testing.B) { benchmarkReader(b, &endless{text: []byte(setnx)}, true) })
	b.Run("single SETNX", func(b *testing.B) {
		benchmarkReader(b, readerFunc(func(b []byte) (int, error) { return copy(b, setnx), nil }), false)
	})
	b.Run("inline", func(b *testing.B) { benchmarkReader(b, &endless{text: []byte("SET lock:key value\r\n")}, false) })
	b.Run("value of 1 KiB", func(b *testing.B) {
		benchmarkReader(b, &endless{text: multibulk("SET", "key", string(make([]byte, 1<<10)))}, false)
	})
	b.Run("value of 1 MiB", func(b *testing.B) {
		b.SetBytes(1 << 20)
		benchmarkReader(b, &endless{text: multibulk("SET", "key", string(make([]byte, 1<<20)))}, false)
	})
}

func BenchmarkFrameReader(b *testing.B) {
	for name, text := range map[string]string{
		"integer":       ":1\r\n",
		"bulk":          "$16\r\n0123456789abcdef\r\n",
		"array of four": "*4\r\n$1\r\na\r\n$1\r\nb\r\n$-1\r\n:1\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			r := resp.NewFrameReader(&endless{text: []byte(text)}, 0, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	value := bytes.Repeat([]byte("x"), 16)
	for name, write := range map[string]func(w *resp.Writer){
		"OK":     func(w *resp.Writer) { w.Status("OK") },
		"1":      func(w *resp.Writer) { w.Int(1) },
		"12345":  func(w *resp.Writer) { w.Int(12345) },
		"bulk":   func(w *resp.Writer) { w.Bulk(value) },
		"null":   func(w *resp.Writer) { w.Null() },
		"error":  func(w *resp.Writer) { w.Error("WRONGTYPE Operation against a key holding the wrong kind of value") },
		"double": func(w *resp.Writer) { w.Double(3.141) },
	} {
		b.Run(name, func(b *testing.B) {
			w := resp.NewWriter()
			b.ReportAllocs()
			for b.Loop() {
				write(w)
				if w.Len() > 16<<10 {
					w.Reset()
				}
			}
		})
	}
}
