// Package rdb reads and writes the pieces of Redis's RDB format that leave the
// process one value at a time: strings in all their encodings, lists and sets in
// their plain one, and the payload of DUMP and RESTORE around them.
//
// Seal and Open put the footer (version and checksum) behind a value and take it
// off again; AppendString and ReadString are the value of a string,
// AppendElements and ReadElements that of a list or a set.
//
// Guaranteed: bytes of any origin cost at most 88 times their own length, and
// never more than the limit given to them. Not guaranteed: that a payload
// equals, byte for byte, the one that redis-server writes, which compresses.
package rdb
