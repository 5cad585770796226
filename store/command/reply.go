package command

// Reply is where a handler describes its answer. Who asked decides what is
// built from it: RESP2 or RESP3 bytes for a client (proxy/resp.Writer), Lua
// values for redis.call, a handle for a plugin. There is no detour through text.
//
// Aggregates are opened with the number of their elements, and exactly that
// many replies must follow (twice as many for Map). Bytes given to a method are
// copied before it returns. A Reply belongs to one goroutine.
type Reply interface {
	// Status is a simple string such as OK; it must hold neither CR nor LF.
	Status(s string)
	// Error is an error whose first word is its code: "ERR syntax error".
	// CR and LF in it are replaced by spaces.
	Error(msg string)
	Int(n int64)
	Bulk(b []byte)
	BulkString(s string)
	// Null is the null bulk in RESP2, the null in RESP3.
	Null()
	// NullArray is the null array in RESP2, the null in RESP3.
	NullArray()
	Array(n int)
	// Map opens n pairs; in RESP2 an array of 2n.
	Map(n int)
	// Set is an array in RESP2.
	Set(n int)
	// Push is an array in RESP2.
	Push(n int)
	// Double is a bulk in RESP2 (17 significant digits, as Redis 7).
	Double(f float64)
	// Bool is 1 or 0 in RESP2.
	Bool(b bool)
	// BigNumber is a decimal integer of any length; a bulk in RESP2.
	BigNumber(digits string)
	// Verbatim is text with a three-letter format ("txt", "mkd"); a bulk in RESP2.
	Verbatim(format, text string)

	// Mark returns the present end of the reply; Rewind drops all that was
	// described since that mark. Marks nest like savepoints.
	Mark() int
	Rewind(mark int)
}
