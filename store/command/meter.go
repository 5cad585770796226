package command

// Meter is the budget of the script or plugin that calls a command. A command
// whose cost its arguments do not bound charges it. Once it has said no the
// caller ends, and what the command answers is seen by nobody.
type Meter interface {
	// Pay charges work in units of about ten nanoseconds, while it is done. It
	// returns false when the command must give up.
	Pay(n int) bool
	// Alloc charges bytes before they are taken. It returns false when they must
	// not be.
	Alloc(n int) bool
}

// pay charges n units of work to who calls, if that has a budget. When it returns
// false the error is answered.
func (c *Call) pay(n int) bool { return c.Meter == nil || c.Meter.Pay(n) || c.endedByMeter() }

// alloc charges n bytes that the arguments do not have, as pay charges work; n
// may be negative, which is nothing.
func (c *Call) alloc(n int) bool {
	return c.Meter == nil || n <= 0 || c.Meter.Alloc(n) || c.endedByMeter()
}

func (c *Call) endedByMeter() bool {
	c.Err(ErrCancelled)
	return false
}
