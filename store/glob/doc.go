// Package glob matches names against Redis's glob patterns, for KEYS, SCAN, PSUBSCRIBE, CONFIG GET,
// ACL and the ownership of keys.
//
// There is one function, Match. Its verdicts are those of redis-server, the odd ones included (they are
// listed there), but its time is at most the product of the two lengths, whatever the pattern: patterns
// come from clients.
package glob
