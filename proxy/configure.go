package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

// configure takes the directives over and follows their changes.
func (s *Server) configure() error {
	follow := map[string]func(){
		"maxmemory":                  func() { s.store.SetMaxMemory(s.cfg.Memory("maxmemory")) },
		"notify-keyspace-events":     func() { s.store.SetNotify(notifyClasses(s.cfg.KeyspaceEvents())) },
		"requirepass":                func() { s.auth.Store(newPassword(s.cfg.String("requirepass"))) },
		"busy-reply-threshold":       func() { s.engine.Busy.Store(s.cfg.Int("busy-reply-threshold") * int64(time.Millisecond)) },
		"proto-max-bulk-len":         func() { s.engine.MaxValue.Store(s.cfg.Memory("proto-max-bulk-len")) },
		"slowlog-log-slower-than":    s.watchSlow,
		"latency-monitor-threshold":  s.watchSlow,
		"transaction-max-memory":     func() { s.engine.MaxWeight.Store(s.cfg.Memory("transaction-max-memory")) },
		"client-query-memory-limit":  func() { s.maxQueries.Store(s.cfg.Memory("client-query-memory-limit")) },
		"client-query-buffer-limit":  func() { s.maxQuery.Store(s.cfg.Memory("client-query-buffer-limit")) },
		"client-output-buffer-limit": s.applyBufferLimits,
	}
	for name, apply := range follow {
		apply()
		s.cfg.OnChange(name, func(_, _ string) error { apply(); return nil })
	}
	for _, name := range []string{"bind", "port"} {
		s.cfg.OnChange(name, func(_, _ string) error { return s.relisten() })
	}
	s.cfg.OnChange("maxclients", s.followMaxClients)
	r, err := newRouter(s, s.cfg)
	if err != nil {
		return err
	}
	if r != nil {
		s.router.Store(r)
		s.engine.Owns = r.owns
	}
	return nil
}

// limits brings a client's input limits up to date.
func (s *Server) limits(c *client) {
	c.lim.MaxBulk = int(s.engine.MaxValue.Load())
	c.lim.MaxQuery = int(s.maxQuery.Load())
	c.lim.Authenticated = c.authed || s.auth.Load() == nil
}

func (s *Server) applyBufferLimits() {
	normal, _, pubsub := s.cfg.BufferLimits()
	s.bufferLimit.Store(&bufferLimits{normal, pubsub})
}

// notifyClasses are the bits of notify-keyspace-events' canonical text.
func notifyClasses(text string) uint32 {
	var classes uint32
	for _, ch := range text {
		switch ch {
		case 'A':
			classes |= store.NotifyGeneric | store.NotifyString | store.NotifyList | store.NotifySet | store.NotifyHash |
				store.NotifyZset | store.NotifyExpired | store.NotifyEvicted | store.NotifyStream | store.NotifyModule
		case 'K':
			classes |= store.NotifyKeyspace
		case 'E':
			classes |= store.NotifyKeyevent
		case 'g':
			classes |= store.NotifyGeneric
		case '$':
			classes |= store.NotifyString
		case 'l':
			classes |= store.NotifyList
		case 's':
			classes |= store.NotifySet
		case 'h':
			classes |= store.NotifyHash
		case 'z':
			classes |= store.NotifyZset
		case 'x':
			classes |= store.NotifyExpired
		case 'e':
			classes |= store.NotifyEvicted
		case 't':
			classes |= store.NotifyStream
		case 'd':
			classes |= store.NotifyModule
		case 'm':
			classes |= store.NotifyMiss
		case 'n':
			classes |= store.NotifyNew
		}
	}
	if classes&(store.NotifyKeyspace|store.NotifyKeyevent) == 0 {
		return 0 // without K or E nothing is ever sent
	}
	return classes
}

// showAddr is an address as CLIENT LIST shows it.
func showAddr(remote, local net.Addr) string {
	if _, ok := remote.(*net.UnixAddr); ok {
		return local.String() + ":0"
	}
	return remote.String()
}

// newRunID is 40 random hex digits.
func newRunID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// seconds is the clock that the proxy counts idleness and ages by, in Unix seconds:
// the store's, which no step of the wall clock moves.
func (s *Server) seconds() int64 { return s.clock.NowMilli() / 1000 }
