package transcript

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	replyTimeout = 5 * time.Second        // for a reply that must come
	quietTime    = 100 * time.Millisecond // for a frame that must not
	closeTimeout = time.Second            // for the server to close its side
)

// conn is one client connection of a section.
type conn struct {
	nc     net.Conn
	r      *bufio.Reader
	unread []Reply // messages that came while a reply was awaited

	subscribed map[string]map[string]bool // by "", "p" and "s": the channels
	everSub    bool
	broken     bool
	silent     bool // a reply did not come: the next ones are not waited for as long
}

func dialConn(ctx context.Context, target Target, proto int) (*conn, error) {
	nc, err := target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, r: bufio.NewReader(nc)}
	c.forget()
	if proto == 3 {
		reply, err := c.do("HELLO", "3")
		if err == nil && reply.Kind == Error {
			err = fmt.Errorf("HELLO 3: %s", reply.Text)
		}
		if err != nil {
			nc.Close()
			return nil, err
		}
	}
	return c, nil
}

// close ends the connection and waits until the server has ended it too, so that
// what the next section sees (subscribers, watched keys, CLIENT LIST) does not
// depend on when the server notices.
func (c *conn) close() {
	defer c.nc.Close()
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(closeTimeout))
	io.Copy(io.Discard, c.nc)
}

func (c *conn) forget() {
	c.subscribed = map[string]map[string]bool{"": {}, "p": {}, "s": {}}
}

// do sends a command and reads its reply.
func (c *conn) do(args ...string) (Reply, error) {
	if err := c.send(Encode(args)); err != nil {
		return Reply{}, err
	}
	return c.reply(args)
}

func (c *conn) send(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := c.nc.Write(b)
	return err
}

// Encode writes a command as an array of bulk strings.
func Encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n", len(a))
		b = append(append(b, a...), "\r\n"...)
	}
	return b
}

// reply reads the reply to args, and puts what was not asked for aside.
func (c *conn) reply(args []string) (Reply, error) {
	for {
		c.nc.SetReadDeadline(time.Now().Add(c.patience()))
		r, err := ReadReply(c.r)
		if err != nil {
			return r, err
		}
		if c.isMessage(r, args) {
			c.unread = append(c.unread, r)
			continue
		}
		c.note(r)
		return r, nil
	}
}

// patience is how long to wait for a reply. A server that lacks a feature shall
// not cost the full time again for each line that depends on it.
func (c *conn) patience() time.Duration {
	if c.silent {
		return quietTime
	}
	return replyTimeout
}

// isMessage reports whether r was pushed, rather than being the reply to args.
func (c *conn) isMessage(r Reply, args []string) bool {
	if len(r.Elems) == 0 {
		return false
	}
	kind := r.Elems[0].Text
	switch r.Kind {
	case Push:
		return len(args) == 0 || !strings.EqualFold(kind, args[0])
	case Array:
		return c.everSub && r.Elems[0].Kind == Bulk && len(r.Elems) >= 3 &&
			(kind == "message" || kind == "pmessage" || kind == "smessage")
	}
	return false
}

// note keeps account of the channels the connection listens to.
func (c *conn) note(r Reply) {
	if r.Kind != Array && r.Kind != Push || len(r.Elems) == 0 {
		return
	}
	if len(r.Elems) != 3 || r.Elems[0].Kind != Bulk || r.Elems[2].Kind != Int {
		for _, e := range r.Elems {
			c.note(e) // EXEC's
		}
		return
	}
	verb, channel := r.Elems[0].Text, r.Elems[1].Text
	for _, prefix := range []string{"", "p", "s"} {
		switch verb {
		case prefix + "subscribe":
			c.subscribed[prefix][channel] = true
			c.everSub = true
		case prefix + "unsubscribe":
			delete(c.subscribed[prefix], channel)
		}
	}
}

// replyCount is the number of frames that answer args when the first of them is
// one of SUBSCRIBE's family: one a channel.
func (c *conn) replyCount(args []string) int {
	if len(args) == 0 {
		return 1
	}
	verb := strings.ToLower(args[0])
	prefix, ok := strings.CutSuffix(verb, "unsubscribe")
	if ok && len(args) == 1 && c.subscribed[prefix] != nil {
		return max(1, len(c.subscribed[prefix]))
	}
	if strings.HasSuffix(verb, "subscribe") && len(args) > 1 {
		return len(args) - 1
	}
	return 1
}

// replies reads all the frames that answer args.
func (c *conn) replies(args []string) []Reply {
	n := c.replyCount(args)
	var out []Reply
	for range n {
		r, err := c.reply(args)
		if err != nil {
			return append(out, c.failed(err))
		}
		out = append(out, r)
		if !r.Kind.isAggregate() {
			break // an error, or QUEUED: it stands for all of them
		}
	}
	if len(args) > 0 && strings.EqualFold(args[0], "RESET") {
		c.forget()
	}
	return out
}

// read returns one frame that was not asked for.
func (c *conn) read(wait time.Duration) Reply {
	if len(c.unread) > 0 {
		r := c.unread[0]
		c.unread = c.unread[1:]
		return r
	}
	c.nc.SetReadDeadline(time.Now().Add(min(wait, c.patience())))
	r, err := ReadReply(c.r)
	if err != nil {
		return c.failed(err)
	}
	c.note(r)
	return r
}

// failed turns what went wrong with the connection into what a transcript says.
func (c *conn) failed(err error) Reply {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.silent = true
		return Reply{Kind: noReply}
	}
	c.broken = true
	if isClosed(err) {
		return Reply{Kind: closed}
	}
	return Reply{Kind: Error, Text: "the player cannot read this reply: " + err.Error()}
}

func isClosed(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &op)
}
