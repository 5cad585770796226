package scripting

import (
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	notBusy = "NOTBUSY No scripts in execution right now."
	// killedByCommand is what Redis says of functions, too.
	killedByCommand = "Script killed by user with SCRIPT KILL..."
)

// longRunning makes the script one that SCRIPT KILL can see, and takes a permit,
// on the script's goroutine. Who waits for a permit holds its keys already, so
// it can be killed there too.
func (sc *scriptCall) longRunning() (func(), error) {
	r := sc.runner
	sc.started = r.engine.opts.Now().Add(-budget.LongAfter)
	r.mu.Lock()
	r.running[sc] = struct{}{}
	r.mu.Unlock()
	if tx := sc.outer.Tx; sc.function != nil && tx != nil {
		tx.BusyAs(command.SlowFunction)
	}
	// Who has gone will never read the reply: past the threshold, its script
	// only holds keys that others want.
	if w := sc.outer.S.Wait; w != nil && w.Watch != nil {
		sc.unwatch = w.Watch(time.Duration(sc.outer.E.Busy.Load()))
	}
	if err := sc.takePermit(); err != nil {
		sc.leave()
		return nil, err
	}
	if r.OnLong != nil {
		r.OnLong(true)
	}
	return sc.ended, nil
}

func (sc *scriptCall) takePermit() error {
	r := sc.runner
	select {
	case r.permits <- struct{}{}:
		return nil
	default:
	}
	var timeout <-chan time.Time
	if limit := sc.Limits.Time; limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case r.permits <- struct{}{}:
		return nil
	case <-sc.woken:
		return *sc.kill.Load()
	case <-timeout:
		return budget.ErrTime
	case <-sc.Done:
		return sc.Gone
	}
}

// ended gives back what a long script has taken.
func (sc *scriptCall) ended() {
	r := sc.runner
	sc.leave()
	if r.OnLong != nil {
		r.OnLong(false)
	}
	<-r.permits
}

// leave takes the script out of those that can be killed.
func (sc *scriptCall) leave() {
	r := sc.runner
	if sc.unwatch != nil {
		sc.unwatch()
		sc.unwatch = nil
	}
	r.mu.Lock()
	delete(r.running, sc)
	r.mu.Unlock()
	if tx := sc.outer.Tx; sc.function != nil && tx != nil {
		tx.BusyAs(nil)
	}
}

// Kill ends what has run for at least longer, or whose transaction has had its keys
// for as long, so that others are answered -BUSY: the functions, or the scripts of
// EVAL. A name, unless it is empty, is the SHA1 of a script or the name of a
// function, and ends only those. It returns how many it ended, and how many of
// the other sort run for as long. What they wrote is undone.
func (r *Runner) Kill(functions bool, name string, longer time.Duration) (killed, others int) {
	now := r.engine.opts.Now()
	reason := KilledBy(killedByCommand)
	r.mu.Lock()
	defer r.mu.Unlock()
	for sc := range r.running {
		switch {
		case now.Sub(sc.started) < longer && sc.held() < longer:
		case (sc.function != nil) != functions:
			others++
		case name == "" || name == sc.name():
			sc.Kill(reason)
			killed++
		}
	}
	return killed, others
}

// held is for how long the script's transaction has had its keys.
func (sc *scriptCall) held() time.Duration {
	if sc.outer.Tx == nil {
		return 0
	}
	return sc.outer.Tx.Held()
}

// Long is the number of scripts running for longer than 2 ms.
func (r *Runner) Long() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

func (r *Runner) scriptKill(c *command.Call) {
	name := ""
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
		name = sha.String()
	}
	r.answerKill(c, false, name)
}

// functionKill is FUNCTION KILL.
func (r *Runner) functionKill(c *command.Call) { r.answerKill(c, true, "") }

func (r *Runner) answerKill(c *command.Call, functions bool, name string) {
	killed, others := r.Kill(functions, name, time.Duration(c.E.Busy.Load()))
	switch {
	case killed != 0:
		c.OK()
	case others == 0 || name != "":
		c.Err(notBusy)
	case functions:
		c.Err(command.ErrBusyScript)
	default:
		c.Err(command.ErrBusyFunction)
	}
}
