package resp_test

import (
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
)

var _ command.Reply = (*resp.Writer)(nil)
