package command

// To read the clock after every command of a pipeline takes longer than to look
// its key up. Therefore commands that are Spec.Brief share a look: those that
// follow one of their kind in a batch, runMost at most, make a run, which is
// measured when it is full, when another command comes, before anything is waited
// for, and when the batch ends. What the run took is divided among them, so that
// sums stay right. So do scripts that say of themselves that they were brief
// (Call.Brief). What is large is not brief and ends its run; if somebody wants to
// hear of commands that take less than quickly, every command is measured.
//
// A run that took longer than brief commands can is told of as its last command,
// unless another command came: the arguments are gone then.

const (
	runMost = 16
	// briefBytes is how long the arguments and the reply of a brief command may be.
	briefBytes = 1 << 10
)

// run is what has not been measured yet.
type run struct {
	spec  *Spec // of the command before, nil at the beginning of a batch
	calls int   // of spec that are not measured
	alone bool  // the running command has waited: it is measured by itself
}

// count enters a client's command that has run into the ledger, and tells who
// listens if it was slow.
func (e *Engine) count(c *Call, mark int) {
	s, spec := c.S, c.Spec
	slow := e.SlowAfter.Load()
	brief := (spec.Brief || c.brief) && len(c.Frame) <= briefBytes && c.Reply.Mark()-mark <= briefBytes && !s.run.alone && (slow < 0 || slow >= quickly)
	if c.failed != "" {
		s.acc.accounts[s.acc.find(spec)].failed++
		if !c.told {
			e.failed(c.failed)
		}
	}
	if brief && s.run.spec == spec && s.run.calls < runMost-1 {
		s.run.calls++
		return
	}
	e.tell(c, s.divide(spec, s.lap(), brief), slow)
}

// tell has those hear of a command who want to.
func (e *Engine) tell(c *Call, took, slow int64) {
	if slow >= 0 && took >= slow && c.Spec.Flags&SkipSlowlog == 0 {
		e.Slow(c, took)
	}
}

// EndRun is Session.Measure after c, the last command of a batch, has run.
func (e *Engine) EndRun(c *Call) {
	if c.S.run.calls != 0 {
		e.tell(c, c.S.measure(), e.SlowAfter.Load())
	}
	c.S.rest()
}

// lap is the time since the last look at the clock.
func (s *Session) lap() int64 {
	now := monotonic()
	took := now - s.stamp
	s.stamp = now
	return took
}

// Measure ends the run of brief commands that share a look at the clock, if
// there is one.
func (s *Session) Measure() {
	if s.run.calls != 0 {
		s.measure()
	}
}

func (s *Session) measure() int64 {
	s.run.calls--
	return s.divide(s.run.spec, s.lap(), true)
}

// Waits is called before the running command waits for something: those before it
// took no part in that.
func (s *Session) Waits() {
	s.Measure()
	s.run.alone = true
	s.rest()
}

// rest has what is kept for the next command given back.
func (s *Session) rest() {
	if f := s.Rest; f != nil {
		s.Rest = nil
		f()
	}
}

// divide ends a run with a last command, and returns what that one took of the ns
// that all took. The run's others get equal parts of it; but if that was more than
// anything brief takes, or the last one is not brief, no more than such a command
// took lately.
func (s *Session) divide(spec *Spec, took int64, brief bool) int64 {
	a := &s.acc.accounts[s.acc.find(spec)]
	n := int64(s.run.calls)
	s.run = run{spec: spec}
	each := took / (n + 1)
	if brief && took < quickly {
		a.typical = each
	} else if n > 0 && a.typical != 0 {
		each = min(each, a.typical)
	}
	a.addSome(each, n)
	took -= n * each
	a.add(took)
	return took
}
