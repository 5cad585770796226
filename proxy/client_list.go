package proxy

import (
	"net"
	"strconv"
	"syscall"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// clientKind is what TYPE of CLIENT LIST and KILL chooses by.
type clientKind uint8

const (
	kindAny clientKind = iota
	kindNormal
	kindPubSub
	kindReplica // there are none
	kindMaster  // there are none
)

func clientKindByName(c *command.Call, i int) (clientKind, bool) {
	switch {
	case c.Is(i, "normal"):
		return kindNormal, true
	case c.Is(i, "pubsub"):
		return kindPubSub, true
	case c.Is(i, "slave"), c.Is(i, "replica"):
		return kindReplica, true
	case c.Is(i, "master"):
		return kindMaster, true
	}
	c.Err("ERR Unknown client type '" + string(c.Args[i]) + "'")
	return kindAny, false
}

// kind is the client's own; as in Redis one in MONITOR is a normal client. Any
// goroutine may call it.
func (c *client) kind() clientKind {
	if c.subs.any.Load() {
		return kindPubSub
	}
	return kindNormal
}

func clientInfo(c *command.Call) {
	cl := asClient(c)
	cl.snapshot(c.Args)
	c.Reply.Verbatim("txt", string(cl.appendLine(nil)))
}

func clientList(c *command.Call) {
	cl := asClient(c)
	s := cl.s
	kind := kindAny
	var ids []int64
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 4 && c.Is(2, "type"):
		var ok bool
		if kind, ok = clientKindByName(c, 3); !ok {
			return
		}
	case len(c.Args) > 3 && c.Is(2, "id"):
		for _, arg := range c.Args[3:] {
			id, ok := command.ParseInt(arg)
			if !ok {
				c.Err("ERR Invalid client ID")
				return
			}
			ids = append(ids, id)
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	cl.snapshot(c.Args)
	var b []byte
	if ids != nil {
		for _, id := range ids {
			if one := s.clients.get(id); one != nil && !one.ended() {
				b = one.appendLine(b)
			}
		}
	} else {
		s.clients.each(func(one *client) {
			if (kind == kindAny || one.kind() == kind) && !one.ended() {
				b = one.appendLine(b)
			}
		})
	}
	c.Reply.Verbatim("txt", string(b))
}

// ended tells whether the client is on its way out. Any goroutine may call it.
func (c *client) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// clientMemory is about what a connection takes beside its buffers: the client
// itself, and the stack of a goroutine, which on an event loop it has only at times.
const clientMemory = 10 << 10

// appendLine appends the client's line of CLIENT LIST: the fields of Redis 7.2
// in their order. Any goroutine may call it; what belongs to the client's own is
// as old as its last snapshot.
func (c *client) appendLine(b []byte) []byte {
	now := c.s.seconds()
	pending := c.out.pending.Load()
	shared := c.out.isShared()
	resp := c.proto.Load()

	c.mu.Lock()
	defer c.mu.Unlock()
	sn := &c.shown
	text := func(name, v string) {
		b = append(b, name...)
		b = append(b, v...)
	}
	num := func(name string, n int64) {
		b = append(b, name...)
		b = strconv.AppendInt(b, n, 10)
	}
	idle := max(0, now-c.lastUsed.Load())
	if c.busy.Load() && !sn.blocked {
		idle = 0
	}
	num("id=", c.id)
	text(" addr=", c.Addr())
	text(" laddr=", showAddr(c.conn.LocalAddr(), c.conn.LocalAddr()))
	num(" fd=", descriptor(c.conn))
	text(" name=", c.name)
	num(" age=", max(0, now-c.created))
	num(" idle=", idle)
	b = c.appendFlags(append(b, " flags="...))
	num(" db=", int64(sn.db))
	num(" sub=", int64(sn.sub))
	num(" psub=", int64(sn.psub))
	num(" ssub=", int64(sn.ssub))
	num(" multi=", int64(sn.multi))
	num(" qbuf=", int64(sn.qbuf))
	num(" qbuf-free=", int64(sn.qbufFree))
	num(" argv-mem=", int64(sn.argvMem))
	num(" multi-mem=", int64(sn.multiMem))
	num(" rbs=", int64(sn.rbs))
	num(" rbp=", int64(sn.rbs))
	// What waits to be written stands in the reply buffer, or in the queue that
	// others write to as well.
	events, queued, direct, lists := "r", int64(0), pending, int64(0)
	if pending > 0 {
		events = "rw"
	}
	if shared && pending > 0 {
		queued, direct, lists = pending, 0, 1
	}
	num(" obl=", direct)
	num(" oll=", lists)
	num(" omem=", queued)
	num(" tot-mem=", int64(clientMemory+sn.qbuf+sn.qbufFree+sn.argvMem+sn.multiMem+sn.rbs)+queued)
	text(" events=", events)
	if c.lastCmd != nil {
		text(" cmd=", c.lastCmd.FullName())
	} else {
		b = append(b, " cmd=NULL"...)
	}
	text(" user=", c.user)
	num(" redir=", c.tracking.redirection())
	num(" resp=", int64(resp))
	text(" lib-name=", c.libName)
	text(" lib-ver=", c.libVer)
	return append(b, '\n')
}

// appendFlags appends the letters of flags=, in Redis's order. Under mu.
func (c *client) appendFlags(b []byte) []byte {
	start := len(b)
	flag := func(on bool, letter byte) {
		if on {
			b = append(b, letter)
		}
	}
	flag(c.monitoring.Load(), 'O')
	flag(c.subs.any.Load(), 'P')
	flag(c.shown.multi >= 0, 'x')
	flag(c.shown.blocked, 'b')
	flag(c.tracking.on.Load(), 't')
	flag(c.watcher.Dirty(), 'd')
	flag(c.overUnix(), 'U')
	flag(c.noEvict, 'e')
	flag(c.shown.noTouch, 'T')
	if len(b) == start {
		b = append(b, 'N')
	}
	return b
}

// overUnix tells whether the client came through the unix socket.
func (c *client) overUnix() bool {
	_, ok := c.conn.LocalAddr().(*net.UnixAddr)
	return ok
}

// descriptor is the file descriptor of a connection, -1 if it is closed.
func descriptor(conn net.Conn) int64 {
	if c, ok := conn.(*netloop.Conn); ok {
		return int64(c.FD())
	}
	fd := int64(-1)
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			raw.Control(func(n uintptr) { fd = int64(n) })
		}
	}
	return fd
}

// bytesOf is the length of all arguments together.
func bytesOf(args [][]byte) int {
	n := 0
	for _, a := range args {
		n += len(a)
	}
	return n
}
