//go:build linux && (amd64 || arm64)

package netloop

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxEvents is how many events are fetched at once.
const maxEvents = 256

// What a socket is watched for, edges only: the kernel tells once that there is
// something, so nothing has to be switched off and on while a connection is away.
const watched = syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | 1<<31 // EPOLLET, negative in package syscall

const hangUp = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR

// Loop serves connections. What is not said to be for any goroutine belongs to
// the holder of the role.
type Loop struct {
	epoll  int
	wakeup int // an eventfd

	turns   atomic.Uint64 // odd during a turn; see role_linux.go
	current *Conn         // whose turn it is
	watched atomic.Bool   // the watch looks at turns
	watch   chan struct{}

	conns   []*Conn // by descriptor
	queue   []*Conn // whose turn comes in this round, from place at on
	at      int
	next    []*Conn // in the next round
	answers []*Conn // who has answered in this round, from place answer on
	answer  int
	events  [maxEvents]syscall.EpollEvent
	keep    bool // see wait_linux.go
	brisk   bool

	length atomic.Int64 // any goroutine: connections
	waited atomic.Int64 // any goroutine: ns in epoll_wait that have ended
	since  atomic.Int64 // any goroutine: when the wait that goes on began, 0 without
	asleep atomic.Bool  // any goroutine: the role's holder waits, or is about to
	posted atomic.Bool  // any goroutine: inbox is not empty
	mu     sync.Mutex
	inbox  []letter // any goroutine, under mu
	spare  []letter

	closing atomic.Bool
	stop    chan struct{}
	running sync.WaitGroup // the role's holders, those who have lost it, the watch
}

// letter tells the loop something, mostly about a connection.
type letter struct {
	c    *Conn
	what what
	n    int   // of give
	to   *Loop // of give
}

type what uint8

const (
	join what = iota // is new
	back             // returns from being away
	poke             // wants a turn
	gone             // has ended while it was away
	give             // n connections move to another loop
)

// New starts a loop. With keep it may keep its processor in short waits, for
// which there must be as many again (GOMAXPROCS) that others can have.
func New(keep bool) (*Loop, error) {
	l, err := open(keep)
	if err != nil {
		return nil, err
	}
	l.running.Go(l.guard)
	l.running.Go(l.run)
	return l, nil
}

// open makes a loop that nobody runs.
func open(keep bool) (*Loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	fd, _, errno := syscall.RawSyscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		syscall.Close(epoll)
		return nil, os.NewSyscallError("eventfd2", errno)
	}
	l := &Loop{epoll: epoll, wakeup: int(fd), watch: make(chan struct{}, 1), stop: make(chan struct{}), keep: keep}
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(l.wakeup)}
	if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, l.wakeup, &ev); err != nil {
		l.release()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return l, nil
}

// Close ends the loop. All its connections must have ended.
func (l *Loop) Close() {
	l.closing.Store(true)
	l.wake()
	close(l.stop)
	l.running.Wait()
	l.takeInbox()
	l.release()
}

// release gives the loop's own descriptors back.
func (l *Loop) release() {
	syscall.Close(l.epoll)
	syscall.Close(l.wakeup)
}

