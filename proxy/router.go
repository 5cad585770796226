package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/proxy/upstream"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/glob"
)

// owner says whose keys a command names.
type owner uint8

const (
	ownerNone     owner = iota // it names no keys
	ownerSelf                  // latchkey's
	ownerUpstream              // the upstream's
	ownerMixed                 // of both: refused
)

// router knows which keys are latchkey's when there is an upstream. Without one
// there is no router: all keys are.
type router struct {
	pool   *upstream.Pool
	baseDB int // the upstream's database for our database 0
	own    []ownRule

	foreign foreign
}

// ownRule is a config.OwnRule, ready to be matched.
type ownRule struct {
	db      int // -1: every database
	pattern []byte
}

func newRouter(s *Server, cfg *config.Config) (*router, error) {
	url := cfg.String("upstream")
	if url == "" {
		return nil, nil
	}
	up, err := upstream.ParseURL(url)
	if err != nil {
		return nil, err
	}
	rules, err := ownRules(cfg.Strings("own"), int(cfg.Int("databases")))
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(cfg.Int("upstream-timeout")) * time.Millisecond
	if timeout == 0 {
		timeout = waitForever
	}
	pool, err := upstream.Open(upstream.Options{
		URL: url, Conns: int(cfg.Int("upstream-connections")),
		Databases: int(cfg.Int("databases")) + up.DB, Logger: s.log,
		DialTimeout: timeout, ReplyTimeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	r := &router{pool: pool, baseDB: up.DB, own: rules, foreign: foreign{pool: pool, db: up.DB, log: s.log}}
	r.foreign.learn()
	return r, nil
}

// waitForever is upstream-timeout 0.
const waitForever = 100 * 365 * 24 * time.Hour

func ownRules(words []string, databases int) ([]ownRule, error) {
	var rules []ownRule
	for _, word := range words {
		rule := config.ParseOwn(word)
		if rule.DB >= databases {
			return nil, &config.Error{
				Directive: "own", Value: word, Reason: fmt.Sprintf("there are %d databases, from db0 on", databases),
				Suggestion: "the directive databases says how many there are",
			}
		}
		rules = append(rules, ownRule{rule.DB, []byte(rule.Pattern)})
	}
	return rules, nil
}

func (r *router) close() {
	r.pool.Close()
	r.foreign.close()
}

// owns tells whether a key of a logical database is latchkey's.
func (r *router) owns(db int, key []byte) bool {
	if command.IsState(db, key) {
		return true
	}
	for i := range r.own {
		rule := &r.own[i]
		if (rule.db < 0 || rule.db == db) && glob.Match(rule.pattern, key, false) {
			return true
		}
	}
	return false
}

// ownerOfKey says whose a key is. That of a module's state goes with any: what the
// upstream owns it shall answer for, though a plugin's command is not known there.
func (r *router) ownerOfKey(db int, key []byte) owner {
	if command.IsState(db, key) {
		return ownerNone
	}
	if r.owns(db, key) {
		return ownerSelf
	}
	return ownerUpstream
}

// and is the owner of the keys of two owners together.
func (o owner) and(other owner) owner {
	switch {
	case o == ownerNone || o == other:
		return other
	case other == ownerNone:
		return o
	}
	return ownerMixed
}

// owner says whose keys the command names.
func (r *router) owner(cl *client, c *command.Call) owner {
	whose := ownerNone
	switch {
	case !c.Spec.Upstream || len(r.own) != 0 && !asks(c.Spec):
		c.EachKey(func(db int, name []byte) { whose = whose.and(r.ownerOfKey(db, name)) })
	case len(r.own) != 0:
		whose = r.askOwner(cl, c)
	}
	if whose == ownerNone && c.Spec.Upstream {
		whose = ownerUpstream // without keys, or with arguments that are wrong
	}
	return whose
}

// ownerOfAll says whose keys the commands of a transaction name.
func (r *router) ownerOfAll(c *client, queue []queued) owner {
	whose := ownerNone
	s := command.Session{DB: c.sess.DB}
	for i := range queue {
		q := &queue[i]
		call := command.Call{E: c.s.engine, S: &s, Spec: q.spec, Args: q.args}
		o := r.owner(c, &call)
		if o == ownerNone && r.keyless(q.spec) {
			o = ownerUpstream
		}
		if q.spec.Name == "select" && q.spec.Parent() == nil {
			// It would change the upstream connection that others share too.
			if db, ok := command.ParseInt(q.args[1]); ok && db >= 0 && db < int64(c.s.store.Databases()) {
				s.DB = int(db)
			}
			o = ownerSelf
		}
		whose = whose.and(o)
	}
	return whose
}

// keyless tells whether a command without keys concerns the keyspace behind us
// rather than ours. What belongs to the connection, to scripts or to this
// server is ours.
func (r *router) keyless(spec *command.Spec) bool {
	if spec.Parent() != nil {
		return false
	}
	switch spec.Name {
	case "keys", "scan", "randomkey", "dbsize", "flushdb", "flushall", "swapdb", "wait", "waitaof":
		return true
	}
	return false
}

// forwarded is a reply to come: it stands at a place among the local replies.
type forwarded struct {
	at   int // offset in the client's reply buffer
	call *upstream.Call
}

// maxForwards bounds the commands of one client that are under way.
const maxForwards = 1024

// forward hands a command to the upstream if its keys are there, and tells
// whether it was answered, now or later.
func (r *router) forward(cl *client, c *command.Call) bool {
	o := r.owner(cl, c)
	switch {
	case o == ownerMixed:
		cl.refuse(c.Spec, command.ErrCrossOwner)
		return true
	case o == ownerSelf && c.Spec.Upstream:
		cl.refuse(c.Spec, errForeignOnOwn(c.Spec))
		return true
	case o == ownerSelf:
		return false
	case o == ownerNone && concernsBoth(c.Spec):
		// The client's next command of this database goes down the same
		// connection, so nobody need wait for the upstream's answer.
		r.pool.Do(r.request(cl, c)).Release()
		return false
	case o == ownerNone && !r.keyless(c.Spec):
		return false
	}
	switch {
	case c.Spec.Name == "watch":
		return false // its handler refuses
	case o == ownerNone && len(r.own) != 0 && (c.Spec.Name == "flushall" || c.Spec.Name == "flushdb" || c.Spec.Name == "swapdb"):
		cl.refuse(c.Spec, command.ErrCrossOwner+" ("+c.Spec.Name+" concerns both; send it to each)")
		return true
	case c.Spec.Upstream:
		if msg := foreignRefusal(c.Spec, c.Args, false); msg != "" {
			cl.refuse(c.Spec, msg)
			return true
		}
	case c.Spec.Flags&command.Blocking != 0:
		cl.refuse(c.Spec, errForwardBlocking)
		return true
	}
	c.Spec.Usage().Calls.Add(1)
	if cl.s.engine.Monitors.Load() != 0 && c.Spec.Flags&command.Admin == 0 {
		cl.s.monitor.feed(c, false)
	}
	cl.forwards = append(cl.forwards, forwarded{at: cl.w.Len(), call: r.pool.Do(r.request(cl, c))})
	return true
}

// request is a command of a client for the upstream.
func (r *router) request(cl *client, c *command.Call) upstream.Request {
	return upstream.Request{DB: r.baseDB + c.DB(), Proto: c.S.Proto, Raw: rawCommand(c), Sticky: uint64(cl.id)}
}

// concernsBoth tells whether a command is for the scripts and function libraries
// of both sides: on which a script will run, its keys decide only when it is called.
func concernsBoth(spec *command.Spec) bool {
	switch spec.FullName() {
	case "script|load", "script|flush", "function|load", "function|delete", "function|flush", "function|restore":
		return true
	}
	return false
}

// rawCommand are the bytes of a command as the upstream wants them: an inline
// command and one that was renamed are encoded anew.
func rawCommand(c *command.Call) []byte {
	if len(c.Frame) > 0 && c.Frame[0] == '*' && !renamed(c.Spec) {
		return c.Frame
	}
	return upstream.AppendCommand(nil, upstreamArgs(c.Spec, c.Args)...)
}

// renamed tells whether a command is called by another name than upstream's.
func renamed(spec *command.Spec) bool {
	if parent := spec.Parent(); parent != nil {
		spec = parent
	}
	return spec.Renamed()
}

// upstreamArgs are a command's arguments under the name that the upstream knows.
func upstreamArgs(spec *command.Spec, args [][]byte) [][]byte {
	if !renamed(spec) {
		return args
	}
	if parent := spec.Parent(); parent != nil {
		spec = parent
	}
	return append([][]byte{[]byte(spec.Name)}, args[1:]...)
}

// forwardBlock runs a whole transaction on the upstream, as one block that no
// other client's commands can come between.
func (r *router) forwardBlock(cl *client, c *command.Call, queue []queued) {
	block := make([][]byte, 0, len(queue)+2)
	block = append(block, upstream.AppendCommand(nil, "MULTI"))
	for i := range queue {
		block = append(block, upstream.AppendCommand(nil, upstreamArgs(queue[i].spec, queue[i].args)...))
	}
	block = append(block, upstream.AppendCommand(nil, "EXEC"))
	if cl.tracking.on.Load() {
		for i := range queue {
			cl.tracking.remember(&command.Call{E: cl.s.engine, S: &cl.sess, Spec: queue[i].spec, Args: queue[i].args})
		}
	}
	call := r.pool.DoBlock(upstream.Request{DB: r.baseDB + c.DB(), Proto: c.S.Proto, Sticky: uint64(cl.id)}, block...)
	cl.forwards = append(cl.forwards, forwarded{at: cl.w.Len(), call: call})
}

// joinForwards waits for the upstream's replies and puts each into joined in its place
// among the local ones.
func (c *client) joinForwards() error {
	defer c.releaseForwards()
	local, at := c.w.Bytes(), 0
	for i := range c.forwards {
		f := &c.forwards[i]
		c.joined.Raw(local[at:f.at])
		at = f.at
		frame, err := f.call.Wait(c.done)
		switch {
		case err == nil:
			c.joined.Raw(frame)
		case errors.Is(err, upstream.ErrCanceled):
			c.joined.Reset()
			return err
		default:
			c.s.stats.errorReply(err.Error())
			c.joined.Error(err.Error())
		}
	}
	c.joined.Raw(local[at:])
	return nil
}

func (c *client) releaseForwards() {
	for i := range c.forwards {
		c.forwards[i].call.Release()
	}
	clear(c.forwards)
	c.forwards = c.forwards[:0]
}

// dropForwards abandons the replies to come behind mark (CLIENT REPLY OFF).
func (c *client) dropForwards(mark int) {
	for n := len(c.forwards); n > 0 && c.forwards[n-1].at >= mark; n-- {
		c.forwards[n-1].call.Release()
		c.forwards = c.forwards[:n-1]
	}
}
