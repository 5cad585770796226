package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"

	"github.com/latchkey-proxy/latchkey/store"
)

var transactionTests = []test{
	{name: "what a commit changes is there, what a rollback changes is not", run: testCommitAndRollback},
	{name: "a transaction reads what it has written", run: testReadsOwnWrites},
	{name: "a refused append undoes the transaction", run: testRefusedAppend},
	{name: "nothing is logged for reading", run: testReadingLogsNothing},
	{name: "transfers between accounts keep their sum", run: testTransfers, real: true},
	{name: "transactions that want the same keys in other orders end", run: testOpposedOrders, real: true},
	{name: "all memory is accounted for", run: testAccounting},
}

func testCommitAndRollback(f *fixture) {
	for _, m := range f.modes() {
		k := "k of " + m.name
		tx := m.begin(k)
		at(tx, k).SetString([]byte("1"), store.NoTTL)
		f.commit(tx)
		f.want(k, "1")
		tx = m.begin(k)
		at(tx, k).SetString([]byte("2"), store.NoTTL)
		tx.Rollback()
		f.want(k, "1")
		tx = m.begin(k)
		if !at(tx, k).Delete() {
			f.Errorf("%s: Delete did not find the key", m.name)
		}
		f.commit(tx)
		f.want(k, absent)
	}
}

// mode is a way to hold keys.
type mode struct {
	name  string
	begin func(keys ...string) *store.Tx
}

func (f *fixture) modes() []mode {
	return []mode{
		{"latched", f.latch},
		{"locked", f.lock},
		{"alone", func(...string) *store.Tx { return f.alone() }},
	}
}

func testReadsOwnWrites(f *fixture) {
	for _, m := range f.modes() {
		f.set("k", "old")
		tx := m.begin("k", "l")
		k, l := at(tx, "k"), at(tx, "l")
		k.SetString([]byte("new"), store.NoTTL)
		k.Append([]byte("er"))
		k.CopyTo(l)
		k.Delete()
		if show(k) != absent || show(l) != "newer" {
			f.Errorf("%s: k is %q and l is %q, want %q and %q", m.name, show(k), show(l), absent, "newer")
		}
		tx.Rollback()
	}
}

func testRefusedAppend(f *fixture) {
	refused := errors.New("disk full")
	for _, m := range f.modes() {
		f.set("k", "old")
		f.s.SetNotify(store.NotifyGeneric)
		f.sink.take()
		commits := len(f.log.Records())
		f.log.fail = refused
		tx := m.begin("k", "l")
		at(tx, "k").Append([]byte("er"))
		at(tx, "l").SetString([]byte("x"), store.ExpireIn(1000))
		tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("c"), Payload: []byte("m")})
		err := tx.Commit()
		f.log.fail = nil
		if !errors.Is(err, store.ErrLogFailed) || !errors.Is(err, refused) {
			f.Errorf("%s: Commit gave %v, want ErrLogFailed and the log's own error", m.name, err)
		}
		f.want("k", "old")
		f.want("l", absent)
		equal(f, m.name+": events of a transaction that was undone", f.sink.take(), nil)
		if n := len(f.log.Records()); n != commits {
			f.Errorf("%s: the log has grown by %d records", m.name, n-commits)
		}
		if n := f.s.Volatile(0); n != 0 {
			f.Errorf("%s: %d keys count as volatile, want 0", m.name, n)
		}
	}
}

func testReadingLogsNothing(f *fixture) {
	f.set("k", "v")
	n := f.log.LSN()
	for _, m := range f.modes() {
		tx := m.begin("k", "none")
		at(tx, "k").Str()
		at(tx, "none").Delete()
		f.commit(tx)
		if tx.LSN() != n {
			f.Errorf("%s: LSN %d, want %d, that of what was read", m.name, tx.LSN(), n)
		}
	}
	if f.log.LSN() != n {
		f.Errorf("the log has grown by %d records", f.log.LSN()-n)
	}
}

