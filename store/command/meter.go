package command

// A command that a script or a plugin calls charges their budget with what its
// arguments do not bound (store.Meter). When the budget says no, the handler
// returns at once; Exec undoes what it did and answers for it, and who called ends.

// pay charges n units of work to who calls, if that has a budget. When it returns
// false the handler must return.
func (c *Call) pay(n int) bool { return c.Tx.Pay(n) }

// payBytes charges a walk through n bytes, as pay does.
func (c *Call) payBytes(n int) bool { return c.Tx.PayBytes(n) }

// alloc charges n bytes that the arguments do not have, as pay charges work.
func (c *Call) alloc(n int) bool { return c.Tx.Alloc(n) }

// strings answers texts as the elements of what has just been begun.
func (c *Call) strings(texts []string) {
	for i, s := range texts {
		if c.Reply.BulkString(s); !c.Tx.Step(i, 2) {
			return
		}
	}
}
