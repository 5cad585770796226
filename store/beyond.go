package store

// beyond is one change that a transaction has made outside of the keyspace.
type beyond struct {
	commit func(lsn uint64)
	revert func()
}

// Beyond records a change that the caller has made outside of the keyspace, to
// what belongs to the database all the same: the function libraries. It is part
// of the transaction like the change of a key. Its effects are in the same record
// of the log, and keep their order among those of other transactions because the
// transaction must be alone; a transaction or savepoint that is rolled back calls
// revert, the newest change first; commit is called with the record's LSN once
// the log has it, while the transaction is alone still. Neither may block.
//
// The effects are commands rather than operations of the store (OpBeyond): what
// a log replays is what Redis writes into its own, FUNCTION LOAD REPLACE with the
// source. A snapshot has to hold the libraries apart from the keys.
func (tx *Tx) Beyond(effects []Effect, commit func(lsn uint64), revert func()) {
	if tx.mode != alone {
		panic("store: a change beyond the keyspace in a transaction that is not alone")
	}
	tx.effects = append(tx.effects, effects...)
	tx.beyond = append(tx.beyond, beyond{commit, revert})
}

// revertBeyond takes back all but the first n changes.
func (tx *Tx) revertBeyond(n int) {
	for i := len(tx.beyond) - 1; i >= n; i-- {
		tx.beyond[i].revert()
	}
	clear(tx.beyond[n:])
	tx.beyond = tx.beyond[:n]
}

// Alone tells whether no other transaction runs.
func (tx *Tx) Alone() bool { return tx.mode == alone }

// See counts lsn as seen: a reply that tells of what was committed with it waits
// until the log is durable up to there.
func (tx *Tx) See(lsn uint64) { tx.lsn = max(tx.lsn, lsn) }
