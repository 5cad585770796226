// Package resp turns bytes from a connection into commands and replies into
// bytes, in RESP2 and RESP3.
//
// Three names matter. [Reader] cuts what a client sends into commands: views
// into its read buffer, without copying or allocating. [Writer] builds replies
// for a client, in the protocol version that the client chose. [FrameReader]
// cuts what an upstream Redis answers into whole reply frames, unparsed, ready
// to be passed on.
//
// What is guaranteed about input, whoever sends it:
//
//   - No claimed length is allocated before its bytes have arrived. What a
//     Reader holds for a command that is not yet whole is at most twice the
//     bytes received for it plus 1 MiB; the argument table (24 bytes for each
//     argument) is allocated when the command is whole.
//   - The same bytes give the same commands and the same verdict, however they
//     were split into packets.
//   - Requests do not nest; replies nest at most [MaxDepth] deep and are walked
//     without recursion.
//   - After a protocol error nothing more is returned.
//
// Which requests are errors, and the text of these errors, are redis-server's
// (7.0.15). That includes its tolerances: the byte after a CR in a header, and
// the two bytes after a bulk, are not looked at; a NUL in a header or in an
// inline command hides the end of its line.
//
// What is not guaranteed: nothing here is safe for use by several goroutines
// at once, except as [Reader.ReadAhead] says.
package resp
