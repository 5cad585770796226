package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

// replyModules is the list of modules in HELLO.
func (s *Server) replyModules(c *command.Call) { c.Reply.Array(0) }
