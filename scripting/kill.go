package scripting

import (
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	notBusy         = "NOTBUSY No scripts in execution right now."
	killedByCommand = "Script killed by user with SCRIPT KILL."
)

// longRunning takes a permit, on the script's goroutine, and makes the script one
// that SCRIPT KILL can see.
func (sc *scriptCall) longRunning() (func(), error) {
	r := sc.runner
	select {
	case r.permits <- struct{}{}:
	default:
		select {
		case r.permits <- struct{}{}:
		case <-sc.Done:
			return nil, sc.Gone
		}
	}
	if r.OnLong != nil {
		r.OnLong(true)
	}
	sc.started = r.engine.opts.Now().Add(-budget.LongAfter)
	r.mu.Lock()
	r.running[sc] = struct{}{}
	r.mu.Unlock()
	// Who has gone will never read the reply: past the threshold, its script
	// only holds keys that others want.
	sc.unwatch = nil
	if w, busy := sc.outer.S.Wait, time.Duration(sc.outer.E.Busy.Load()); w != nil && w.Watch != nil && busy > 0 {
		sc.unwatch = w.Watch(busy)
	}
	return sc.ended, nil
}

func (sc *scriptCall) ended() {
	r := sc.runner
	if sc.unwatch != nil {
		sc.unwatch()
		sc.unwatch = nil
	}
	r.mu.Lock()
	delete(r.running, sc)
	r.mu.Unlock()
	if r.OnLong != nil {
		r.OnLong(false)
	}
	<-r.permits
}

// Kill ends the scripts that have run for at least longer, those of one name if
// name is not nil, and returns how many there were.
func (r *Runner) Kill(name *SHA1, longer time.Duration) int {
	now := r.engine.opts.Now()
	n := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for sc := range r.running {
		if now.Sub(sc.started) >= longer && (name == nil || sc.script.SHA == *name) {
			sc.Kill(KilledBy(killedByCommand))
			n++
		}
	}
	return n
}

// Long is the number of scripts running for longer than 2 ms.
func (r *Runner) Long() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

func (r *Runner) scriptKill(c *command.Call) {
	var name *SHA1
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Spec))
		return
	}
	if len(c.Args) == 3 {
		sha, ok := ParseSHA1(c.Args[2])
		if !ok {
			c.Err(command.ErrNoScript)
			return
		}
		name = &sha
	}
	if r.Kill(name, time.Duration(c.E.Busy.Load())) == 0 {
		c.Err(notBusy)
		return
	}
	c.OK()
}
