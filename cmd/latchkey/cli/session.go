package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidwall/resp"
)

var (
	// errInterrupted says that the operator pressed Ctrl-C while a command ran.
	errInterrupted = errors.New("interrupted")
	// errOutput says that standard output takes no more.
	errOutput = errors.New("cannot write to standard output")
)

// replyError is an error reply that -e turned into a failure.
type replyError struct{ text string }

func (e *replyError) Error() string { return e.text }

// connectError is a failure to connect, log in or select, with what could be
// done about it.
type connectError struct {
	err  error
	hint string
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// session is a connection and what the commands sent over it have changed.
// One goroutine uses it.
type session struct {
	opt   options
	out   *bufio.Writer
	err   io.Writer
	color bool // standard output is a terminal

	conn    *conn // nil while not connected
	db      int   // selected on conn
	wantDB  int   // selected after a reconnection
	tx      bool  // between MULTI and EXEC
	txDB    int   // db before MULTI, which a failed EXEC returns to
	watched bool  // between WATCH and EXEC

	interrupts <-chan os.Signal // Ctrl-C while a command runs; nil outside of the prompt
}

// drop closes the connection and forgets what belonged to it.
func (s *session) drop() {
	if s.conn != nil {
		s.conn.close()
	}
	s.conn, s.db, s.tx, s.watched = nil, 0, false, false
}

// complain prints an error and its hint behind what standard output has got.
func (s *session) complain(err error) {
	s.out.Flush()
	if reply, ok := err.(*replyError); ok { // from a pipe it comes wrapped with its line number
		fmt.Fprintln(s.err, reply.text)
		return
	}
	hint := ""
	if c, ok := errors.AsType[*connectError](err); ok {
		hint = c.hint
	}
	complain(s.err, err, hint)
}

// connect dials, logs in and selects the database. After an error there is no
// connection, unless keep is set and the server is there but would not take
// the password or the database: at a prompt the operator can try another.
func (s *session) connect(keep bool) error {
	s.drop()
	a := s.opt.address
	c, err := dial(a)
	if err != nil {
		return &connectError{err, a.hint(err)}
	}
	s.conn = c
	if s.opt.password != "" {
		login := []string{"AUTH", s.opt.password}
		if s.opt.user != "" {
			login = []string{"AUTH", s.opt.user, s.opt.password}
		}
		reply, err := c.call(login...)
		if err != nil {
			return s.lost(err)
		}
		// A server without passwords refuses one. It is no reason to stop:
		// the variable may be meant for another server.
		if text, failed := errorText(reply); failed && s.opt.user == "" && strings.Contains(text, "without any password configured") {
			fmt.Fprintf(s.err, "latchkey: hint: %s needs no password; the one given is not used\n", a)
		} else if failed {
			if !keep {
				s.drop()
			}
			return &connectError{err: fmt.Errorf("login at %s failed: %s", a, text)}
		}
	}
	if err := s.selectDB(); err != nil {
		if !keep {
			s.drop()
		}
		return err
	}
	return nil
}

// selectDB selects wantDB if another one is.
func (s *session) selectDB() error {
	if s.db == s.wantDB {
		return nil
	}
	reply, err := s.conn.call("SELECT", strconv.Itoa(s.wantDB))
	if err != nil {
		return s.lost(err)
	}
	if text, failed := errorText(reply); failed {
		hint := ""
		if strings.HasPrefix(text, "NOAUTH") {
			hint = "set LATCHKEY_AUTH, or use --askpass"
		}
		return &connectError{fmt.Errorf("cannot select database %d: %s", s.wantDB, text), hint}
	}
	s.db = s.wantDB
	return nil
}

// lost drops the connection after it failed and says so. What was sent last is
// not sent again: it may have run.
func (s *session) lost(err error) error {
	s.drop()
	switch {
	case errors.Is(err, errNotRESP2):
		return fmt.Errorf("%s: %w; the connection was closed", s.opt.address, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%s closed the connection before it had answered; whether the command ran is unknown", s.opt.address)
	}
	return fmt.Errorf("connection to %s lost, whether the command ran is unknown: %w", s.opt.address, cause(err))
}

// ready makes sure that there is a connection. One that the server has closed
// meanwhile is replaced, unless a transaction has ended with it.
func (s *session) ready() error {
	if s.conn != nil && !s.conn.stale() {
		return nil
	}
	again := s.conn != nil
	if again && (s.tx || s.watched) {
		s.drop()
		return fmt.Errorf("%s closed the connection, and MULTI or WATCH ended with it; nothing was sent", s.opt.address)
	}
	if err := s.connect(false); err != nil {
		return err
	}
	if again {
		fmt.Fprintf(s.err, "latchkey: %s had closed the connection; connected again\n", s.opt.address)
	}
	return nil
}

// run sends a command repeat times, for ever if it is negative, and prints the
// replies.
func (s *session) run(args []string, repeat int) error {
	if isHelp(args) {
		return s.help(args[1:])
	}
	if reason := unsupported(args); reason != "" {
		return errors.New(reason)
	}
	for i := 0; repeat < 0 || i < repeat; i++ {
		if i > 0 && s.opt.interval > 0 {
			if err := s.pause(s.opt.interval); err != nil {
				return err
			}
		}
		if err := s.ready(); err != nil {
			return err
		}
		stop := s.watch()
		err := s.do(args)
		if stop() {
			err = errInterrupted
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pause waits, or until Ctrl-C.
func (s *session) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.interrupts:
		return errInterrupted
	}
}

// watch closes the connection when the operator presses Ctrl-C, which ends the
// wait for a reply. stop ends the watch and reports whether that happened.
func (s *session) watch() (stop func() bool) {
	if s.interrupts == nil {
		return func() bool { return false }
	}
	var pressed atomic.Bool
	done, ended := make(chan struct{}), make(chan struct{})
	c := s.conn
	go func() {
		defer close(ended)
		select {
		case <-s.interrupts:
			pressed.Store(true)
			c.close()
		case <-done:
		}
	}()
	return func() bool {
		close(done)
		<-ended
		if pressed.Load() {
			s.drop()
		}
		return pressed.Load()
	}
}

// do sends a command and prints what comes back: one reply for most, several
// for the pub/sub commands, and whatever comes for MONITOR and SUBSCRIBE.
func (s *session) do(args []string) error {
	name := strings.ToLower(args[0])
	subscribes := name == "subscribe" || name == "psubscribe" || name == "ssubscribe"
	unsubscribes := name == "unsubscribe" || name == "punsubscribe" || name == "sunsubscribe"
	if subscribes && s.opt.layout.format != formatRaw && !s.tx {
		s.out.WriteString("Reading messages... (press Ctrl-C to quit)\n")
	}
	if err := s.conn.send(args); err != nil {
		return s.lost(err)
	}
	verbatim := isText(args)
	confirmations := max(1, len(args)-1) // that an unsubscribing command is answered with
	for {
		v, err := s.conn.receive()
		if err != nil {
			if name == "shutdown" && !errors.Is(err, errNotRESP2) {
				s.drop()
				return nil
			}
			return s.lost(err)
		}
		if err := s.print(v, verbatim); err != nil {
			return err
		}
		switch {
		case name == "monitor" && v.Type() == resp.SimpleString && v.String() != "QUEUED":
			continue
		case subscribes && v.Type() == resp.Array:
			continue
		case unsubscribes && v.Type() == resp.Array:
			if confirmations--; confirmations > 0 {
				continue
			}
		}
		return s.track(name, args, v)
	}
}

// print writes a reply to standard output at once, so that a pipe sees it when
// it comes. With -e an error reply is not printed but returned as an error.
func (s *session) print(v resp.Value, verbatim bool) error {
	if text, failed := errorText(v); failed && s.opt.failOnError {
		return &replyError{text}
	}
	s.out.Write(s.opt.layout.reply(nil, v, verbatim))
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errOutput, cause(err))
	}
	return nil
}

// track notes what a command has changed about the connection.
func (s *session) track(name string, args []string, v resp.Value) error {
	_, failed := errorText(v)
	switch {
	case name == "exec" && s.tx && (failed || v.IsNull()), name == "discard" && s.tx && !failed:
		s.tx, s.watched = false, false
		s.db, s.wantDB = s.txDB, s.txDB
	case name == "exec" && s.tx:
		s.tx, s.watched = false, false
	case name == "auth" && !failed && !s.tx:
		return s.selectDB() // which was refused before
	case failed:
	case name == "select" && len(args) == 2:
		if db, err := strconv.Atoi(args[1]); err == nil {
			s.db, s.wantDB = db, db
		}
	case name == "multi" && !s.tx:
		s.tx, s.txDB = true, s.db
	case name == "watch" && !s.tx:
		s.watched = true
	case name == "unwatch" && !s.tx:
		s.watched = false
	case name == "reset":
		s.tx, s.watched, s.db, s.wantDB = false, false, 0, 0
	}
	return nil
}

// errorText returns the text of an error reply.
func errorText(v resp.Value) (string, bool) {
	return string(v.Bytes()), v.Type() == resp.Error
}

// unsupported returns why a command cannot be used with this client, or "".
func unsupported(args []string) string {
	second := ""
	if len(args) > 1 {
		second = strings.ToLower(args[1])
	}
	switch strings.ToLower(args[0]) {
	case "hello":
		if second == "3" {
			return "HELLO 3 would switch to RESP3, and this client speaks RESP2; HELLO 2 is fine"
		}
	case "sync", "psync":
		return "SYNC and PSYNC turn the connection into a replication stream, which this client cannot show"
	case "client":
		if second == "reply" && len(args) == 3 && !strings.EqualFold(args[2], "on") {
			return "CLIENT REPLY OFF and SKIP would leave this client waiting for a reply that never comes"
		}
	}
	return ""
}

// isText reports whether a command's reply is a text made for reading, which
// redis-cli prints unquoted.
func isText(args []string) bool {
	name, second := strings.ToLower(args[0]), ""
	if len(args) > 1 {
		second = strings.ToLower(args[1])
	}
	switch name {
	case "info", "lolwut":
		return true
	case "debug":
		return second == "htstats" || second == "htstats-key" || second == "client-eviction"
	case "memory":
		return second == "malloc-stats" || second == "doctor"
	case "cluster":
		return len(args) == 2 && (second == "nodes" || second == "info")
	case "client":
		return second == "list" || second == "info"
	case "latency":
		return len(args) == 3 && second == "graph" || len(args) == 2 && second == "doctor"
	}
	return false
}
