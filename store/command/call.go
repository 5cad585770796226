package command

import (
	"strconv"

	"github.com/latchkey-proxy/latchkey/store"
)

// Client is who a command runs for, as far as handlers below the proxy need to
// know. The proxy's own handlers assert their concrete type.
type Client interface {
	ID() int64
	Name() string
	User() string
	Addr() string
}

// Session is the state that commands of one asker share: its database, its
// protocol and its transaction. It belongs to one goroutine.
type Session struct {
	DB    int
	Proto int // 2 or 3: what the client speaks
	Tx    *store.Tx
	// Wait says who may end the session's waiting for keys.
	Wait   *store.Wait
	Client Client
	// NoTouch: reading does not count as use of a key (CLIENT NO-TOUCH).
	NoTouch bool
	// InMulti: the command runs as part of EXEC.
	InMulti bool
	// AllowOOM: commands that may need memory run though maxmemory is reached. A
	// transaction or a script that began below the limit, has written already, or
	// says that it may (allow-oom), is not stopped half way, as in Redis.
	AllowOOM bool
	// Denied holds the reason for which writes are refused in this session, as
	// the text of an error reply; "" when they are not (read-only scripts).
	Denied string
	// Guard, when it is set, judges every command that Exec is about to run: it
	// returns the text of an error reply, or "" to let it run. A plugin sets it
	// while a command that it called runs, for what that command calls itself.
	Guard func(c *Call) string
	// Cause is what keyspace events say that they were caused by; nil: a client.
	Cause any

	// Memo is what the room of scripts keeps for the session from one command to
	// the next. What it refers to is only a short cut.
	Memo any
	// Rest, when it is set, is called, and forgotten, when a batch has been run and
	// before the session waits: somebody keeps something for the next command that a
	// session which has none should not hold.
	Rest func()

	stamp int64  // monotonic ns when the running command began
	run   run    // commands that have ended and are not measured yet
	acc   ledger // commands that have ended
	inner ledger // of the running transaction, which may have to run again
	pos   []Position
}

// Origin says through whom a command came.
type Origin uint8

// The origins.
const (
	FromClient Origin = iota
	FromExec          // queued by MULTI
	FromScript
	FromPlugin
	FromTimer // a plugin's timer or event
)

// The state of a module is a key of this database with a name that begins so; the
// module's name follows. It is latchkey's own, whatever keys are.
const (
	StateDB     = 0
	StatePrefix = "latchkey:module:"
)

// IsState tells whether a key holds the state of a module.
func IsState(db int, name []byte) bool {
	return db == StateDB && len(name) > len(StatePrefix) && string(name[:len(StatePrefix)]) == StatePrefix
}

// Call is one command on its way through Exec.
type Call struct {
	E     *Engine
	S     *Session
	Spec  *Spec
	Args  [][]byte // with the name; views that live until the command is done
	Tx    *store.Tx
	Reply Reply
	From  Origin
	// Frame are the bytes that the command came in, when it came from a
	// client; forwarding sends them on.
	Frame []byte
	// Meter is the budget of the script or plugin that calls, which has set it as
	// Tx's too; nil: there is none.
	Meter store.Meter
	// Prepared is what the Spec's Prepare has made ready, and Lengthy its verdict
	// that the command will not be done quickly: its keys are locked at once.
	Prepared any
	Lengthy  bool

	parked *Parking // what the command waits for
	failed string   // text of the error reply
	undo   bool
	told   bool // see Told
	brief  bool // see Brief
	ran    bool // the handler was called
}

// Reuse makes c a call of another command by the same asker, for the same budget and
// with the same reply.
func (c *Call) Reuse(spec *Spec, args [][]byte) {
	c.Spec, c.Args, c.Prepared, c.Lengthy = spec, args, nil, false
	c.parked, c.failed, c.undo, c.told, c.ran, c.brief = nil, "", false, false, false, false
}

