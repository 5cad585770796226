package rdb

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// ErrFormat is the error of bytes that are no value of the kind asked for.
var ErrFormat = errors.New("rdb: bad data format")

// TypeString is the type byte that stands before the value of a string.
const TypeString = 0

// The first two bits of a length, and the encodings they lead to.
const (
	len6 = iota
	len14
	lenWide
	encoded

	len32 = 0x80
	len64 = 0x81

	encInt8  = 0
	encInt16 = 1
	encInt32 = 2
	encLZF   = 3
)

// longestInt is the longest decimal text of a 32-bit integer.
const longestInt = 11

// AppendString appends the value of a string: as an integer of 8, 16 or 32 bits
// when it reads as one, verbatim otherwise.
func AppendString(dst, s []byte) []byte {
	if len(s) > 0 && len(s) <= longestInt {
		if n, err := strconv.ParseInt(string(s), 10, 32); err == nil && strconv.FormatInt(n, 10) == string(s) {
			switch {
			case n == int64(int8(n)):
				return append(dst, encoded<<6|encInt8, byte(n))
			case n == int64(int16(n)):
				return binary.LittleEndian.AppendUint16(append(dst, encoded<<6|encInt16), uint16(n))
			}
			return binary.LittleEndian.AppendUint32(append(dst, encoded<<6|encInt32), uint32(n))
		}
	}
	return append(appendLength(dst, len(s)), s...)
}

func appendLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, len14<<6|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, len64), uint64(n))
}

// ReadString reads the value of a string, of at most limit bytes, and returns
// what stands behind it. The value is a copy; the rest is a view.
func ReadString(b []byte, limit int64) (value, rest []byte, err error) {
	n, enc, b, ok := readLength(b)
	if !ok {
		return nil, nil, ErrFormat
	}
	if !enc {
		if n > uint64(len(b)) || n > uint64(limit) {
			return nil, nil, ErrFormat
		}
		return append(make([]byte, 0, n), b[:n]...), b[n:], nil
	}
	var i int64
	switch {
	case n == encInt8 && len(b) >= 1:
		i, b = int64(int8(b[0])), b[1:]
	case n == encInt16 && len(b) >= 2:
		i, b = int64(int16(binary.LittleEndian.Uint16(b))), b[2:]
	case n == encInt32 && len(b) >= 4:
		i, b = int64(int32(binary.LittleEndian.Uint32(b))), b[4:]
	case n == encLZF:
		return readPacked(b, limit)
	default:
		return nil, nil, ErrFormat
	}
	return strconv.AppendInt(make([]byte, 0, longestInt), i, 10), b, nil
}

// readLength reads a length, or (enc) the number of an encoding.
func readLength(b []byte) (n uint64, enc bool, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, false, nil, false
	}
	first := b[0]
	b = b[1:]
	switch first >> 6 {
	case len6:
		return uint64(first), false, b, true
	case len14:
		if len(b) >= 1 {
			return uint64(first&0x3f)<<8 | uint64(b[0]), false, b[1:], true
		}
	case lenWide:
		switch {
		case first == len32 && len(b) >= 4:
			return uint64(binary.BigEndian.Uint32(b)), false, b[4:], true
		case first == len64 && len(b) >= 8:
			return binary.BigEndian.Uint64(b), false, b[8:], true
		}
	case encoded:
		return uint64(first & 0x3f), true, b, true
	}
	return 0, false, nil, false
}

// readPacked reads a string that LZF has shortened: its packed length, its own
// length, and the packed bytes.
func readPacked(b []byte, limit int64) (value, rest []byte, err error) {
	packed, enc, b, ok := readLength(b)
	if !ok || enc {
		return nil, nil, ErrFormat
	}
	n, enc, b, ok := readLength(b)
	if !ok || enc || packed > uint64(len(b)) || n > uint64(limit) || n/lzfGain > packed {
		return nil, nil, ErrFormat
	}
	value = unpack(make([]byte, 0, n), b[:packed], int(n))
	if value == nil {
		return nil, nil, ErrFormat
	}
	return value, b[packed:], nil
}
