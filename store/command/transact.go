package command

// Transact runs something for nobody in particular, such as a timer of a plugin,
// in a transaction of c.S that has the keys which keys adds. When a key that it
// reaches for is held by others it is undone and run again. What run has changed
// is committed unless it answers an error, whose text comes back.
func (e *Engine) Transact(c *Call, keys func(add func(db int, name []byte)), run func(c *Call)) (failed string) {
	tx := c.S.Tx
	c.E, c.Tx = e, tx
	c.S.BeginBatch()
	tx.Begin()
	keys(tx.Add)
	if err := tx.Acquire(c.S.Wait); err != nil {
		return WaitError(err)
	}
	defer e.settle(c.S)
	mark := c.Reply.Mark()
	for {
		e.guarded(c, mark, func() { run(c) })
		if !tx.Clash() {
			break
		}
		c.Reply.Rewind(mark)
		c.failed, c.undo, c.told = "", false, false
		if err := c.S.Again(); err != nil {
			return WaitError(err)
		}
	}
	if c.undo {
		tx.Rollback()
		return c.failed
	}
	if err := tx.Commit(); err != nil {
		return err.Error()
	}
	return ""
}
