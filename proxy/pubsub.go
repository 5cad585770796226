package proxy

import (
	"slices"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const subscribeFlags = command.PubSub | command.NoScript | command.Loading | command.Stale

// pubsubCommands are the Specs of this family, made anew for each server.
func pubsubCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "subscribe", Arity: -2, Flags: subscribeFlags, Access: command.Free, Handler: subscribe,
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N) where N is the number of channels to subscribe to.",
			Summary: "Listens for messages published to channels.", Syntax: "channel [channel ...]",
		},
		{
			Name: "unsubscribe", Arity: -1, Flags: subscribeFlags, Access: command.Free, Handler: unsubscribe,
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N) where N is the number of channels to unsubscribe.",
			Summary: "Stops listening to channels, or to all.", Syntax: "[channel [channel ...]]",
		},
		{
			Name: "psubscribe", Arity: -2, Flags: subscribeFlags, Access: command.Free, Handler: psubscribe,
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to subscribe to.",
			Summary: "Listens for messages published to channels that match patterns.", Syntax: "pattern [pattern ...]",
		},
		{
			Name: "punsubscribe", Arity: -1, Flags: subscribeFlags, Access: command.Free, Handler: punsubscribe,
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to unsubscribe.",
			Summary: "Stops listening to patterns, or to all.", Syntax: "[pattern [pattern ...]]",
		},
		{
			Name: "ssubscribe", Arity: -2, Flags: subscribeFlags, Access: command.Free, Handler: ssubscribe,
			Keys:  []command.KeySpec{{Begin: 1, Last: -1, Flags: command.KeyNotKey}},
			Group: "pubsub", Since: "7.0.0", Complexity: "O(N) where N is the number of shard channels to subscribe to.",
			Summary: "Listens for messages published to shard channels.", Syntax: "shardchannel [shardchannel ...]",
		},
		{
			Name: "sunsubscribe", Arity: -1, Flags: subscribeFlags, Access: command.Free, Handler: sunsubscribe,
			Keys:  []command.KeySpec{{Begin: 1, Last: -1, Flags: command.KeyNotKey}},
			Group: "pubsub", Since: "7.0.0", Complexity: "O(N) where N is the number of shard channels to unsubscribe.",
			Summary: "Stops listening to shard channels, or to all.", Syntax: "[shardchannel [shardchannel ...]]",
		},
		{
			Name: "publish", Arity: 3, Access: command.Free, Instant: true, Handler: publish,
			Flags: command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
			Group: "pubsub", Since: "2.0.0", Complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of subscribed patterns (by any client).",
			Summary: "Sends a message to a channel.", Syntax: "channel message",
			Differs: "Inside a transaction or script the message leaves at its commit; the reply counts who listens at that moment of the call.",
		},
		{
			Name: "spublish", Arity: 3, Access: command.Free, Instant: true, Handler: spublish,
			Keys:  []command.KeySpec{{Begin: 1, Flags: command.KeyNotKey}},
			Flags: command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
			Group: "pubsub", Since: "7.0.0", Complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
			Summary: "Sends a message to a shard channel.", Syntax: "shardchannel message",
		},
		{
			Name: "pubsub", Arity: -2, Access: command.Free, Group: "pubsub", Since: "2.8.0", Complexity: "Depends on subcommand.",
			Summary: "A container for commands that inspect publish and subscribe.",
			Help: []string{
				"CHANNELS [<pattern>]",
				"    Return the currently active channels matching a <pattern> (default: '*').",
				"NUMPAT",
				"    Return number of subscriptions to patterns.",
				"NUMSUB [<channel> ...]",
				"    Return the number of subscribers for the specified channels, excluding",
				"    pattern subscriptions(default: no channels).",
				"SHARDCHANNELS [<pattern>]",
				"    Return the currently active shard level channels matching a <pattern> (default: '*').",
				"SHARDNUMSUB [<shardchannel> ...]",
				"    Return the number of subscribers for the specified shard level channel(s)",
			},
			Sub: []*command.Spec{
				{
					Name: "channels", Arity: -2, Flags: command.PubSub | command.Loading | command.Stale, Access: command.Free, Handler: pubsubChannels,
					Group: "pubsub", Since: "2.8.0", Complexity: "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short channels and patterns)",
					Summary: "Lists the channels that somebody listens to.", Syntax: "[pattern]",
				},
				{
					Name: "numpat", Arity: 2, Flags: command.PubSub | command.Loading | command.Stale, Access: command.Free, Handler: pubsubNumPat,
					Group: "pubsub", Since: "2.8.0", Complexity: "O(1)",
					Summary: "Counts the patterns that somebody listens to.",
				},
				{
					Name: "numsub", Arity: -2, Flags: command.PubSub | command.Loading | command.Stale, Access: command.Free, Handler: pubsubNumSub,
					Group: "pubsub", Since: "2.8.0", Complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
					Summary: "Counts who listens to channels.", Syntax: "[channel [channel ...]]",
				},
				{
					Name: "shardchannels", Arity: -2, Flags: command.PubSub | command.Loading | command.Stale, Access: command.Free, Handler: pubsubShardChannels,
					Group: "pubsub", Since: "7.0.0", Complexity: "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively short shard channels).",
					Summary: "Lists the shard channels that somebody listens to.", Syntax: "[pattern]",
				},
				{
					Name: "shardnumsub", Arity: -2, Flags: command.PubSub | command.Loading | command.Stale, Access: command.Free, Handler: pubsubShardNumSub,
					Group: "pubsub", Since: "7.0.0", Complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
					Summary: "Counts who listens to shard channels.", Syntax: "[shardchannel [shardchannel ...]]",
				},
				command.HelpSpec("pubsub", "6.2.0"),
			},
		},
	}
}

