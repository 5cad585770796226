package proxy

import (
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// pause is CLIENT PAUSE.
type pause struct{ active atomic.Bool }

// hold keeps a client's command back for as long as the pause concerns it.
func (p *pause) hold(*client, *command.Spec) {}
