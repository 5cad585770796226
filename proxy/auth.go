package proxy

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// password is requirepass, kept as a digest so that comparing takes the same
// time whatever was sent.
type password struct{ digest [sha256.Size]byte }

func newPassword(text string) *password {
	if text == "" {
		return nil
	}
	return &password{sha256.Sum256([]byte(text))}
}

func (p *password) matches(given []byte) bool {
	digest := sha256.Sum256(given)
	return subtle.ConstantTimeCompare(digest[:], p.digest[:]) == 1
}

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// authenticate lets the client in as a user, or says why not. There is one
// user, default.
func (c *client) authenticate(user string, given []byte) (string, bool) {
	p := c.s.auth.Load()
	if user != "default" || p != nil && !p.matches(given) {
		c.s.stats.authDenied.Add(1)
		return errWrongPass, false
	}
	c.mu.Lock()
	c.user = "default"
	c.mu.Unlock()
	c.authed = true
	c.lim.Authenticated = true
	return "", true
}

// mustAuth tells whether the client still owes its AUTH. A password that was
// removed meanwhile lets it in.
func (c *client) mustAuth() bool {
	if c.s.auth.Load() == nil {
		c.authed = true
		c.lim.Authenticated = true
		return false
	}
	return true
}

// asClient is the client that a command runs for.
func asClient(c *command.Call) *client { return c.S.Client.(*client) }

// asServer is the server that a command runs on.
func asServer(c *command.Call) *Server { return c.E.Host.(*Server) }