func subscribe(c *command.Call)   { asClient(c).subscribe(c, "subscribe") }
func psubscribe(c *command.Call)  { asClient(c).subscribe(c, "psubscribe") }
func unsubscribe(c *command.Call) { asClient(c).unsubscribe(c, "unsubscribe") }

// ssubscribe is refused within EXEC, where the older two are let through, as in Redis.
func ssubscribe(c *command.Call) {
	if c.S.InMulti {
		c.Err("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		return
	}
	asClient(c).subscribe(c, "ssubscribe")
}

func punsubscribe(c *command.Call) { asClient(c).unsubscribe(c, "punsubscribe") }
func sunsubscribe(c *command.Call) { asClient(c).unsubscribe(c, "sunsubscribe") }

// topic is what a command listens to: the hub's side and the client's.
func (c *client) topic(kind string) (*topics, *map[string]struct{}) {
	switch kind {
	case "psubscribe", "punsubscribe":
		return &c.s.hub.patterns, &c.subs.patterns
	case "ssubscribe", "sunsubscribe":
		return &c.s.hub.shard, &c.subs.shard
	}
	return &c.s.hub.channels, &c.subs.channels
}

// count is the number that confirmations carry: shard channels count alone.
func (s *subscriptions) count(kind string) int {
	if kind == "ssubscribe" || kind == "sunsubscribe" {
		return len(s.shard)
	}
	return len(s.channels) + len(s.patterns)
}

func (c *client) subscribe(call *command.Call, kind string) {
	t, mine := c.topic(kind)
	c.beginPushes()
	if *mine == nil {
		*mine = make(map[string]struct{})
	}
	for _, arg := range call.Args[1:] {
		name := string(arg)
		(*mine)[name] = struct{}{}
		c.subs.any.Store(true)
		c.s.hub.listen(t, name, c, c.confirm(call, c.confirmation(kind, arg, c.subs.count(kind))))
	}
}

func (c *client) unsubscribe(call *command.Call, kind string) {
	t, mine := c.topic(kind)
	c.beginPushes()
	names := call.Args[1:]
	if len(names) == 0 {
		for name := range *mine {
			names = append(names, []byte(name))
		}
		slices.SortFunc(names, slices.Compare)
		if len(names) == 0 {
			if b := c.confirm(call, c.confirmation(kind, nil, c.subs.count(kind))); b != nil {
				c.out.push(b)
			}
			return
		}
	}
	for _, arg := range names {
		delete(*mine, string(arg))
		c.s.hub.unlisten(t, string(arg), c, c.confirm(call, c.confirmation(kind, arg, c.subs.count(kind))))
	}
	c.subs.any.Store(len(c.subs.channels)+len(c.subs.patterns)+len(c.subs.shard) > 0)
}

// beginPushes makes the client one that others may write to. What it was
// answered before goes into the queue first.
func (c *client) beginPushes() {
	c.out.share()
	if c.sess.InMulti {
		return
	}
	c.flush()
	// Confirmations go straight into the queue: they must not outrun the reader
	// any more than replies may.
	c.out.mu.Lock()
	c.out.awaitRoom()
	c.out.mu.Unlock()
}

// confirm returns a confirmation for the hub to queue. Within EXEC it is part of
// the reply instead, and nil comes back.
func (c *client) confirm(call *command.Call, b []byte) []byte {
	if !call.S.InMulti {
		return b
	}
	c.w.Raw(b)
	return nil
}

func (c *client) confirmation(kind string, name []byte, count int) []byte {
	var w resp.Writer
	w.SetProto(c.sess.Proto)
	w.Push(3)
	w.BulkString(kind)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(count))
	return w.Bytes()
}

