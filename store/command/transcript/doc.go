// Package transcript holds commands beside the exact replies they get, and
// replays them: against redis-server, which is where the replies come from, and
// against latchkey, which must give the same ones.
//
// The names that matter are [File], what stands in a *.transcript file;
// [Play], which replays a file against a [Target] in RESP2 or RESP3 and returns
// every [Difference]; and [Record], which writes the replies that a target gives
// into the file. The command in the diff directory below puts them together.
//
// # A transcript
//
// A line at the left margin is a command, with the quoting of redis-cli. What
// is indented by two spaces below it is its reply:
//
//	== GETSET
//
//	SET k v
//	  +OK
//	GETSET k w
//	  "v"
//	GETSET k
//	  -ERR wrong number of arguments for 'getset' command
//
// A line "== name" begins a section. A section starts with new connections, no
// keys, no scripts, no slow log and the configuration the server was started
// with, and it is played from its beginning to its end in RESP2 and then in
// RESP3.
//
// A line may begin with the name of the connection that sends it, "@2 GET k";
// without one it is "@1". In RESP3 a connection begins with HELLO 3. Several
// lines that begin with "| " (behind the connection's name) are one pipeline:
// they are sent in one write, and their replies stand below the last.
//
// # Replies
//
// A reply is written by its kind, one value a line, what is inside an aggregate
// two spaces deeper:
//
//	+OK            simple string
//	-ERR no        error
//	:42            integer
//	"a\r\n\x00"    bulk string
//	(nil)          RESP2's absent bulk string, $-1
//	(nil array)    RESP2's absent array, *-1
//	(null)         RESP3's null
//	*2 ~2 >2       array, set and push; their elements below
//	%1             map: a key and a value below for each
//	,1.5           double
//	#t #f          boolean
//	(123           big number
//	=txt:"a"       verbatim string
//
// The block belongs to both protocols. A reply of RESP2 is expected in RESP3
// with both absent kinds as (null), and with an array that begins with
// "message", "subscribe" or one of their kin as a push. Where RESP3 differs in
// more than that, its reply stands below a line "resp3:".
//
// Two lines stand for the absence of a reply: "(no reply)", nothing is read now
// (a blocked command, CLIENT REPLY OFF), and "(closed)", the server closed the
// connection.
//
// # Replies that vary
//
// A line that begins with "? " stands for a value that is not the same each
// time:
//
//	? int                 any integer
//	? int 9990..10000     an integer in a range, ends included
//	? bulk REGEXP         a bulk string that matches, from its start to its end
//	? verbatim REGEXP     likewise, a verbatim string, or a bulk string in RESP2
//	? status REGEXP       likewise
//	? error REGEXP        likewise
//	? double 1..2         a double in a range, or a bulk string that reads as one
//	? array               any array, set, map or push
//	? any                 anything at all
//	? rest                in an aggregate: its other elements, however many
//	? unordered           the aggregate on the next line, in any order
//	? set                 the array on the next line in any order, a set in RESP3
//
// A REGEXP sees bytes as the characters of Latin-1: \xff is one byte. Behind the
// first six, "-> name" keeps the value, and ${name} in a later
// command of the section stands for it. ${now} and ${nowms} are the clock in
// seconds and milliseconds, ${now+100} is calculated, and ${ab*1000} is "ab" a
// thousand times.
//
// # The player's own lines
//
//	.read              read one frame that was not asked for: a message, a late
//	                   reply, the end of the connection
//	.raw "bytes"       send these bytes and read one reply
//	.close             close the connection
//	.sleep 20ms        let time pass, for keys that expire
//
// Messages that arrive while a reply is awaited are kept for .read. One that is
// left over when the section ends is a difference.
//
// # Directives
//
// Comments begin with "#". These mean something, for the whole file before its
// first section, and for one section below its header:
//
//	# needs: rpush       play this on servers only that have the command, by
//	                     COMMAND INFO; elsewhere it counts as skipped
//	# only: redis 7.2    redis-server 7.0 does not know this: the replies are
//	                     written by hand, from the page that is named by
//	# source: URL        the page
//	# proto: 2           play this in one protocol only
package transcript
