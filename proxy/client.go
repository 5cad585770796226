package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// flushAt is how many bytes of replies are gathered before they are written,
// even though the batch goes on.
const flushAt = 64 << 10

// maxReply is how many bytes of replies a client may have gathered: a short MGET
// or MULTI could name a large value a million times.
const maxReply = 1 << 30

// client is one connection. The goroutine that serves it owns it, but for the
// fields that say otherwise. That is one of its own, or whichever runs the event
// loop that it is on (turn.go).
type client struct {
	s    *Server
	id   int64
	conn net.Conn
	// loop is conn if an event loop serves it, else nil.
	loop *netloop.Conn
	// watching is set while another goroutine reads ahead; see socketWatch.
	watching bool
	midBatch bool // the next command belongs to the batch that has begun
	touched  int  // commands ahead whose keys were touched
	r        *resp.Reader
	w        resp.Writer
	lim      resp.Limits
	out      output
	// query is what the client holds of Server.queryMemory.
	query atomic.Int64
	sess  command.Session
	call  command.Call
	wait  store.Wait

	// The command that was looked up last: pipelines repeat themselves.
	lastSpec *command.Spec
	// named is the one that lastName was found to be in a version of the table; nil
	// if it was none, or has sub-commands.
	named     *command.Spec
	lastName  []byte
	lastTable uint64

	multi    *multi
	watcher  store.Watcher
	subs     subscriptions
	own      ownPushes
	tracking tracking
	ahead    [32][]byte  // scratch of touchAhead
	forwards []forwarded // replies to come from the upstream, by place in w
	joined   resp.Writer // of joinForwards
	reply    replyMode
	quitting bool // close after what has been answered is written
	lsn      uint64

	local    bool         // over loopback or a unix socket
	created  int64        // Unix seconds
	proto    atomic.Int32 // of sess, for those who push
	lastUsed atomic.Int64 // Unix seconds of the last command
	done     chan struct{}
	doneOnce sync.Once
	draining atomic.Bool
	busy     atomic.Bool // within a batch
	stuck    atomic.Bool // waits until the client reads what it was answered
	// monitoring: the client is in MONITOR. Its own goroutine sets it.
	monitoring atomic.Bool
	// mark is where in w the reply to the running command begins.
	mark int
	// unblocked receives what CLIENT UNBLOCK makes of a blocked command.
	unblocked chan error

	// What others read (CLIENT LIST, CLIENT KILL), under mu.
	mu      sync.Mutex
	name    string
	libName string
	libVer  string
	user    string
	lastCmd *command.Spec
	authed  bool
	noEvict bool
	shown   snapshot
}

// snapshot are the facts of CLIENT LIST that the client's goroutine keeps,
// copied at the end of each batch for others to read.
type snapshot struct {
	db, sub, psub, ssub               int
	multi                             int // commands queued by MULTI, -1 without
	qbuf, qbufFree, argvMem, multiMem int
	rbs                               int // size of the reply buffer
	watching                          int
	noTouch                           bool
	blocked                           bool // waits for a key or for CLIENT PAUSE to end
	unblockable                       bool // waits in a command that CLIENT UNBLOCK ends
}

// replyMode is CLIENT REPLY.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // SKIP: not this reply (none is sent) but the next
	replySkip
)

func newClient(s *Server, conn net.Conn) *client {
	c := &client{s: s, id: s.clients.nextID(), conn: conn, created: s.seconds(), done: make(chan struct{}), user: "default"}
	c.loop, _ = conn.(*netloop.Conn)
	c.lastUsed.Store(c.created)
	c.lim.Grow = c.growQuery
	c.r = resp.NewReader(countingReader{c}, &c.lim)
	c.out.init(c)
	c.w.SetMax(int(s.maxReply.Load()))
	c.sess.Tx = s.store.NewTx()
	c.call = command.Call{E: s.engine, S: &c.sess, Tx: c.sess.Tx, Reply: &c.w}
	c.setProto(2)
	c.sess.Client = c
	c.unblocked = make(chan error, 1)
	c.wait = store.Wait{Done: c.done, Unblocked: c.unblocked, Parked: c.park, Watch: c.runLong}
	c.shown.multi = -1
	c.sess.Wait = &c.wait
	c.authed = s.auth.Load() == nil
	c.local = isLoopback(conn.RemoteAddr())
	s.limits(c)
	s.clients.add(c)
	return c
}

// countingReader counts what comes in.
type countingReader struct{ c *client }

func (r countingReader) Read(p []byte) (n int, err error) {
	c := r.c
	if c.loop != nil && !c.watching {
		n, err = c.loop.TryRead(p)
	} else {
		n, err = c.conn.Read(p)
	}
	if n > 0 {
		c.s.stats.reads.Add(1)
		c.s.stats.netIn.Add(int64(n))
	}
	return n, err
}

// ID, Name, User and Addr implement command.Client.
func (c *client) ID() int64 { return c.id }

// Name is what CLIENT SETNAME set.
func (c *client) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// User is who the client has authenticated as.
func (c *client) User() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user
}

