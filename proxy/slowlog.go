package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

type slowlog struct{}

type latency struct{}

func (s *Server) slow(*command.Call, int64) {}
