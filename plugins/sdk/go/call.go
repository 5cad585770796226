package latchkey

import "unsafe"

// Call is one call of a command, or of a timer, event or wake-up: its arguments,
// the keys it reaches, and its reply. It ends when the function that got it
// returns.
//
// It holds no pointers: of a pointer that is stored the compiler asks whether the
// collector runs, at a cost that a short command would notice.
type Call struct {
	argc  int
	frame uintptr // address of the frame, in the arena
}

// arg is an argument as the host lays it out.
type arg struct{ ptr, len uint32 }

type frameHead struct{ argc, nkeys, firstKey, db uint32 }

// the is the one call that an instance is in.
var the Call

// NArg is the number of arguments, the command's name included.
func (c *Call) NArg() int { return c.argc }

// Arg is the i-th argument, 0 being the name: a view that ends with the call.
func (c *Call) Arg(i int) []byte { return c.view(i) }

// NKeys is how many arguments are keys.
func (c *Call) NKeys() int { return int(c.head().nkeys) }

// DB is the database that the call is in.
func (c *Call) DB() int { return int(c.head().db) }

// Int is the i-th argument as an integer, as Redis reads integers: no plus, no
// blanks, no leading zeros. Otherwise the error has Redis's words.
func (c *Call) Int(i int) (int64, error) {
	n, ok := ParseInt(c.Arg(i))
	if !ok {
		return 0, Error("ERR value is not an integer or out of range")
	}
	return n, nil
}

// Is tells whether the i-th argument is word, which is in lower case, in whatever
// case.
func (c *Call) Is(i int, word string) bool {
	b := c.Arg(i)
	if len(b) != len(word) {
		return false
	}
	for i, ch := range b {
		if 'A' <= ch && ch <= 'Z' {
			ch += 'a' - 'A'
		}
		if ch != word[i] {
			return false
		}
	}
	return true
}

// ParseInt reads a 64-bit integer in the one way Redis writes it.
func ParseInt(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && b[0] == '-' {
		digits, negative = b[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (len(digits) > 1 || negative) {
		return 0, false
	}
	var n uint64
	for _, ch := range digits {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		n = n*10 + uint64(ch-'0')
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// NowMS is the Unix time in milliseconds, the same throughout a call.
func (c *Call) NowMS() int64 { return hostNowMS() }

// Fence is a fencing number: greater than every one given before, and the same
// throughout a call.
func (c *Call) Fence() int64 { return hostFence() }

// Random fills b with random bytes.
func (c *Call) Random(b []byte) { hostRandom(start(b), uint32(len(b))) }

// ClientField is something known of the client.
type ClientField int32

// The fields.
const (
	ClientID ClientField = iota
	ClientName
	ClientUser
	ClientAddr
)

// Client is what is known of the client, as text; "" if the call has none.
func (c *Call) Client(field ClientField) string {
	b, _, _ := read(nil, func(buf unsafe.Pointer, size uint32) int32 { return hostClient(int32(field), buf, size) })
	return string(b)
}

// Config is the present value of a parameter that the module declares, as text; a
// bool is "yes" or "no".
func (c *Call) Config(name string) string {
	b, _, _ := read(nil, func(buf unsafe.Pointer, size uint32) int32 {
		return hostConfigGet(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), buf, size)
	})
	return string(b)
}

// Level is how much a log line matters.
type Level int32

// The levels.
const (
	LogDebug Level = iota
	LogInfo
	LogWarning
)

// Log writes a line to the server's log. The host bounds how many a call may
// write.
func Log(level Level, text string) {
	hostLog(int32(level), unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// start is where a slice begins.
func start(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// read appends to dst what a host function copies into a buffer. Such a function
// answers the length, and copies nothing if that is more than there is room. ok
// is false for LK_NIL.
func read(dst []byte, from func(buf unsafe.Pointer, size uint32) int32) (b []byte, ok bool, err error) {
	room := dst[len(dst):cap(dst)]
	n := from(start(room), uint32(len(room)))
	if n > int32(len(room)) {
		makeRoom(int(n))
		grown := make([]byte, len(dst), len(dst)+int(n))
		copy(grown, dst)
		dst = grown
		n = from(start(dst[len(dst):cap(dst)]), uint32(n))
	}
	switch {
	case n >= 0:
		return dst[:len(dst)+int(n)], true, nil
	case n == -1:
		return dst, false, nil
	}
	return dst, false, Code(n)
}
