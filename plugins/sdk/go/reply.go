package latchkey

import "unsafe"

// The functions below give the reply, or the next element of an aggregate that was begun.
// Bytes are copied. What RESP2 has no kind for it gets as Redis would send it.

// ReplyNull replies a null.
func (c *Call) ReplyNull() { hostReplyNull() }

// ReplyInt replies an integer.
func (c *Call) ReplyInt(n int64) { hostReplyInt(n) }

// ReplyDouble replies a double.
func (c *Call) ReplyDouble(f float64) { hostReplyDouble(f) }

// ReplyBool replies a boolean.
func (c *Call) ReplyBool(b bool) {
	n := int32(0)
	if b {
		n = 1
	}
	hostReplyBool(n)
}

// ReplySimple replies a status, such as OK. It must have no line breaks.
func (c *Call) ReplySimple(text string) {
	hostReplySimple(unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// ReplyBulk replies bytes.
func (c *Call) ReplyBulk(b []byte) { hostReplyBulk(start(b), uint32(len(b))) }

// ReplyString replies a string.
func (c *Call) ReplyString(s string) {
	hostReplyBulk(unsafe.Pointer(unsafe.StringData(s)), uint32(len(s)))
}

// ReplyBigNumber replies an integer of any size, in decimal digits.
func (c *Call) ReplyBigNumber(digits string) {
	hostReplyBigNum(unsafe.Pointer(unsafe.StringData(digits)), uint32(len(digits)))
}

// ReplyVerbatim replies text with a format of three bytes, such as "txt" or "mkd".
func (c *Call) ReplyVerbatim(format, text string) {
	if len(format) != 3 {
		panic("latchkey: the format of a verbatim string has three bytes")
	}
	hostReplyVerbatim(unsafe.Pointer(unsafe.StringData(format)), unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

// ReplyArray begins an array of n replies.
func (c *Call) ReplyArray(n int) { hostReplyArray(uint32(n)) }

// ReplyMap begins a map of n pairs: a key and a value, 2n replies by turns.
func (c *Call) ReplyMap(n int) { hostReplyMap(uint32(n)) }

// ReplySet begins a set of n replies.
func (c *Call) ReplySet(n int) { hostReplySet(uint32(n)) }

// Later is the length of an aggregate that is known when it ends only: ReplyLen
// tells it then.
const Later = -1

// ReplyLen ends an aggregate that was begun with Later, which has n elements, of a
// map n pairs.
func (c *Call) ReplyLen(n int) { hostReplyLen(uint32(n)) }
