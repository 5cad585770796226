package proxy

import (
	"strings"
	"time"
)

// A browser can be made to send commands: an HTTP request is lines, and a line is an
// inline command. Its first words cannot be avoided by who forges it, so as in Redis
// they end the connection without a reply.

// spokenByBrowsers tells whether a command's name begins an HTTP request that can carry
// a body, or is one of its headers.
func spokenByBrowsers(name []byte) bool {
	return strings.EqualFold(string(name), "post") || strings.EqualFold(string(name), "host:")
}

// warnOfBrowsers says so in the log, at most once a minute.
func (c *client) warnOfBrowsers() {
	now := time.Now().Unix()
	last := c.s.browserWarned.Load()
	if now-last < 60 || !c.s.browserWarned.CompareAndSwap(last, now) {
		return
	}
	c.s.log.Warn("possible security attack: a client sent POST or Host: as a command, "+
		"as a web page does that makes a browser send commands; the connection was closed", "addr", c.Addr())
}
