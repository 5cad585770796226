package storetest

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/store"
)

var undoTests = []test{
	{name: "every operation is undone by a rollback", run: func(f *fixture) {
		f.undone(func(tx *store.Tx, change func()) { change() })
	}},
	{name: "every operation is undone to a savepoint", run: func(f *fixture) {
		f.undone(func(tx *store.Tx, change func()) {
			sp := tx.Savepoint()
			change()
			tx.RollbackTo(sp)
		})
	}},
	{name: "every operation is undone by a promotion", run: func(f *fixture) {
		f.undone(func(tx *store.Tx, change func()) {
			change()
			if tx.Short() {
				f.wantErr("Promote", tx.Promote(), store.ErrConflict)
				f.wantErr("Again", tx.Again(nil), nil)
			}
		})
	}},
	{name: "what a released savepoint did is undone with the outer one", run: func(f *fixture) {
		f.undone(func(tx *store.Tx, change func()) {
			outer := tx.Savepoint()
			change()
			inner := tx.Savepoint()
			change()
			tx.Release(inner)
			inner = tx.Savepoint()
			change()
			tx.RollbackTo(inner)
			tx.RollbackTo(outer)
		})
	}},
	{name: "an inner savepoint undoes itself only", run: testInnerSavepoint},
	{name: "savepoints drop effects and events", run: testSavepointEffects},
	{name: "released savepoints are forgotten", run: testReleaseBounded},
}

// operations change the key k, which is "value" for ever, and l, which is
// "other" until some time, and n, which is absent.
var operations = []struct {
	name string
	do   func(k, l, n *store.Key)
}{
	{"set", func(k, l, n *store.Key) { k.SetString([]byte("new"), store.NoTTL) }},
	{"set with expiry", func(k, l, n *store.Key) { k.SetString([]byte("new"), store.ExpireIn(9)) }},
	{"set what had an expiry", func(k, l, n *store.Key) { l.SetString([]byte("new"), store.NoTTL) }},
	{"set and keep the expiry", func(k, l, n *store.Key) { l.SetString([]byte("new"), store.KeepTTL) }},
	{"set to the past", func(k, l, n *store.Key) { l.SetString([]byte("new"), store.ExpireAt(1)) }},
	{"set absent", func(k, l, n *store.Key) { n.SetString([]byte("new"), store.NoTTL) }},
	{"set absent, append, delete", func(k, l, n *store.Key) {
		n.SetString([]byte("new"), store.NoTTL)
		n.Append([]byte("er"))
		n.Delete()
	}},
	{"append", func(k, l, n *store.Key) { k.Append([]byte("+")) }},
	{"append often", func(k, l, n *store.Key) {
		for range 40 {
			k.Append([]byte("++"))
		}
	}},
	{"overwrite", func(k, l, n *store.Key) { k.SetRange(1, []byte("XY")) }},
	{"overwrite and grow", func(k, l, n *store.Key) { l.SetRange(3, []byte("XYZXYZ")) }},
	{"overwrite and delete", func(k, l, n *store.Key) { k.SetRange(0, []byte("XY")); k.Delete() }},
	{"overwrite and replace", func(k, l, n *store.Key) {
		k.SetRange(2, []byte("XY"))
		k.SetString(nil, store.NoTTL)
		k.SetRange(7, []byte("Z"))
	}},
	{"expire", func(k, l, n *store.Key) { k.SetExpiry(store.ExpireIn(50)) }},
	{"expire in the past", func(k, l, n *store.Key) { k.SetExpiry(store.ExpireAt(7)) }},
	{"persist", func(k, l, n *store.Key) { l.SetExpiry(store.NoTTL) }},
	{"delete", func(k, l, n *store.Key) { k.Delete(); l.Delete() }},
	{"copy", func(k, l, n *store.Key) { l.CopyTo(n); k.CopyTo(l) }},
	{"move", func(k, l, n *store.Key) { l.MoveTo(k) }},
	{"move and overwrite", func(k, l, n *store.Key) {
		k.MoveTo(n)
		n.SetRange(0, []byte("XY"))
		n.Append([]byte("+"))
		n.MoveTo(l)
		l.SetRange(2, []byte("XY"))
		l.MoveTo(k)
	}},
	{"mark as raw", func(k, l, n *store.Key) { k.SetRaw() }},
	{"set idle", func(k, l, n *store.Key) { k.SetIdle(77) }},
	{"signal", func(k, l, n *store.Key) { k.Signal(); n.Signal() }},
}

