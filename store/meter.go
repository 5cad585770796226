package store

// Meter is the budget of the script or plugin that a transaction works for. What
// costs more than the arguments of a command tell charges it while it is done, so
// that a limit, a deadline or a kill reaches it there. Once it has said no the
// work is given up as it stands, and undone: nobody sees its outcome.
type Meter interface {
	// Pay charges work in units of about ten nanoseconds. It returns false when the
	// work must be given up.
	Pay(n int) bool
	// Alloc charges bytes before they are taken. It returns false when they must
	// not be.
	Alloc(n int) bool
	// Check tells, after something that took long, whether to go on.
	Check() bool
}

// SetMeter makes m what the transaction's work is charged to, nil nothing, until
// it is called again, and returns what it was charged to before.
func (tx *Tx) SetMeter(m Meter) (before Meter) {
	before = tx.meter
	tx.meter, tx.spent = m, false
	return before
}

// Metered tells whether the transaction's work is charged to anybody.
func (tx *Tx) Metered() bool { return tx.meter != nil }

// Spent tells whether the Meter has said no since it was set: what is done under
// it must be undone.
func (tx *Tx) Spent() bool { return tx.spent }

// Pay charges n units of work (see Meter).
func (tx *Tx) Pay(n int) bool { return tx.meter == nil || tx.heed(tx.meter.Pay(n)) }

// Alloc charges n bytes that the arguments do not have; n may be negative, which
// is nothing.
func (tx *Tx) Alloc(n int) bool { return tx.meter == nil || n <= 0 || tx.heed(tx.meter.Alloc(n)) }

// Check tells whether to go on after something that took long.
func (tx *Tx) Check() bool { return tx.meter == nil || tx.heed(tx.meter.Check()) }

func (tx *Tx) heed(goOn bool) bool {
	tx.spent = tx.spent || !goOn
	return goOn
}

// stride is how many elements a loop goes through between two looks at the Meter.
const stride = 64

// Step charges units for each element of a loop, of which i is the number from 0
// on: those of a stride together. It looks at the memory too, which the reply
// grows by.
func (tx *Tx) Step(i, units int) bool {
	return i%stride != stride-1 || tx.meter == nil || tx.heed(tx.meter.Pay(stride*units) && tx.meter.Alloc(0))
}

// bytesPerUnit is how many bytes are copied, counted or combined in one unit of
// work.
const bytesPerUnit = 64

// PayBytes charges a walk through n bytes.
func (tx *Tx) PayBytes(n int) bool { return n < bytesPerUnit || tx.Pay(n/bytesPerUnit) }

// take charges n bytes that are about to be allocated and copied into.
func (tx *Tx) take(n int) bool { return tx.meter == nil || tx.Alloc(n) && tx.PayBytes(n) }
