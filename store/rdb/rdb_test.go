package rdb

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestStrings(t *testing.T) {
	tests := []struct{ value, encoded string }{
		{"", "\x00"},
		{"hello", "\x05hello"},
		{"0", "\xc0\x00"},
		{"-128", "\xc0\x80"},
		{"128", "\xc1\x80\x00"},
		{"-32768", "\xc1\x00\x80"},
		{"32768", "\xc2\x00\x80\x00\x00"},
		{"-2147483648", "\xc2\x00\x00\x00\x80"},
		{"2147483648", "\x0a2147483648"},
		{"-0", "\x02-0"},
		{"+1", "\x02+1"},
		{"01", "\x0201"},
		{strings.Repeat("x", 63), "\x3f" + strings.Repeat("x", 63)},
		{strings.Repeat("x", 64), "\x40\x40" + strings.Repeat("x", 64)},
		{strings.Repeat("x", 16383), "\x7f\xff" + strings.Repeat("x", 16383)},
		{strings.Repeat("x", 16384), "\x80\x00\x00\x40\x00" + strings.Repeat("x", 16384)},
	}
	for _, c := range tests {
		if got := AppendString(nil, []byte(c.value)); string(got) != c.encoded {
			t.Errorf("%.20q is written as %.40q, want %.40q", c.value, got, c.encoded)
		}
		got, rest, err := ReadString([]byte(c.encoded+"rest"), math.MaxInt64)
		if err != nil || string(got) != c.value || string(rest) != "rest" {
			t.Errorf("%.40q reads as %.20q with the rest %q, %v; want %.20q", c.encoded, got, rest, err, c.value)
		}
	}
}

func TestPackedStrings(t *testing.T) {
	tests := []struct{ packed, want string }{
		// Written by redis-server 7.0.
		{"\xc3\x09@x\x01aa\xe0k\x00\x01aa", strings.Repeat("a", 120)},
		{"\xc3\x0b@\x90\x03abca\xe0\x81\x02\x01bc", strings.Repeat("abc", 48)},
		// 64-bit lengths mean the same.
		{"\xc3\x81\x00\x00\x00\x00\x00\x00\x00\x02\x81\x00\x00\x00\x00\x00\x00\x00\x01\x00a", "a"},
	}
	for _, c := range tests {
		if got, rest, err := ReadString([]byte(c.packed), 1000); err != nil || string(got) != c.want || len(rest) != 0 {
			t.Errorf("%q reads as %q, %v; want %q", c.packed, got, err, c.want)
		}
	}
}

func TestBadStrings(t *testing.T) {
	for what, in := range map[string]string{
		"nothing":                              "",
		"a length without its second byte":     "\x40",
		"a length without its four bytes":      "\x80\x00\x00\x00",
		"a length without its eight bytes":     "\x81\x00\x00\x00\x00\x00\x00\x00",
		"an unknown form of length":            "\x82\x00",
		"a string that is cut off":             "\x05hell",
		"a length of 2^63":                     "\x81\x80\x00\x00\x00\x00\x00\x00\x00x",
		"an unknown encoding":                  "\xc4\x00",
		"an 8-bit integer without its byte":    "\xc0",
		"a 16-bit integer that is cut off":     "\xc1\x00",
		"a 32-bit integer that is cut off":     "\xc2\x00\x00\x00",
		"packed, without lengths":              "\xc3",
		"packed, without its own length":       "\xc3\x01",
		"packed, an encoding for a length":     "\xc3\xc0\x01\x00a",
		"packed, cut off":                      "\xc3\x05\x01\x00a",
		"packed, more than it can stand for":   "\xc3\x01\x80\xff\xff\xff\xff\x00",
		"packed, shorter than it says":         "\xc3\x02\x02\x00a",
		"packed, longer than it says":          "\xc3\x03\x01\x01ab",
		"packed, a literal that is cut off":    "\xc3\x02\x05\x04a",
		"packed, a reference before begin":     "\xc3\x04\x05\x00a\x20\x01",
		"packed, a reference without distance": "\xc3\x03\x05\x00a\x20",
		"packed, a long one without length":    "\xc3\x03\x05\x00a\xe0",
		"packed, a reference over the end":     "\xc3\x04\x03\x00a\x20\x00",
	} {
		if got, _, err := ReadString([]byte(in), math.MaxInt64); err != ErrFormat {
			t.Errorf("%s: %q, %v; want ErrFormat", what, got, err)
		}
	}
	for _, in := range []string{"\x05hello", "\xc3\x09@x\x01aa\xe0k\x00\x01aa"} {
		if _, _, err := ReadString([]byte(in), 4); err != ErrFormat {
			t.Errorf("%q over the limit: %v, want ErrFormat", in, err)
		}
	}
}

func TestFooter(t *testing.T) {
	const want = "\x00\x05hello\x0a\x00cr\xdfve4 \x0a" // written by redis-server 7.0
	got := Seal(AppendString([]byte{TypeString}, []byte("hello")))
	if string(got) != want {
		t.Fatalf("payload %q, want %q", got, want)
	}
	if value, err := Open(got); err != nil || string(value) != "\x00\x05hello" {
		t.Errorf("it opens as %q, %v", value, err)
	}
	for i := range got {
		for bit := range 8 {
			bad := bytes.Clone(got)
			bad[i] ^= 1 << bit
			if _, err := Open(bad); err != ErrFooter {
				t.Errorf("byte %d, bit %d changed: %v, want ErrFooter", i, bit, err)
			}
		}
		if _, err := Open(got[:i]); err != ErrFooter {
			t.Errorf("cut off at %d: %v, want ErrFooter", i, err)
		}
	}
}

func FuzzReadString(f *testing.F) {
	f.Add([]byte("\xc3\x0b@\x90\x03abca\xe0\x81\x02\x01bc"))
	f.Add([]byte("\x40\x40hello"))
	f.Add([]byte("\xc2\x00\x80\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		value, rest, err := ReadString(in, 1<<20)
		if err != nil {
			return
		}
		if len(value) > 1<<20 || cap(value) > lzfGain*len(in)+longestInt+lzfGain {
			t.Fatalf("%d bytes of input make %d", len(in), cap(value))
		}
		if len(rest) >= len(in) {
			t.Fatalf("%d of %d bytes are left", len(rest), len(in))
		}
		again, _, err := ReadString(AppendString(nil, value), math.MaxInt64)
		if err != nil || !bytes.Equal(again, value) {
			t.Fatalf("%q reads as %q after it was written, %v", value, again, err)
		}
	})
}