// Addr is the client's address as CLIENT LIST shows it.
func (c *client) Addr() string { return showAddr(c.conn.RemoteAddr(), c.conn.LocalAddr()) }

// touchAhead brings closer what this command and those behind it in the pipeline
// will look at, and returns how many commands ahead that covers.
func (c *client) touchAhead(args [][]byte) int {
	at, values := 1, true
	if c.lastSpec != nil { // pipelines repeat themselves
		at, values = c.lastSpec.FirstKey()
	}
	if at >= len(args) {
		return 0
	}
	c.ahead[0] = args[at]
	names := c.r.Ahead(at, c.ahead[:1:len(c.ahead)])
	if len(names) >= fewestTouched {
		c.s.store.Touch(c.sess.DB, names, values)
	}
	return len(names) - 1
}

// fewestTouched is the number of commands from which on touching pays.
const fewestTouched = 3

func (c *client) readFailed(err error) {
	var bad *resp.ProtocolError
	switch {
	case errors.As(err, &bad):
		c.s.stats.errorReply(bad.Reply)
		if c.reply != replyOff {
			c.w.Error(bad.Reply)
		}
		c.flush()
	case errors.Is(err, resp.ErrQueryLimit):
		c.s.stats.queryLimit.Add(1)
		c.s.log.Warn("a client sent more than client-query-buffer-limit in one command and was closed", "client", c.id)
	case errors.Is(err, errQueryMemory):
		c.s.stats.queryLimit.Add(1)
		c.s.log.Warn("the commands that clients have half sent exceed client-query-memory-limit; a client was closed", "client", c.id)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
	default:
		c.s.log.Debug("a connection was lost", "client", c.id, "err", err)
	}
}

// flush sends off all replies gathered, in their order, when what they tell is
// durable.
func (c *client) flush() error {
	if err := c.awaitLog(); err != nil {
		return err
	}
	replies := &c.w
	if len(c.forwards) != 0 {
		c.leaveLoop()
		if err := c.joinForwards(); err != nil {
			return err
		}
		replies = &c.joined
	}
	if replies.Len() == 0 {
		return nil
	}
	err := c.out.write(replies.Bytes())
	c.w.Reset()
	c.joined.Reset()
	c.mark = 0
	return err
}

// awaitLog waits until all that the replies gathered tell of is durable.
func (c *client) awaitLog() error {
	c.sess.FlushStats()
	lsn := max(c.lsn, c.sess.Tx.TakeLSN())
	if lsn == 0 {
		return nil
	}
	c.lsn = 0
	err := c.s.store.Wait(lsn)
	if err != nil {
		// Whether the writes have lasted is unknown; saying either would lie.
		c.s.log.Error("the effect log failed after an append; closing a client whose outcome is unknown", "client", c.id, "err", err)
		c.kill()
	}
	return err
}

// park is called before the client's goroutine waits for a key. What was
// answered before leaves now; and if the wait lasts, the socket is watched, so
// that one who goes away does not keep its place.
func (c *client) park(blocked bool) func() {
	c.sendAhead()
	return c.rest(c.call.Args, blocked)
}

// sendAhead is flush for a client that may have keys already, or be given one at
// any moment: the replies go to the writer goroutine, for nobody may have to
// wait until this client reads. Replies of the upstream would have to be waited
// for; what comes after the first of them stays until the batch ends.
func (c *client) sendAhead() {
	if c.w.Len() == 0 || len(c.forwards) != 0 || c.awaitLog() != nil {
		return
	}
	c.out.share()
	c.out.push(c.w.Bytes())
	c.w.Reset()
	c.mark = 0
}

// rest is called before the client's goroutine waits in a command with these
// arguments; unblockable tells whether CLIENT UNBLOCK may end the wait.
func (c *client) rest(args [][]byte, unblockable bool) func() {
	c.leaveLoop()
	c.sess.Waits()
	c.lastUsed.Store(c.s.seconds())
	c.snapshot(args)
	c.setBlocked(true, unblockable)
	stop := c.watchSocket(watchAfter)
	return func() {
		stop()
		c.setBlocked(false, false)
	}
}

// runLong is called on the client's goroutine when its command runs for long:
// CLIENT LIST shows it from now on, and after some time, unless that is 0, the
// socket is watched.
func (c *client) runLong(watch time.Duration) (stop func()) {
	c.snapshot(c.call.Args)
	if watch <= 0 {
		return func() {}
	}
	return c.watchSocket(watch)
}

// watchSocket has the socket watched after some time, until stop is called:
// when the client goes away, whatever it waits for or runs is ended.
func (c *client) watchSocket(after time.Duration) (stop func()) {
	w := &socketWatch{c: c, ended: make(chan struct{})}
	timer := time.AfterFunc(after, w.run)
	return func() {
		if !timer.Stop() {
			w.stop()
		}
	}
}

// watchAfter is how long a wait lasts before its socket is watched.
const watchAfter = 20 * time.Millisecond

// socketWatch reads ahead while the client's own goroutine waits.
type socketWatch struct {
	c       *client
	mu      sync.Mutex
	stopped bool
	ended   chan struct{}
}

