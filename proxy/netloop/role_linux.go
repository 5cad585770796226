//go:build linux && (amd64 || arm64)

package netloop

import "time"

// Who holds the role may touch what belongs to the loop. Loop.turns says whether
// the role can be taken: while it is odd, a turn is under way, and the holder needs
// nothing of the loop. Then the role is with whoever makes the odd number the next
// even one, by compare and swap: the holder itself when the turn is over, or when
// its Handler leaves, or the watch.

// turn lets c act. It returns false if the goroutine has lost the role meanwhile;
// c has been seen through then.
func (l *Loop) turn(c *Conn, answer bool) bool {
	n := l.turns.Load() + 1
	l.current, c.turn = c, n
	l.turns.Store(n)
	if !l.watched.Load() {
		l.startWatch()
	}
	v := c.act(answer)
	if !l.turns.CompareAndSwap(n, n+1) {
		c.alone(v)
		return false
	}
	switch v {
	case Again:
		l.enqueue(c)
	case Answered:
		l.answers = append(l.answers, c)
	case Ended:
		l.drop(c)
	default:
		if c.Readable() {
			l.enqueue(c)
		}
	}
	return true
}

func (c *Conn) act(answer bool) (v Verdict) {
	if answer {
		v = c.handler.Answer()
	} else {
		v = c.handler.Turn()
	}
	if v == Ended {
		c.handler.End()
	}
	return v
}

// alone sees a connection through that is away, and gives it back.
func (c *Conn) alone(v Verdict) {
	for {
		switch {
		case v == Ended:
			c.loop.Load().post(letter{c: c, what: gone})
			return
		case v == Answered:
			v = c.act(true)
		case v == Again, c.Readable():
			v = c.act(false)
		default:
			c.loop.Load().post(letter{c: c, what: back})
			return
		}
	}
}

// Leave gives the loop to another goroutine, because the one that runs c's
// Handler is going to wait. Only that one may call it; beside the loop it does
// nothing.
func (c *Conn) Leave() {
	n, l := c.turn, c.loop.Load()
	c.turn = 0
	if n != 0 && l.turns.CompareAndSwap(n, n+1) {
		c.away = true
		l.running.Go(l.run)
	}
}

// watchEvery is how often the watch looks. A turn found under way twice has lost
// the role.
const watchEvery = 3 * time.Millisecond

// watchQuiet is how many looks without a turn make the watch rest.
const watchQuiet = 30

// guard is the watch's goroutine.
func (l *Loop) guard() {
	tick := time.NewTicker(watchEvery)
	tick.Stop()
	defer tick.Stop()
	for {
		select {
		case <-l.watch:
		case <-l.stop:
			return
		}
		tick.Reset(watchEvery)
		for last, quiet := uint64(0), 0; ; {
			select {
			case <-tick.C:
			case <-l.stop:
				return
			}
			now := l.turns.Load()
			if now != last {
				last, quiet = now, 0
				continue
			}
			if now%2 == 1 {
				if l.turns.CompareAndSwap(now, now+1) {
					l.current.away = true
					l.running.Go(l.run)
				}
				continue
			}
			if quiet++; quiet < watchQuiet {
				continue
			}
			l.watched.Store(false)
			if l.turns.Load() == now {
				break // the next turn will see that nobody watches
			}
			l.watched.Store(true)
		}
		tick.Stop()
	}
}

func (l *Loop) startWatch() {
	if l.watched.CompareAndSwap(false, true) {
		select {
		case l.watch <- struct{}{}:
		default:
		}
	}
}
