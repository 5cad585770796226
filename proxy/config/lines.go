package config

import (
	"slices"
	"strings"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

// checkUser wants the one user that there is, with the rules that it has: a line
// that asks for more users or narrower rules must not be passed over, because
// more would be allowed than was meant.
func checkUser(args []string) string {
	const one = "latchkey has one user, default, who may do everything once the password of requirepass is given"
	if args[0] != "default" {
		return one
	}
	granted := make(map[string]bool)
	for _, rule := range args[1:] {
		switch rule {
		case "on", "nopass":
			granted[rule] = true
		case "~*", "allkeys":
			granted["keys"] = true
		case "&*", "allchannels":
			granted["channels"] = true
		case "+@all", "allcommands":
			granted["commands"] = true
		case "sanitize-payload":
		default:
			return one
		}
	}
	for _, want := range []string{"on", "nopass", "keys", "channels", "commands"} {
		if !granted[want] {
			return one
		}
	}
	return ""
}

// LineError is the error for the i-th line of a Lines directive, as Lines counts
// them, which was found to be wrong only when it was put to use. reason says
// what is wrong, hint what would be right.
func (c *Config) LineError(name string, i int, reason, hint string) *Error {
	v := c.must(name).value.Load()
	e := &Error{Directive: name, Reason: reason, Suggestion: hint}
	if i < len(v.origins) {
		e.Origin = v.origins[i]
	}
	if i < len(v.lines) && !c.must(name).Redacted {
		words := slices.Clone(v.lines[i])
		for j := range words {
			words[j] = quoting.Quote(words[j])
		}
		e.Value = strings.Join(words, " ")
	}
	return e
}
