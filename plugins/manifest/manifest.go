package manifest

import (
	"errors"
	"fmt"
	"slices"
)

// SectionName is the name of the custom section.
const SectionName = "latchkey.manifest"

// MaxBytes is how long a manifest may be.
const MaxBytes = 64 << 10

// ErrMissing is returned for a module without a manifest.
var ErrMissing = errors.New("manifest: the module has no custom section " + SectionName + "; latchkey plugin pack puts one in")

// Manifest is what a module declares. It shares no memory with the module.
type Manifest struct {
	Name         string  // letters, digits, '_' and '-', beginning with a letter; 64 at most
	Version      Version // of the module
	ABI          ABI
	Commands     []Command
	Capabilities Capabilities
	Limits       Limits
	Config       []Param
	WakeVersion  int // of the tokens of clients that wait; a reload with another ends their waits
}

// ABI is the range of host interface versions a module was written for.
type ABI struct{ Min, Max int }

// Version is a module's version, written as "1.12.3". Minor and Patch are 99 at
// most, so that Number is unique.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Number is the version as MODULE LIST shows it, where modules for Redis have
// 10203 for 1.2.3.
func (v Version) Number() int { return v.Major*10000 + v.Minor*100 + v.Patch }

// Command is a command that a module implements.
type Command struct {
	Name    string // letters, digits, '.', '_' and '-', beginning with a letter; as written
	ID      int32  // what the guest is called with; unique in the module, 0 or more
	Arity   int    // number of arguments with the name; negative: at least
	Flags   []string
	Keys    *Keys    // nil for a command without keys
	ACL     []string // categories without '@'
	Summary string   // one sentence
	Since   string   // module version, may be empty
	Group   string   // "module" if not given
	State   State    // what it does with the module's state
}

// Keys says which arguments are keys, as in the first key spec of COMMAND: from
// First to Last, each Step apart. Last counts from the end if it is negative.
type Keys struct{ First, Last, Step int }

// Capabilities are what a module asks to be allowed. All that is not listed is
// denied.
type Capabilities struct {
	Read     []string // prefixes of keys it may read; "" is every key
	Write    []string // prefixes of keys it may write
	Commands []string // commands it may call, in upper case; "CONFIG|GET" is one sub-command
	Timers   bool     // may set timers
	Events   []string // classes of keyspace events it receives
	State    State    // of its own
	Block    bool     // may have clients wait
	Clients  bool     // may be told that a client is gone
}

// State says what a module may do with the state that it keeps for itself.
// Commands that may do anything with it run one at a time.
type State uint8

// The uses of state.
const (
	StateNone State = iota
	StateRead
	StateWrite
)

// String is the word in the manifest.
func (s State) String() string { return knownStates[s] }

// EventClasses are the classes of keyspace events, in the order of the numbers
// by which a guest knows them.
func EventClasses() []string { return slices.Clone(knownEvents) }

// Names are the capabilities that are asked for, in the words of the manifest.
func (c *Capabilities) Names() []string {
	var out []string
	add := func(name string, asked bool) {
		if asked {
			out = append(out, name)
		}
	}
	add("read", len(c.Read) > 0)
	add("write", len(c.Write) > 0)
	add("commands", len(c.Commands) > 0)
	add("timers", c.Timers)
	add("events", len(c.Events) > 0)
	add("state", c.State != StateNone)
	add("block", c.Block)
	add("clients", c.Clients)
	return out
}

// Without is c less the named capabilities. A name that is none is returned.
func (c Capabilities) Without(names []string) (less Capabilities, unknown string) {
	for _, name := range names {
		switch name {
		case "read":
			c.Read = nil
		case "write":
			c.Write = nil
		case "commands":
			c.Commands = nil
		case "timers":
			c.Timers = false
		case "events":
			c.Events = nil
		case "state":
			c.State = StateNone
		case "block":
			c.Block = false
		case "clients":
			c.Clients = false
		default:
			return c, name
		}
	}
	return c, ""
}

// Limits are what a module asks to be run with. Zero leaves it to the host, which
// may grant less than asked for.
type Limits struct {
	Fuel        int64 // units a command may spend, about one instruction each
	MemoryPages int   // pages of 64 KiB an instance may have
	Instances   int   // instances kept ready
}

// ParamType is the type of a configuration parameter.
type ParamType string

// Types of configuration parameters.
const (
	String ParamType = "string"
	Int    ParamType = "int"
	Bool   ParamType = "bool"
	Enum   ParamType = "enum"
)

// Param is a configuration parameter, which the operator may set when loading.
type Param struct {
	Name    string // lower case letters, digits, '_' and '-'
	Type    ParamType
	Default string // as the guest reads it: text, a decimal number, "yes" or "no"
	Summary string

	Min, Max  int64    // of an integer
	Values    []string // of an enum
	Immutable bool     // it can be set when the module is loaded only
}

// Error says what is wrong with a manifest.
type Error struct {
	Field string // such as commands[2].keys.first, or empty for the document
	Found string
	Want  string
}

func (e *Error) Error() string {
	field := e.Field
	if field == "" {
		field = "document"
	}
	return fmt.Sprintf("manifest: %s: found %s, wanted %s", field, e.Found, e.Want)
}
