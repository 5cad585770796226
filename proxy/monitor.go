package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

// monitors are the clients in MONITOR.
type monitors struct{}

func (m *monitors) feed(*command.Call) {}

func (m *monitors) leave(*client) {}
