package plugins

import (
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

// Bounds of timers and events.
const (
	maxTimers    = 10_000
	maxTimerTime = int64(10 * 365 * 24 * time.Hour / time.Millisecond)
	maxEventName = 64
)

// eventFunctions tell others, and the module itself later.
var eventFunctions = []*hostFunc{
	{
		name: "timer_set", params: types(i64, i64), results: types(i64),
		usage: "timer_set(ms, token) -> i64",
		doc:   "From this call's commit on, in ms milliseconds, at least one, `lk_timer` is called once with the token, in a transaction of its own. The result is the timer's number, above 0. Timers end with the module and with the server. `-101`: the manifest does not ask for `timers`. `-103`: ms is negative, or more than ten years. `-105`: the module has 10000 timers.",
		call:  func(in *instance, stack []uint64) { stack[0] = uint64(in.setTimer(int64(stack[0]), int64(stack[1]))) },
	},
	{
		name: "timer_cancel", params: types(i64), results: types(i32),
		usage: "timer_cancel(timer) -> i32",
		doc:   "Takes back a timer, at this call's commit: `1`, or `0` if the module has none of that number: it has been delivered, or the call that set it has not committed.",
		call: func(in *instance, stack []uint64) {
			m, id := in.m, int64(stack[0])
			if !m.granted.Timers {
				result(stack, codeDenied)
				return
			}
			if !m.timers.has(id) {
				result(stack, 0)
				return
			}
			in.atCommit(0, func() { m.timers.cancel(id) })
			result(stack, 1)
		},
	},
	{
		name: "notify", params: types(i32, i32, i32, i32), results: types(i32),
		usage: "notify(event, event_len, key, key_len) -> i32",
		doc:   "Sends a keyspace event about the key at commit, of the class of modules (`d` of notify-keyspace-events): `0`. Needs write access to the key. `-103`: the event's name is empty or longer than 64 bytes.",
		memory: `
event         key
| event_len   | key_len |
  read          read
`,
		call: func(in *instance, stack []uint64) {
			event := string(in.bytes(stack[0], stack[1]))
			k, code := in.key(stack[2], stack[3], true)
			switch {
			case code != 0:
			case event == "" || len(event) > maxEventName:
				code = codeInvalid
			default:
				in.call.Notify(store.NotifyModule, event, k)
			}
			result(stack, code)
		},
	},
}

func (in *instance) setTimer(ms, token int64) int64 {
	m := in.m
	switch {
	case !m.granted.Timers:
		return codeDenied
	case ms < 0 || ms > maxTimerTime:
		return codeInvalid
	case m.timers.count()+m.queue.of(timerDue)+in.timersSet >= maxTimers:
		return codeLimit
	}
	in.timersSet++
	id, db := m.timers.next.Add(1), in.db
	in.atCommit(0, func() {
		m.timers.set(id, time.Duration(max(ms, 1))*time.Millisecond, func() { m.now().enqueue(&delivery{kind: timerDue, token: token, db: db}) })
	})
	return id
}
