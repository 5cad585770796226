package transcript

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Target is a server to replay transcripts on.
type Target struct {
	// Dial opens a connection: over TCP ([TCP]), or within the process.
	Dial func(context.Context) (net.Conn, error)

	// Later says that the server knows more than redis-server 7.0: sections
	// marked "only" are played on it too.
	Later bool
}

// TCP is a target that listens on addr, host:port.
func TCP(addr string) Target {
	return Target{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}}
}

// Result is what came of replaying one file in one protocol.
type Result struct {
	Commands    int            // sent, each command of a pipeline counted
	Equal       int            // of Commands, those with the expected replies
	Skipped     map[string]int // commands of skipped sections, by the reason
	Differences []Difference
}

// Difference is a reply that is not the expected one.
type Difference struct {
	Path    string
	Section string
	Line    int
	Proto   int    // 2 or 3
	Command string // as it stands in the file; the last line of a pipeline
	Want    []string
	Got     []string
}

// String shows where the difference is, and both replies, one below the other.
func (d Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: RESP%d: %s\n", d.Path, d.Line, d.Proto, d.Command)
	for _, line := range d.Want {
		fmt.Fprintf(&b, "  want  %s\n", line)
	}
	for _, line := range d.Got {
		fmt.Fprintf(&b, "  have  %s\n", line)
	}
	return b.String()
}

// Play replays f on the target in RESP2 (proto 2) or RESP3 (3). Differences are
// in the result; an error is returned when the replay itself is impossible: no
// connection, no reply to the player's own commands.
func Play(ctx context.Context, target Target, f *File, proto int) (Result, error) {
	var res Result
	err := replay(ctx, target, f, proto, &res, func(sec *Section, s *step, got []Reply, ok bool) {
		if ok {
			return
		}
		d := Difference{Path: f.Path, Section: sec.Name, Line: s.line, Proto: proto, Command: s.source[len(s.source)-1]}
		for _, w := range s.want(proto) {
			d.Want = append(d.Want, w.lines...)
		}
		for _, g := range got {
			d.Got = append(d.Got, g.Lines()...)
		}
		res.Differences = append(res.Differences, d)
	})
	return res, err
}

// Verify plays the files at paths, and returns all differences.
func Verify(ctx context.Context, target Target, paths []string, proto int) ([]Difference, error) {
	var all []Difference
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		res, err := Play(ctx, target, f, proto)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, res.Differences...)
	}
	return all, nil
}

// replay plays all sections and shows each step's replies to seen.
func replay(ctx context.Context, target Target, f *File, proto int, res *Result, seen func(*Section, *step, []Reply, bool)) error {
	p := &player{ctx: ctx, target: target, proto: proto}
	defer p.close()
	res.Skipped = map[string]int{}
	for _, sec := range f.Sections {
		reason, err := p.skips(sec)
		if err != nil {
			return err
		}
		if reason != "" {
			res.Skipped[reason] += sec.commands()
			continue
		}
		if err := p.play(sec, res, seen); err != nil {
			return fmt.Errorf("%s:%d: section %q: %w", f.Path, sec.Line, sec.Name, err)
		}
	}
	return nil
}

// Commands is the number of commands in the file; those of sections which are
// played in one protocol only count as the others do.
func (f *File) Commands() int {
	n := 0
	for _, s := range f.Sections {
		n += s.commands()
	}
	return n
}

func (sec *Section) commands() int {
	n := 0
	for _, it := range sec.items {
		if it.step != nil {
			n += it.step.commands()
		}
	}
	return n
}

func (s *step) commands() int {
	switch s.op {
	case opCommand:
		return len(s.cmds)
	case opRaw:
		return 1
	}
	return 0
}

// player plays sections, one after the other, on one target in one protocol.
type player struct {
	ctx    context.Context
	target Target
	proto  int

	admin  *conn // makes the server empty, and asks what it can
	conns  map[string]*conn
	vars   map[string]string
	config [][2]string // what CONFIG SET changed in this section, and was before
}

func (p *player) close() {
	p.closeConns()
	if p.admin != nil {
		p.admin.nc.Close()
	}
}

func (p *player) closeConns() {
	for _, c := range p.conns {
		c.close()
	}
	p.conns = map[string]*conn{}
}

// ask sends one of the player's own commands. The connection is opened again
// when the section before has had it killed.
func (p *player) ask(args ...string) (Reply, error) {
	var err error
	for range 2 {
		if p.admin == nil {
			if p.admin, err = dialConn(p.ctx, p.target, 2); err != nil {
				return Reply{}, err
			}
		}
		var r Reply
		if r, err = p.admin.do(args...); err == nil {
			return r, nil
		}
		p.admin.nc.Close()
		p.admin = nil
	}
	return Reply{}, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
}

// skips says why the section is not played, or nothing when it is.
func (p *player) skips(sec *Section) (string, error) {
	if sec.proto != 0 && sec.proto != p.proto {
		return fmt.Sprintf("RESP%d only", sec.proto), nil
	}
	if sec.only != "" && !p.target.Later {
		return "later than 7.0", nil
	}
	for _, name := range sec.needs {
		r, err := p.ask("COMMAND", "INFO", name)
		if err != nil {
			return "", err
		}
		if r.Kind == Array && len(r.Elems) == 1 && len(r.Elems[0].Elems) == 0 {
			return "needs " + name, nil
		}
	}
	return "", nil
}

