package proxy

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/proxy/upstream"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Options are what a Server is made of.
type Options struct {
	// Config are the directives; default config.New().
	Config *config.Config
	// Families are the tables of the rooms beside the proxy's own.
	Families [][]*command.Spec
	// Log; default slog.Default().
	Log *slog.Logger
	// EffectLog receives the effects of commits; default in memory.
	EffectLog store.EffectLog
	// Clock of the store; default the system's.
	Clock store.Clock
	// Modules are the loaded modules, for HELLO and INFO; default none.
	Modules func() []Module
	// Scripts are the counts of scripts, for INFO; default none.
	Scripts func() ScriptStats
	// ScriptTally are the counts by script, for INFO scriptstats, and ResetScripts
	// begins them and those of Scripts anew; default none.
	ScriptTally  func() []ScriptCounts
	ResetScripts func()
	// Version is what `latchkey_version` of INFO says.
	Version string
	// Shutdown is called when a client has asked for it (SHUTDOWN); default
	// nothing happens.
	Shutdown func()
}

// Server is listeners, their clients and what these share. Make it with New,
// start it with Listen, end it with Close.
type Server struct {
	cfg    *config.Config
	log    *slog.Logger
	opt    Options
	engine *command.Engine
	store  *store.Store
	clock  store.Clock
	hub    *hub
	router atomic.Pointer[router]

	clients registry
	stats   stats
	slowlog slowlog
	latency latency
	pause   pause
	monitor monitors
	auth    atomic.Pointer[password]

	browserWarned atomic.Int64 // Unix s of the last warning of http.go

	expiryOff   atomic.Bool  // DEBUG SET-ACTIVE-EXPIRE 0
	queryMemory atomic.Int64 // bytes in all clients' query buffers
	maxQueries  atomic.Int64
	maxQuery    atomic.Int64 // client-query-buffer-limit
	bufferLimit atomic.Pointer[bufferLimits]
	maxReply    atomic.Int64 // maxReply, lower in tests

	runID   string
	started time.Time

	mu          sync.Mutex
	listeners   []net.Listener
	tcp         map[string]net.Listener // those of bind and port, by address; nil before Listen
	relistening sync.Mutex              // one change of tcp at a time
	closing     bool
	serving     sync.WaitGroup // accept loops and clients
	loops       loops
	cron        sync.WaitGroup
	done        chan struct{}
}

// New makes a server. It does not listen yet.
func New(o Options) (*Server, error) {
	if o.Config == nil {
		o.Config = config.New()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = store.NewSystemClock()
	}
	if o.EffectLog == nil {
		o.EffectLog = &store.MemoryLog{}
	}
	s := &Server{cfg: o.Config, log: o.Log, opt: o, clock: o.Clock, started: time.Now(), done: make(chan struct{}), runID: newRunID()}
	s.maxReply.Store(maxReply)
	s.hub = newHub(s)
	st, err := store.New(store.Options{Databases: int(o.Config.Int("databases")), Clock: o.Clock, Log: o.EffectLog, Sink: s.hub})
	if err != nil {
		return nil, err
	}
	s.store = st
	table, err := command.NewTable(append([][]*command.Spec{
		connectionCommands(), clientCommands(), transactionCommands(), pubsubCommands(), serverCommands(),
		configCommands(), introspectionCommands(), clusterCommands(),
	}, o.Families...)...)
	if err != nil {
		return nil, err
	}
	for i, line := range s.cfg.Lines("rename-command") {
		if err := table.Rename(line[0], line[1]); err != nil {
			return nil, s.cfg.LineError("rename-command", i, err.Error(), "rename-command takes "+s.cfg.Lookup("rename-command").Takes())
		}
	}
	s.engine = &command.Engine{
		Table: table, Store: st, Log: o.Log,
		Slow: s.slow, Monitor: s.monitor.feed, Hold: s.holdRun, OnError: s.stats.errorReply, Host: s,
	}
	s.clients.init()
	s.stats.init(s)
	if err := s.configure(); err != nil {
		return nil, err
	}
	return s, nil
}