func testTransfers(f *fixture) {
	const accounts, workers, rounds, funds = 6, 4, 300, 1000
	name := func(i int) string { return "account" + strconv.Itoa(i) }
	for i := range accounts {
		f.set(name(i), strconv.Itoa(funds))
	}
	read := func(k *store.Key) int {
		n, err := strconv.Atoi(string(k.Str()))
		if err != nil {
			panic(err)
		}
		return n
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			tx := f.s.NewTx()
			for range rounds {
				a := rand.IntN(accounts)
				b := (a + 1 + rand.IntN(accounts-1)) % accounts
				tx.Begin()
				long := true
				switch rand.IntN(8) {
				case 0:
					if tx.AcquireAll(nil) != nil {
						panic("the gate was not closed")
					}
				case 1, 2, 3, 4:
					tx.Add(0, []byte(name(a)))
					tx.Add(0, []byte(name(b)))
					if tx.AcquireFast() {
						long = false
						break
					}
					fallthrough
				default:
					tx.Add(0, []byte(name(a)))
					tx.Add(0, []byte(name(b)))
					if tx.Acquire(nil) != nil {
						panic("the keys were not acquired")
					}
				}
				from, to := at(tx, name(a)), at(tx, name(b))
				n, m := read(from), read(to)
				if long {
					runtime.Gosched()
				}
				from.SetString([]byte(strconv.Itoa(n-1)), store.NoTTL)
				to.SetString([]byte(strconv.Itoa(m+1)), store.NoTTL)
				if rand.IntN(4) == 0 {
					tx.Rollback()
				} else if tx.Commit() != nil {
					panic("the log refused")
				}
			}
		})
	}
	stop := make(chan struct{})
	var audit sync.WaitGroup
	audit.Go(func() {
		tx := f.s.NewTx()
		for {
			select {
			case <-stop:
				return
			default:
			}
			tx.Begin()
			for i := range accounts {
				tx.Add(0, []byte(name(i)))
			}
			if !tx.AcquireFast() && tx.Acquire(nil) != nil {
				panic("the keys were not acquired")
			}
			sum := 0
			for i := range accounts {
				sum += read(at(tx, name(i)))
			}
			tx.Rollback()
			if sum != accounts*funds {
				f.Errorf("a transaction saw %d in all accounts, want %d", sum, accounts*funds)
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	audit.Wait()
	sum := 0
	for i := range accounts {
		n, _ := strconv.Atoi(f.get(name(i)))
		sum += n
	}
	if sum != accounts*funds {
		f.Errorf("in the end there is %d in all accounts, want %d", sum, accounts*funds)
	}
}

func testOpposedOrders(f *fixture) {
	const workers, rounds, keys = 4, 200, 12
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			tx := f.s.NewTx()
			for range rounds {
				tx.Begin()
				order := rand.Perm(keys)[:2+rand.IntN(keys-2)]
				for _, i := range order {
					tx.Add(0, fmt.Appendf(nil, "k%d", i))
				}
				if tx.Acquire(nil) != nil {
					panic("the keys were not acquired")
				}
				for _, i := range order {
					tx.Key(0, fmt.Appendf(nil, "k%d", i)).SetString([]byte("v"), store.NoTTL)
				}
				if tx.Commit() != nil {
					panic("the log refused")
				}
			}
		})
	}
	wg.Wait()
	if n := f.s.Counter.LockWaiting.Load(); n != 0 {
		f.Errorf("%d transactions count as waiting, want 0", n)
	}
}

func testAccounting(f *fixture) {
	for _, m := range f.modes() {
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprintf("%s key %d %0*d", m.name, i, i, 0))
		}
		tx := m.begin(names...)
		for i, name := range names {
			k := at(tx, name)
			k.SetString(make([]byte, i*i), store.NoTTL)
			switch i % 5 {
			case 1:
				k.SetExpiry(store.ExpireIn(1000))
			case 2:
				k.Append(make([]byte, 100))
			case 3:
				k.SetRange(i*3, []byte("x"))
			case 4:
				k.SetString([]byte("y"), store.ExpireAt(start+5000))
			}
		}
		f.commit(tx)
		if n, v := f.s.Size(0), f.s.Volatile(0); n != 40 || v != 16 || f.s.UsedMemory() <= 0 {
			f.Errorf("%s: %d keys, %d volatile, %d bytes; want 40, 16 and some", m.name, n, v, f.s.UsedMemory())
		}
		for _, name := range names {
			tx := m.begin(name)
			k := at(tx, name)
			k.Append(make([]byte, 1000))
			k.SetExpiry(store.NoTTL)
			k.SetExpiry(store.ExpireIn(500))
			f.commit(tx)
		}
		if n, v := f.s.Size(0), f.s.Volatile(0); n != 40 || v != 40 {
			f.Errorf("%s: %d keys, %d volatile; want 40 and 40", m.name, n, v)
		}
		tx = m.begin(names...)
		for _, name := range names {
			at(tx, name).Delete()
		}
		f.commit(tx)
		if n, v, used := f.s.Size(0), f.s.Volatile(0), f.s.UsedMemory(); n != 0 || v != 0 || used != 0 {
			f.Errorf("%s: %d keys, %d volatile, %d bytes when all are deleted; want 0", m.name, n, v, used)
		}
	}
	if f.s.PeakMemory() != 0 {
		f.Errorf("peak is %d though nobody has looked", f.s.PeakMemory())
	}
}
