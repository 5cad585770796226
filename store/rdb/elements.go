package rdb

// The type bytes that stand before the elements of a list and the members of a
// set, in the form without an encoding, which Redis of every version reads.
const (
	TypeList = 1
	TypeSet  = 2
)

// AppendElements appends the value of a list or a set: how many elements there
// are, and each as a string.
func AppendElements(dst []byte, elements []string) []byte {
	dst = appendLength(dst, len(elements))
	for _, s := range elements {
		dst = AppendString(dst, []byte(s))
	}
	return dst
}

// ReadElements reads the value of a list or a set, which has at least one
// element and together no more than limit bytes, and nothing behind it. The
// elements are copies.
func ReadElements(b []byte, limit int64) ([][]byte, error) {
	n, enc, b, ok := readLength(b)
	if !ok || enc || n == 0 || n > uint64(len(b)) { // each takes a byte at least
		return nil, ErrFormat
	}
	var out [][]byte
	for range n {
		s, rest, err := ReadString(b, limit)
		if err != nil {
			return nil, err
		}
		limit -= int64(len(s))
		out, b = append(out, s), rest
	}
	if len(b) != 0 {
		return nil, ErrFormat
	}
	return out, nil
}