func publish(c *command.Call) { publishTo(c, store.EventPublish) }

func spublish(c *command.Call) { publishTo(c, store.EventSPublish) }

func publishTo(c *command.Call, kind store.EventKind) {
	h := asServer(c).hub
	if c.From == command.FromClient {
		if kind == store.EventPublish {
			c.Reply.Int(int64(h.publish(c.Args[1], c.Args[2], c.S.Client)))
		} else {
			c.Reply.Int(int64(h.publishShard(c.Args[1], c.Args[2], c.S.Client)))
		}
		return
	}
	if c.Tx.Short() && h.listening.Load() != 0 {
		c.Tx.Promote() // somebody may hold the hub who writes to many
		return
	}
	// Part of a transaction: the message leaves with it, or never.
	if !c.Tx.PayBytes(len(c.Args[1]) + len(c.Args[2])) {
		return
	}
	c.Tx.Emit(store.Event{Kind: kind, Origin: c.S.Client, Channel: slices.Clone(c.Args[1]), Payload: slices.Clone(c.Args[2])})
	n, patterns := h.audience(kind, c.Args[1])
	c.Tx.Pay(topicWork * patterns)
	c.Reply.Int(int64(n))
}

// audience is how many a message to the channel would reach now, and how many
// patterns were looked at.
func (h *hub) audience(kind store.EventKind, channel []byte) (n, patterns int) {
	if h.listening.Load() == 0 {
		return 0, 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := &h.channels
	if kind == store.EventSPublish {
		t = &h.shard
	}
	if l := t.byName[string(channel)]; l != nil {
		n = l.count()
	}
	if kind == store.EventPublish {
		patterns = len(h.patterns.order)
		for _, l := range h.patterns.order {
			if l != nil && l.hears(channel) {
				n += l.count()
			}
		}
	}
	return n, patterns
}

func pubsubChannels(c *command.Call)      { listTopics(c, &asServer(c).hub.channels) }
func pubsubShardChannels(c *command.Call) { listTopics(c, &asServer(c).hub.shard) }

func listTopics(c *command.Call, t *topics) {
	if len(c.Args) > 3 {
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	}
	names := asServer(c).hub.names(t)
	if len(c.Args) == 3 {
		// Without the hub's mutex: names and pattern are as long as clients like.
		matching := names[:0]
		for _, name := range names {
			if c.Match(c.Args[2], name) {
				matching = append(matching, name)
			}
			if !c.GoOn(topicWork) {
				return
			}
		}
		names = matching
	}
	if !c.GoOn(topicWork * len(names)) {
		return
	}
	slices.Sort(names)
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

// topicWork is what a channel costs that is looked at, in units of work.
const topicWork = 5

func pubsubNumPat(c *command.Call) {
	h := asServer(c).hub
	h.mu.RLock()
	defer h.mu.RUnlock()
	c.Reply.Int(int64(len(h.patterns.byName)))
}

func pubsubNumSub(c *command.Call)      { countTopics(c, &asServer(c).hub.channels) }
func pubsubShardNumSub(c *command.Call) { countTopics(c, &asServer(c).hub.shard) }

func countTopics(c *command.Call, t *topics) {
	h := asServer(c).hub
	h.mu.RLock()
	defer h.mu.RUnlock()
	names := c.Args[2:]
	c.Reply.Array(2 * len(names))
	for _, name := range names {
		c.Reply.Bulk(name)
		n := 0
		if l := t.byName[string(name)]; l != nil {
			n = l.count()
		}
		c.Reply.Int(int64(n))
	}
}
