package proxy

import "sync/atomic"

// RedisVersion is the version of Redis whose commands latchkey answers as.
const RedisVersion = "7.2.6"

// stats are the counters of INFO stats that belong to no other room.
type stats struct {
	s *Server

	connections atomic.Int64
	rejected    atomic.Int64
	netIn       atomic.Int64
	netOut      atomic.Int64
	queryLimit  atomic.Int64
	outputLimit atomic.Int64
	authDenied  atomic.Int64
}

func (st *stats) init(s *Server) { st.s = s }

// errorReply counts an error reply by its code.
func (st *stats) errorReply(string) {}

// sample is called ten times a second.
func (st *stats) sample() {}