// empty brings the server back to where a section begins.
func (p *player) empty() error {
	for _, c := range slices.Backward(p.config) {
		r, err := p.ask("CONFIG", "GET", c[0])
		if err != nil {
			return err
		}
		if len(r.Elems) == 2 && r.Elems[1].Text == c[1] {
			continue // the section's CONFIG SET was refused, or restored it
		}
		if r, err = p.ask("CONFIG", "SET", c[0], c[1]); err != nil {
			return err
		}
		if r.Kind == Error {
			return fmt.Errorf("CONFIG SET %s %q, to restore it: %s", c[0], c[1], r.Text)
		}
	}
	p.config = nil
	for _, cmd := range []string{"CLIENT UNPAUSE", "FLUSHALL", "SCRIPT FLUSH", "SLOWLOG RESET", "LATENCY RESET", "CONFIG RESETSTAT"} {
		r, err := p.ask(strings.Fields(cmd)...)
		if err != nil {
			return err
		}
		if r.Kind == Error && cmd == "FLUSHALL" {
			return fmt.Errorf("%s: %s", cmd, r.Text)
		}
		// A server that lacks one of the others shows it in the sections
		// that depend on it.
	}
	return nil
}

func (p *player) play(sec *Section, res *Result, seen func(*Section, *step, []Reply, bool)) error {
	if err := p.empty(); err != nil {
		return err
	}
	p.conns = map[string]*conn{}
	p.vars = map[string]string{}
	defer p.closeConns()
	for _, it := range sec.items {
		if it.step == nil {
			continue
		}
		got, err := p.step(it.step)
		if err != nil {
			return fmt.Errorf("line %d: %w", it.step.line, err)
		}
		if !it.step.replies() {
			continue
		}
		ok := p.expected(it.step, got)
		res.Commands += it.step.commands()
		if ok {
			res.Equal += it.step.commands()
		}
		seen(sec, it.step, got, ok)
	}
	p.unread(sec, seen)
	p.closeConns()
	return p.empty()
}

func (p *player) expected(s *step, got []Reply) bool {
	want := s.want(p.proto)
	ok := len(want) == len(got)
	for i := range min(len(want), len(got)) {
		if !want[i].pattern.matches(got[i], p.vars) {
			ok = false
		}
	}
	return ok
}

// unread reports messages that the section did not read.
func (p *player) unread(sec *Section, seen func(*Section, *step, []Reply, bool)) {
	for name, c := range p.conns {
		if c.everSub && !c.broken {
			// Its reply comes behind whatever was on its way.
			if _, err := c.do("PING"); err != nil {
				continue // in a transaction, blocked or muted: the transcript's choice
			}
		}
		if len(c.unread) > 0 {
			s := &step{line: sec.Line, conn: name, op: opRead, source: []string{"(end of section) @" + name + " .read"}}
			seen(sec, s, c.unread, false)
		}
	}
}

func (p *player) conn(name string) (*conn, error) {
	if c := p.conns[name]; c != nil {
		return c, nil
	}
	c, err := dialConn(p.ctx, p.target, p.proto)
	if err != nil {
		return nil, fmt.Errorf("connection @%s: %w", name, err)
	}
	p.conns[name] = c
	return c, nil
}

// step does what s says and returns what came back.
func (p *player) step(s *step) ([]Reply, error) {
	if s.op == opSleep {
		select {
		case <-time.After(s.sleep):
		case <-p.ctx.Done():
		}
		return nil, p.ctx.Err()
	}
	c, err := p.conn(s.conn)
	if err != nil {
		return nil, err
	}
	silent := len(s.want2) == 1 && s.want2[0].pattern.kind == noReply
	switch s.op {
	case opClose:
		c.close()
		delete(p.conns, s.conn)
		return nil, nil
	case opRead:
		wait := replyTimeout
		if silent {
			wait = quietTime
		}
		return []Reply{c.read(wait)}, nil
	case opRaw:
		raw, err := expandBytes(s.raw, p.vars, time.Now())
		if err != nil {
			return []Reply{{Kind: notSent, Text: err.Error()}}, nil
		}
		if err := c.send([]byte(raw)); err != nil && !isClosed(err) {
			return nil, err
		}
		if silent {
			return []Reply{{Kind: noReply}}, nil
		}
		return c.replies(nil), nil
	}
	return p.commands(c, s, silent)
}

// commands sends the commands of a step in one write and reads their replies.
func (p *player) commands(c *conn, s *step, silent bool) ([]Reply, error) {
	var out []byte
	var all [][]string
	for _, cmd := range s.cmds {
		line, err := expandLine(cmd, p.vars, time.Now())
		if err != nil {
			// A reply above was not the expected one: that is the difference,
			// and this line is one too.
			return []Reply{{Kind: notSent, Text: err.Error()}}, nil
		}
		args, err := SplitWords(line)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		if err := p.keepConfig(args); err != nil {
			return nil, err
		}
		all = append(all, args)
		out = append(out, Encode(args)...)
	}
	if err := c.send(out); err != nil && !isClosed(err) {
		return nil, err
	}
	if silent {
		return []Reply{{Kind: noReply}}, nil
	}
	var got []Reply
	for _, args := range all {
		got = append(got, c.replies(args)...)
		if last := got[len(got)-1].Kind; last == closed || last == noReply {
			break
		}
	}
	return got, nil
}

// keepConfig notes what a CONFIG SET is about to change, so that empty can
// restore it.
func (p *player) keepConfig(args []string) error {
	if len(args) < 4 || !strings.EqualFold(args[0], "CONFIG") || !strings.EqualFold(args[1], "SET") {
		return nil
	}
	for i := 2; i+1 < len(args); i += 2 {
		if strings.ContainsAny(args[i], "*?[") {
			continue
		}
		r, err := p.ask("CONFIG", "GET", args[i])
		if err != nil {
			return err
		}
		if len(r.Elems) == 2 {
			p.config = append(p.config, [2]string{r.Elems[0].Text, r.Elems[1].Text})
		}
	}
	return nil
}
