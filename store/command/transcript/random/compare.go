package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// known are the differences whose reasons docs/COMPATIBILITY.md gives: the
// command in lower case, and both replies, each in one line.
var known = []difference{
	differing(`^object encoding `, `quicklist|hashtable`, `listpack`),                   // as Redis 7.2
	differing(`^lpos .* -9223372036854775808`, ``, `value is out of range, value must`), // as Redis 7.2
	differing(`^config .*\x00`, ``, ``),                                                 // where Redis ends the word
}

type difference struct{ command, redis, latchkey *regexp.Regexp }

func differing(command, redis, latchkey string) difference {
	return difference{regexp.MustCompile(command), regexp.MustCompile(redis), regexp.MustCompile(latchkey)}
}

func listed(words []string, redis, latchkey transcript.Reply) bool {
	command := strings.ToLower(strings.Join(words, " "))
	a, b := strings.Join(redis.Lines(), " "), strings.Join(latchkey.Lines(), " ")
	for _, k := range known {
		if k.command.MatchString(command) && k.redis.MatchString(a) && k.latchkey.MatchString(b) {
			return true
		}
	}
	return false
}

// leeway is what two right replies to a command may differ in.
type leeway struct {
	order bool // of an aggregate's elements
	time  bool // that passed between the two
	value bool // everything but the kind of reply
}

func leewayOf(words []string) leeway {
	switch name := strings.ToLower(words[0]); name {
	case "keys", "smembers", "sunion", "sinter", "sdiff":
		return leeway{order: true}
	case "scan", "sscan": // one call for all, or parts that differ
		at := 1 + len(name) - len("scan")
		whole := len(words) > at+2 && words[at] == "0" && words[len(words)-1] == "1000"
		return leeway{order: true, value: !whole}
	case "srandmember", "memory":
		return leeway{value: true}
	case "ttl", "pttl", "expiretime", "pexpiretime":
		return leeway{time: true}
	case "dump": // strings are not compressed here
		return leeway{value: true}
	case "object":
		return leeway{value: len(words) > 1 && strings.EqualFold(words[1], "idletime")}
	case "exec":
		return leeway{order: true, time: true}
	}
	return leeway{}
}

// clockLeeway is how far apart two times may be, in the command's unit.
const clockLeeway = 60_000

// alike tells whether two replies to the same command are the same but for what
// must differ.
func alike(l leeway, a, b transcript.Reply) bool {
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	if l.value && a.Kind != transcript.Error {
		return true
	}
	if l.time && a.Kind == transcript.Int {
		x, _ := strconv.ParseInt(a.Text, 10, 64)
		y, _ := strconv.ParseInt(b.Text, 10, 64)
		return x == y || x > 0 && y > 0 && max(x-y, y-x) <= clockLeeway
	}
	if a.Text != b.Text {
		return false
	}
	x, y := a.Elems, b.Elems
	if l.order {
		x, y = inOrder(x), inOrder(y)
	}
	for i := range x {
		if !alike(l, x[i], y[i]) {
			return false
		}
	}
	return true
}

// inOrder sorts the elements, but not those that hold others, whose place says
// whose reply they are.
func inOrder(elems []transcript.Reply) []transcript.Reply {
	for _, e := range elems {
		if e.Kind != transcript.Bulk {
			return elems
		}
	}
	sorted := slices.Clone(elems)
	slices.SortFunc(sorted, func(a, b transcript.Reply) int { return strings.Compare(a.Text, b.Text) })
	return sorted
}
