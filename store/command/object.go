package command

import (
	"math"

	"github.com/latchkey-proxy/latchkey/store"
)

func objectCommands() []*Spec {
	sub := func(name, since, summary, differs string, h Handler) *Spec {
		return &Spec{
			Name: name, Arity: 3, Flags: ReadOnly, Categories: CatKeyspace,
			Keys: []KeySpec{{Begin: 2, Flags: KeyRO}}, Handler: h,
			Summary: summary, Since: since, Group: "generic", Complexity: "O(1)", Syntax: "key", Differs: differs,
		}
	}
	help := HelpSpec("object", "6.2.0")
	help.Categories |= CatKeyspace
	return []*Spec{{
		Name: "object", Arity: -2,
		Summary: "Tells how the value of a key is kept.", Since: "2.2.3", Group: "generic",
		Complexity: "Depends on the sub-command.",
		Sub: []*Spec{
			sub("encoding", "2.2.3", "Returns the encoding of the value of a key, as Redis would name it.",
				"the name follows from the value alone; the store has one encoding of strings.", objectEncoding),
			sub("freq", "4.0.0", "Returns how often a key is used, under a policy of eviction that counts it.",
				"nothing is ever evicted, so the answer is always the error that no such policy is set.", objectFreq),
			sub("idletime", "2.2.3", "Returns the seconds since a key was last used.", "", objectIdleTime),
			sub("refcount", "2.2.3", "Returns the number of references to the value of a key.",
				"it is always 1; Redis shares small integers.", objectRefCount),
			help,
		},
		Help: []string{
			"ENCODING <key>",
			"    Return the kind of internal representation used in order to store the value",
			"    associated with a <key>.",
			"FREQ <key>",
			"    Return the access frequency index of the <key>. The returned integer is",
			"    proportional to the logarithm of the recent access frequency of the key.",
			"IDLETIME <key>",
			"    Return the idle time of the <key>, that is the approximated number of",
			"    seconds elapsed since the last access to the key.",
			"REFCOUNT <key>",
			"    Return the number of references of the value associated with the specified",
			"    <key>.",
		},
	}}
}

// object is the key that a sub-command of OBJECT asks about; an absent one is
// answered.
func (c *Call) object() (*store.Key, bool) {
	k := c.inspect(2)
	if !k.Exists() {
		c.Reply.Null()
		return nil, false
	}
	return k, true
}

// embeddedString is the length up to which Redis keeps a string in one
// allocation with its header.
const embeddedString = 44

func objectEncoding(c *Call) {
	if k, ok := c.object(); ok {
		c.Reply.BulkString(Encoding(k))
	}
}

// Encoding is the name of the encoding that Redis would keep the value of a key in,
// which must exist.
func Encoding(k *store.Key) string {
	if k.Kind() != store.String {
		return k.Encoding().String()
	}
	_, integer := encodedInt(k)
	switch {
	case integer:
		return "int"
	case !k.Raw() && len(k.Str()) <= embeddedString:
		return "embstr"
	}
	return "raw"
}

func objectFreq(c *Call) {
	if _, ok := c.object(); ok {
		c.Err(errNoFrequency)
	}
}

func objectIdleTime(c *Call) {
	if k, ok := c.object(); ok {
		c.Reply.Int(k.IdleSeconds())
	}
}

// encodedInt is the integer as which Redis would keep a value, if it would.
func encodedInt(k *store.Key) (n int64, ok bool) {
	if k.Kind() != store.String || k.Raw() || k.Text() {
		return 0, false
	}
	return ParseInt(k.Str())
}

// Redis has one object for each of the small integers, whoever uses it, and
// answers a count that stands for that.
const (
	sharedIntegers = 10000
	sharedCount    = math.MaxInt32
)

func objectRefCount(c *Call) {
	k, ok := c.object()
	if !ok {
		return
	}
	if n, ok := encodedInt(k); ok && n >= 0 && n < sharedIntegers {
		c.Reply.Int(sharedCount)
		return
	}
	c.Reply.Int(1)
}