// undone does every operation in every mode; way must leave nothing of it.
func (f *fixture) undone(way func(tx *store.Tx, change func())) {
	f.s.SetNotify(^uint32(0))
	f.set("k", "value")
	f.setTTL("l", "other", store.ExpireAt(start+1000))
	before := f.picture()
	records := len(f.log.Records())
	f.sink.take()
	for _, m := range f.modes() {
		for _, op := range operations {
			tx := m.begin("k", "l", "n")
			k, l, n := at(tx, "k"), at(tx, "l"), at(tx, "n")
			way(tx, func() {
				if k.Exists() && l.Exists() && !n.Exists() {
					op.do(k, l, n)
				} else {
					k.Delete()
				}
			})
			tx.Rollback()
			if after := f.picture(); after != before {
				f.Errorf("%s, %s: not undone\n have %s\n want %s", m.name, op.name, after, before)
				return
			}
		}
	}
	if n := len(f.log.Records()) - records; n != 0 {
		f.Errorf("%d records were logged by what was undone", n)
	}
	equal(f, "events of what was undone", f.sink.take(), nil)
}

// picture is all that can be known of the keys k, l and n.
func (f *fixture) picture() string {
	f.Helper()
	tx := f.latch("k", "l", "n")
	defer tx.Rollback()
	out := ""
	for _, name := range []string{"k", "l", "n"} {
		k := at(tx, name)
		out += fmt.Sprintf("%s=%q expiry %d raw %v idle %d; ", name, show(k), k.Expiry(), k.Raw(), k.IdleSeconds())
	}
	return out + fmt.Sprintf("%d keys, %d volatile, %d bytes", f.s.Size(0), f.s.Volatile(0), f.s.UsedMemory())
}

func testInnerSavepoint(f *fixture) {
	for _, m := range f.modes() {
		f.set("k", "0")
		tx := m.begin("k")
		k := at(tx, "k")
		k.Append([]byte("1"))
		a := tx.Savepoint()
		k.Append([]byte("2"))
		b := tx.Savepoint()
		k.SetRange(0, []byte("XXXXX"))
		k.SetExpiry(store.ExpireIn(10))
		tx.RollbackTo(b)
		if got := show(k); got != "012" || k.Expiry() != 0 {
			f.Errorf("%s: after the inner rollback %q expiring at %d, want %q and 0", m.name, got, k.Expiry(), "012")
		}
		c := tx.Savepoint()
		k.SetRange(1, []byte("Y"))
		tx.Release(c)
		tx.RollbackTo(a)
		if got := show(k); got != "01" {
			f.Errorf("%s: after the outer rollback %q, want %q", m.name, got, "01")
		}
		f.commit(tx)
		f.want("k", "01")
	}
}

func testSavepointEffects(f *fixture) {
	publish := func(tx *store.Tx, text string) {
		tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("c"), Payload: []byte(text)})
	}
	tx := f.lock("k")
	at(tx, "k").SetString([]byte("1"), store.NoTTL)
	publish(tx, "kept")
	sp := tx.Savepoint()
	at(tx, "k").SetString([]byte("2"), store.NoTTL)
	publish(tx, "dropped")
	tx.RollbackTo(sp)
	sp = tx.Savepoint()
	at(tx, "k").Append([]byte("3"))
	publish(tx, "kept too")
	tx.Release(sp)
	f.commit(tx)
	equal(f, "records", f.records(), []string{"SET k 1 | APPEND k 3"})
	equal(f, "events", f.sink.take(), []string{"c kept", "c kept too"})
	f.want("k", "13")
}

// A script of very many writes to one key must not remember them all.
func testReleaseBounded(f *fixture) {
	f.set("k", "0")
	tx := f.lock("k")
	k := at(tx, "k")
	for i := range 1000 {
		sp := tx.Savepoint()
		k.SetString(fmt.Appendf(nil, "%d", i), store.NoTTL)
		tx.Release(sp)
	}
	tx.Rollback()
	f.want("k", "0")
}