// Engine runs commands for those who are no client of the proxy: plugins'
// timers, tests.
func (s *Server) Engine() *command.Engine { return s.engine }

// Store is the server's keyspace.
func (s *Server) Store() *store.Store { return s.store }

// Config is the server's directives.
func (s *Server) Config() *config.Config { return s.cfg }

// Serve accepts clients from l, which the server closes, in a goroutine of its
// own.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		l.Close()
		return
	}
	s.listeners = append(s.listeners, l)
	s.startLoops()
	s.serving.Go(func() { s.accept(l) })
}

// Addrs are the addresses that are listened on.
func (s *Server) Addrs() []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		out[i] = l.Addr()
	}
	return out
}

func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if s.isClosing() || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, say: others go on, and so do we.
			s.log.Warn("cannot accept a client", "err", err)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		s.stats.connections.Add(1)
		s.admit(conn)
	}
}

// admit starts a client, or turns it away with a word.
func (s *Server) admit(conn net.Conn) {
	refuse := func(msg string) {
		s.stats.rejected.Add(1)
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		conn.Write([]byte("-" + msg + "\r\n"))
		conn.Close()
	}
	if s.clients.len() >= int(s.cfg.Int("maxclients")) {
		refuse("ERR max number of clients reached")
		return
	}
	if !s.allowed(conn.RemoteAddr()) {
		refuse("DENIED latchkey is running in protected mode because protected mode is enabled and no password is set for the default user. " +
			"In this mode connections are only accepted from the loopback interface. " +
			"To connect from other computers either disable protected mode with CONFIG SET protected-mode no from the loopback interface, " +
			"or set a password with requirepass and authenticate.")
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if secs := s.cfg.Int("tcp-keepalive"); secs > 0 {
			tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Duration(secs) * time.Second, Interval: time.Duration(max(1, secs/3)) * time.Second, Count: 3})
		} else {
			tcp.SetKeepAlive(false)
		}
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		conn.Close()
		return
	}
	c := newClient(s, s.loops.take(conn))
	s.serving.Add(1)
	s.mu.Unlock()
	if c.loop != nil {
		c.loop.Start(c)
		return
	}
	go func() {
		defer s.serving.Done()
		c.serve()
	}()
}

// allowed is protected mode: without a password only the same machine may come.
func (s *Server) allowed(addr net.Addr) bool {
	if !s.cfg.Bool("protected-mode") || s.auth.Load() != nil {
		return true
	}
	return isLoopback(addr)
}

// isLoopback tells whether an address is this machine's: loopback or a unix
// socket.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Close stops listening, lets each client finish the command that it is in,
// but no longer than drain, and ends all connections.
func (s *Server) Close(drain time.Duration) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	for _, l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.clients.each(func(c *client) { c.drain() })
	s.wakePaused()
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		s.store.Close()
		s.clients.each(func(c *client) { c.kill() })
		<-ended
	}
	s.loops.close()
	close(s.done)
	s.cron.Wait()
	s.store.Close()
	if r := s.router.Load(); r != nil {
		r.close()
	}
	return nil
}

// everySoOften does what has to be done ten times a second.
func (s *Server) everySoOften() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		if c, ok := s.clock.(*store.SystemClock); ok {
			c.Correct()
		}
		s.store.Tick()
		s.store.PeakMemory()
		if paused := s.endPauseInTime(); !paused && !s.expiryOff.Load() {
			s.expireCycle()
		}
		s.stats.sample()
		s.loops.balance(time.Now())
		if n%10 == 0 {
			s.closeIdle()
		}
	}
}

// closeIdle ends clients that have been silent for longer than timeout.
func (s *Server) closeIdle() {
	secs := s.cfg.Int("timeout")
	if secs <= 0 {
		return
	}
	now := s.seconds()
	s.clients.each(func(c *client) {
		if now-c.lastUsed.Load() > secs && !c.mayBeSilent() {
			c.kill()
		}
	})
}

func (s *Server) upstreamStats() (upstream.Stats, bool) {
	if r := s.router.Load(); r != nil {
		return r.pool.Snapshot(), true
	}
	return upstream.Stats{}, false
}
