package latchkey

// Module is what a plugin says of itself, and the functions behind its commands.
type Module struct {
	// Name has letters, digits, '_' and '-', and begins with a letter.
	Name string
	// Version is three numbers, such as "1.12.3".
	Version      string
	Commands     []Command
	Capabilities Capabilities
	Limits       Limits
	Config       []Param
	// WakeVersion says what the tokens of [Call.Block] mean. Clients that wait go on
	// waiting over MODULE RELOAD if it is the same.
	WakeVersion int

	// Init, if set, is called once in every instance, before any command. An
	// error refuses the module. It cannot reach keys.
	Init func() error
	// Timer is called for a timer that is due, with the token it was set with.
	Timer func(c *Call, token int64) error
	// Event is called for keyspace events of the classes in Capabilities.Events.
	Event func(c *Call, class EventClass, event string, key []byte) error
	// Closed is called when the connection ends of a client that was bound to the
	// key with the token.
	Closed func(c *Call, key []byte, token int64) error
}

// Command is a command that a module implements.
type Command struct {
	// Name is shown as it is written; letters' case does not matter to clients.
	Name string
	// Arity is the number of arguments with the name; negative: at least.
	Arity int
	// Flags are those of COMMAND INFO, such as "write", "readonly", "fast".
	Flags []string
	// Keys says which arguments are keys; the zero value: none.
	Keys Keys
	// ACL are the categories, without '@'.
	ACL     []string
	Summary string
	Since   string
	Group   string
	// State says what the command does with the module's state: "", "read" or "write".
	State string

	// Run is the command. It gives exactly one reply and returns nil, or returns an
	// error, which undoes what it did and becomes the reply.
	Run func(c *Call) error
	// Wake, if set, is called in place of Run when a client that has waited since
	// [Call.Block] is woken, or for the last time when its time is over.
	Wake func(c *Call, token int64, timeout bool) error

	id int32
}

// Keys says which arguments are keys: from First to Last, each Step apart. A
// negative Last counts from the end.
type Keys struct{ First, Last, Step int }

// OneKey is a key as the first argument.
var OneKey = Keys{1, 1, 1}

// Capabilities are what a module asks to be allowed. What it does not ask for is
// denied.
type Capabilities struct {
	Read     []string // prefixes of the keys it may read; "" is every key
	Write    []string // prefixes of the keys it may write
	Commands []string // commands it may call
	Timers   bool
	Events   []string // classes of keyspace events: "string", "expired" ...
	State    string   // of the module: "", "read" or "write"
	Block    bool     // may have clients wait
	Clients  bool     // may be told that a client is gone
}

// Limits are what a module asks to be run with; 0 leaves it to the server.
type Limits struct {
	Fuel        int64 // units a command may spend, about one instruction each
	MemoryPages int   // of 64 KiB; a Go guest takes 50 to begin with
	Instances   int
}

// Param is a configuration parameter, which CONFIG GET and SET show as
// module.name.
type Param struct {
	Name    string
	Type    string // "string", "int", "bool" or "enum"
	Default any    // of the type: a string, an int, a bool
	Summary string

	Min, Max  int64    // of an int; both 0: any
	Values    []string // of an enum
	Immutable bool     // set when the module is loaded, and never after
}

// EventClass is a class of keyspace events.
type EventClass int32

// The classes, in the order of their numbers.
const (
	EventGeneric EventClass = iota
	EventString
	EventList
	EventSet
	EventHash
	EventZSet
	EventStream
	EventExpired
	EventEvicted
	EventNew
	EventModule
)

// module is the one that was registered.
var module Module

// runs are its commands by id, less one. An array, and of as many as a power of two, needs
// no look at where and how long it is.
var runs [maxCommands]func(c *Call) error

// maxCommands is how many commands a module may have.
const maxCommands = 256

// Register says what the module is. It is called once, by an init function.
func Register(m Module) {
	if module.Name != "" {
		panic("latchkey: a plugin is one module, and Register was called twice")
	}
	if len(m.Commands) > maxCommands {
		panic("latchkey: a module has 256 commands at most")
	}
	for i := range m.Commands {
		m.Commands[i].id = int32(i + 1)
		runs[i] = m.Commands[i].Run
	}
	module = m
}