func (w *socketWatch) run() {
	defer close(w.ended)
	for {
		w.mu.Lock()
		stopped := w.stopped
		w.c.watching = !stopped // the owner reads nothing until ended is closed
		w.mu.Unlock()
		if stopped {
			return
		}
		_, err := w.c.r.ReadAhead()
		switch {
		case err == nil:
		case errors.Is(err, resp.ErrReadAheadFull):
			return // it is alive and talkative; its end will be seen later
		default:
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				w.c.end()
			}
			return
		}
	}
}

func (w *socketWatch) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.c.conn.SetReadDeadline(time.Unix(1, 0)) // ends the Read under way
	<-w.ended
	w.c.watching = false
	w.c.conn.SetReadDeadline(time.Time{})
}

// end lets whatever the client waits for go. Any goroutine may call it.
func (c *client) end() { c.doneOnce.Do(func() { close(c.done) }) }

// kill ends the client at once. Any goroutine may call it. The socket goes
// first: what the client waited for would else be answered with an error that
// only those should see who are told to stop waiting.
func (c *client) kill() {
	c.conn.Close()
	c.end()
}

// drain lets the client finish the batch that it is in and ends it then. One that
// waits in a blocking command, maybe for ever, is ended at once.
func (c *client) drain() {
	c.draining.Store(true)
	c.mu.Lock()
	waits := c.shown.unblockable
	c.mu.Unlock()
	if waits {
		c.kill()
	}
	c.conn.SetReadDeadline(time.Unix(1, 0))
	if c.loop != nil {
		c.loop.Poke()
	}
}

// close is the end of the client.
func (c *client) close() {
	c.end()
	c.releaseForwards()
	c.dropMulti()
	c.s.hub.leave(c)
	c.s.monitor.leave(c)
	c.s.store.Unwatch(&c.watcher)
	c.sess.FlushStats()
	if c.out.isShared() {
		c.leaveLoop() // the writer may take a while
	}
	c.out.close()
	c.conn.Close()
	c.r.Release()
	if gone := c.s.engine.ClientGone; gone != nil {
		gone(c.id)
	}
	c.s.clients.remove(c)
}

// mayBeSilent tells whether timeout does not concern the client: it listens to
// channels, or a command of it runs or waits for a key.
func (c *client) mayBeSilent() bool {
	if c.busy.Load() && !c.stuck.Load() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.sub+c.shown.psub+c.shown.ssub > 0 || c.shown.blocked || c.monitoring.Load()
}

func (c *client) setBlocked(on, unblockable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown.blocked, c.shown.unblockable = on, unblockable
	if unblockable && c.draining.Load() {
		c.kill() // the server closes, and drain came before
	}
	if !on {
		select { // an unblocking that came too late
		case <-c.unblocked:
		default:
		}
	}
}

// unblock ends the client's blocked command, as if its time had passed or with
// an error, and tells whether there was one. Any goroutine may call it.
func (c *client) unblock(failing bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown.unblockable {
		return false
	}
	c.shown.unblockable = false // once
	if failing {
		c.unblocked <- store.ErrUnblocked
	} else {
		c.unblocked <- store.ErrTimeout
	}
	return true
}

// snapshot copies what others may see; args is the running command, if there
// is one.
func (c *client) snapshot(args [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sn := &c.shown
	sn.db = c.sess.DB
	sn.argvMem = bytesOf(args)
	sn.sub, sn.psub, sn.ssub = len(c.subs.channels), len(c.subs.patterns), len(c.subs.shard)
	sn.multi = -1
	sn.multiMem = 0
	if c.multi != nil {
		sn.multi = len(c.multi.queue)
		sn.multiMem = c.multi.bytes
	}
	sn.watching = c.watcher.Len()
	sn.noTouch = c.sess.NoTouch
	sn.qbuf = c.r.Unread()
	if args != nil {
		sn.qbuf += c.r.Running()
	}
	sn.qbufFree = max(0, c.r.QueryMemory()-sn.qbuf)
	sn.rbs = c.w.Cap()
	c.lastCmd = c.lastSpec
}

// setProto changes the client's protocol version.
func (c *client) setProto(version int) {
	c.sess.Proto = version
	c.proto.Store(int32(version))
	c.w.SetProto(version)
}

// growQuery keeps what all clients have queued or half sent together under one
// cap. A client's first bytes are always granted: those who fill the cap must not
// keep others from commands of usual size, and maxclients bounds these.
func (c *client) growQuery(delta int) error {
	mine := c.query.Add(int64(delta))
	now := c.s.queryMemory.Add(int64(delta))
	if delta <= 0 || mine <= smallQuery {
		return nil
	}
	if limit := c.s.maxQueries.Load(); limit > 0 && now > limit {
		c.query.Add(-int64(delta))
		c.s.queryMemory.Add(-int64(delta))
		return errQueryMemory
	}
	return nil
}

// smallQuery is what every client may hold whatever the others do, in bytes.
const smallQuery = 20 << 10

var errQueryMemory = errors.New("proxy: query buffers of all clients exceed client-query-memory-limit")