// Take makes a Conn of an accepted TCP or Unix connection, which it uses up: on
// success conn is closed, its socket lives on. The Conn is served from Start on.
func (l *Loop) Take(conn net.Conn) (*Conn, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil, ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	var errno syscall.Errno
	if err := raw.Control(func(have uintptr) {
		fd, _, errno = syscall.RawSyscall(syscall.SYS_FCNTL, have, syscall.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, err
	}
	if errno != 0 {
		return nil, os.NewSyscallError("fcntl", errno)
	}
	c := &Conn{fd: int(fd), remote: conn.RemoteAddr(), local: conn.LocalAddr()}
	c.loop.Store(l)
	conn.Close()
	return c, nil
}

// run is a round after the other, for as long as the goroutine has the role.
func (l *Loop) run() {
	for {
		for l.at < len(l.queue) {
			c := l.queue[l.at]
			l.queue[l.at] = nil
			l.at++
			c.queued = false
			if !c.gone && !l.turn(c, false) {
				return
			}
		}
		l.queue, l.at = l.queue[:0], 0
		for l.answer < len(l.answers) {
			c := l.answers[l.answer]
			l.answers[l.answer] = nil
			l.answer++
			if !l.turn(c, true) {
				return
			}
		}
		l.answers, l.answer = l.answers[:0], 0
		if l.closing.Load() {
			return
		}
		l.poll()
		l.takeInbox()
		l.queue, l.next = l.next, l.queue
	}
}

// poll fetches events, and waits for some if there is nothing else to do.
func (l *Loop) poll() {
	var n int
	var errno syscall.Errno
	wait := len(l.next) == 0
	if wait {
		l.asleep.Store(true)
		wait = !l.posted.Load() && !l.closing.Load()
	}
	if wait {
		began := now()
		l.since.Store(began)
		n, errno = l.wait()
		l.since.Store(0)
		took := now() - began
		l.waited.Add(took)
		l.brisk = l.keep && took < brisk
	} else {
		n, errno = l.fetch(0)
	}
	l.asleep.Store(false)
	if errno != 0 {
		return // interrupted
	}
	for i := range l.events[:n] {
		ev := &l.events[i]
		if int(ev.Fd) == l.wakeup {
			var count [8]byte
			syscall.Read(l.wakeup, count[:])
			continue
		}
		if c := l.conns[ev.Fd]; c != nil {
			c.happened(ev.Events)
		}
	}
}

// happened takes an event. One who is away is told, the others get a turn.
func (c *Conn) happened(events uint32) {
	if events&hangUp != 0 {
		c.hungUp.Store(true)
	}
	if events&syscall.EPOLLOUT != 0 {
		c.wr.signal()
	}
	if events&^uint32(syscall.EPOLLOUT) == 0 {
		return
	}
	c.readable.Store(true)
	if c.away {
		c.rd.signal()
		return
	}
	c.loop.Load().enqueue(c)
}

func (l *Loop) enqueue(c *Conn) {
	if !c.queued {
		c.queued = true
		l.next = append(l.next, c)
	}
}

// post leaves a letter. Any goroutine may call it.
func (l *Loop) post(m letter) {
	l.mu.Lock()
	l.inbox = append(l.inbox, m)
	l.mu.Unlock()
	l.posted.Store(true)
	if l.asleep.CompareAndSwap(true, false) {
		l.wake()
	}
}

func (l *Loop) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	syscall.Write(l.wakeup, one[:])
}

func (l *Loop) takeInbox() {
	if !l.posted.Load() {
		return
	}
	l.posted.Store(false)
	l.mu.Lock()
	letters := l.inbox
	l.inbox, l.spare = l.spare[:0], nil
	l.mu.Unlock()
	for i, m := range letters {
		letters[i] = letter{}
		c := m.c
		switch m.what {
		case join:
			l.add(c)
			l.enqueue(c)
		case back:
			c.away = false
			l.enqueue(c)
		case poke:
			if now := c.loop.Load(); now != l {
				now.post(m)
			} else if !c.away && !c.gone && c.joined {
				l.enqueue(c)
			}
		case gone:
			l.drop(c)
		case give:
			l.give(m.n, m.to)
		}
	}
	l.spare = letters
}

// add has the kernel watch a new connection.
func (l *Loop) add(c *Conn) {
	c.joined = true
	l.length.Add(1)
	if c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*Conn, c.fd+1+len(l.conns)/2-len(l.conns))...)
	}
	l.conns[c.fd] = c
	ev := syscall.EpollEvent{Events: watched, Fd: int32(c.fd)}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, c.fd, &ev); err != nil {
		c.Close() // its turn will find it so
	}
}

// drop closes the socket of one who has ended.
func (l *Loop) drop(c *Conn) {
	c.gone = true
	l.length.Add(-1)
	l.conns[c.fd] = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead.Store(true)
	syscall.Close(c.fd)
	c.fd = -1
}
