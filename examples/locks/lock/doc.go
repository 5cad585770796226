// Package lock holds seven ways to lock over the Redis protocol, each in a file of its own, with the way that
// people write first (types and functions whose names begin with Wrong) beside the way that holds.
//
//	timestamp.go        1  SETNX with a time as the value; GETSET takes over from a dead holder
//	setnx_expire.go     2  SETNX, then EXPIRE
//	token.go            3  SET key token NX PX ms
//	get_compare_del.go  4  release by GET, compare, DEL
//	release_script.go   5  release by script
//	extend.go           6  extension by script, and the watchdog
//	redlock.go          7  Redlock, over several independent servers
//
// To copy into an application: [Token] and its method Do, which take the lock, keep it alive, tell the work
// when the lock is lost, and let go. [Redlock] is for those who have several servers and want to survive the
// loss of one.
//
// What is guaranteed: while the servers keep their keys and all clocks run at about one speed, no two holders
// are within their validity (ValidUntil) at the same time. What no lock with a timeout can guarantee: that a
// holder notices the end of its validity in time. A process that is stopped for longer (garbage collector,
// swap, suspend) wakes up in the middle of its work believing that it still holds the lock. What has to be safe
// even then needs a fencing token that the guarded resource itself checks; see the README.
//
// All clients handed in should have MaxRetries -1 and ContextTimeoutEnabled: a command that is sent a second
// time after a lost reply finds the result of the first, and a deadline ought to end a wait for a reply.
package lock