// Err answers an error; whatever the command has changed is undone.
func (c *Call) Err(msg string) {
	c.failed, c.undo = msg, true
	c.Reply.Error(msg)
}

// ErrKept answers an error and keeps what was changed, as a script does that
// returns an error reply.
func (c *Call) ErrKept(msg string) {
	c.failed = msg
	c.Reply.Error(msg)
}

// Told says that the error which the command answers is that of another command,
// and was counted when that one answered it (INFO errorstats).
func (c *Call) Told() { c.told = true }

// Brief says of a command whose Spec cannot promise it whether it took no longer
// than a few quick ones.
func (c *Call) Brief(was bool) { c.brief = was }

// Failed is the text of the error that the command answered, "" if none.
func (c *Call) Failed() string { return c.failed }

// OK answers OK.
func (c *Call) OK() { c.Reply.Status("OK") }

// DB is the selected logical database.
func (c *Call) DB() int { return c.S.DB }

// Resp3 tells whether the client itself speaks RESP3.
func (c *Call) Resp3() bool { return c.S.Proto == 3 }

// Is tells whether argument i is word, which is in lower case, in whatever case.
func (c *Call) Is(i int, word string) bool { return equalFold(c.Args[i], word) }

// Key is the handle of the key at argument i, for writing.
func (c *Call) Key(i int) *store.Key { return c.Tx.Key(c.S.DB, c.Args[i]) }

// ReadKey is the handle of the key at argument i for a command that reads: it
// counts as a hit or miss, and the key as used.
func (c *Call) ReadKey(i int) *store.Key {
	k := c.Key(i)
	c.Looked(k)
	return k
}

// Looked counts a look-up by a reading command.
func (c *Call) Looked(k *store.Key) {
	if k.Exists() {
		c.Tx.Hits++
		if !c.S.NoTouch {
			k.Touch()
		}
		return
	}
	c.Tx.Misses++
	c.Notify(store.NotifyMiss, "keymiss", k)
}

// IsString tells whether k can be used as a string: it is one or is absent.
// Otherwise the error is answered.
func (c *Call) IsString(k *store.Key) bool {
	if kind := k.Kind(); kind != store.String && kind != store.None {
		c.Err(ErrWrongType)
		return false
	}
	return true
}

// Notify emits a keyspace event about k at commit, if its class is asked for.
func (c *Call) Notify(class uint32, event string, k *store.Key) {
	if c.E.Store.Notify()&class == 0 {
		return
	}
	c.Tx.Emit(store.Event{
		Kind: store.EventKeyspace, Origin: c.S.Client, Cause: c.S.Cause, DB: k.DB(), Class: class,
		Channel: []byte(event), Payload: append([]byte(nil), k.Name()...),
	})
}

// Int parses argument i as Redis parses integers: no blanks, no plus sign, no
// leading zeros. When it is none the error is answered.
func (c *Call) Int(i int) (int64, bool) {
	n, ok := ParseInt(c.Args[i])
	if !ok {
		c.Err(ErrNotInteger)
	}
	return n, ok
}

// bounds are the arguments 2 and 3, the first and the last index of a range. When
// one is no integer the error is answered.
func (c *Call) bounds() (start, stop int64, ok bool) {
	if start, ok = c.Int(2); !ok {
		return 0, 0, false
	}
	stop, ok = c.Int(3)
	return start, stop, ok
}

// ParseInt parses a 64-bit integer in the one way Redis writes it.
func ParseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	digits, neg := b, false
	if b[0] == '-' {
		digits, neg = b[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (len(digits) > 1 || neg) {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if neg {
		if n > 1<<63 {
			return 0, false
		}
		return -int64(n), true
	}
	if n > 1<<63-1 {
		return 0, false
	}
	return int64(n), true
}

// FormatInt is ParseInt's opposite.
func FormatInt(n int64) []byte { return strconv.AppendInt(make([]byte, 0, 20), n, 10) }
