package storetest

import (
	"slices"

	"github.com/latchkey-proxy/latchkey/store"
)

var beyondTests = []test{
	{name: "changes beyond the keyspace are part of their transaction", run: testBeyond},
}

// testBeyond keeps a list beside the keyspace, as function libraries are kept.
func testBeyond(f *fixture) {
	var list, committed []string
	var at uint64
	tx := f.s.NewTx()
	add := func(name string) {
		before := list
		list = append(slices.Clone(list), name)
		tx.Beyond([]store.Effect{{Op: store.OpBeyond, Args: []string{"LIST", "ADD", name}}},
			func(lsn uint64) { committed, at = list, lsn }, func() { list = before })
	}
	begin := func() {
		tx.Begin()
		if err := tx.AcquireAll(nil); err != nil {
			f.Fatal(err)
		}
	}

	begin()
	add("a")
	outer := tx.Savepoint()
	add("b")
	inner := tx.Savepoint()
	add("c")
	tx.RollbackTo(inner)
	equal(f, "after a savepoint was undone", list, []string{"a", "b"})
	add("d")
	tx.Release(outer)
	tx.Key(0, []byte("k")).SetString([]byte("v"), store.NoTTL)
	if committed != nil {
		f.Errorf("%q are committed before the transaction is", committed)
	}
	f.commit(tx)
	equal(f, "committed", committed, []string{"a", "b", "d"})
	if at != f.log.LSN() {
		f.Errorf("committed at LSN %d, the log's is %d", at, f.log.LSN())
	}
	got := f.records()
	equal(f, "the record", got[len(got)-1:], []string{"LIST ADD a | LIST ADD b | LIST ADD d | SET k v"})

	begin()
	add("e")
	add("f")
	tx.Rollback()
	equal(f, "after a rollback", list, []string{"a", "b", "d"})
	equal(f, "committed, after a rollback", committed, []string{"a", "b", "d"})

	// Who has seen what was committed waits for it.
	other := f.s.NewTx()
	other.See(at)
	if lsn := other.TakeLSN(); lsn != at {
		f.Errorf("who has seen LSN %d has %d", at, lsn)
	}
}
