package storetest

import (
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var parkingTests = []test{
	{name: "who is parked is handed the key by a change", run: testParkedByChange},
	{name: "who is parked is handed the key in the millisecond it expires", run: testParkedByExpiry},
}

// park has somebody wait until there is, or with gone is not, a string at key,
// which he takes or takes the place of.
func (f *fixture) park(key string, gone bool) <-chan error {
	out := make(chan error, 1)
	go func() {
		tx := f.s.NewTx()
		if err := lockIn(tx, nil, key); err != nil {
			out <- err
			return
		}
		out <- tx.Park(0, [][]byte{[]byte(key)}, nil, func() (store.Outcome, error) {
			k := tx.Key(0, []byte(key))
			switch {
			case k.Exists() == gone:
				return store.NotYet, nil
			case gone:
				k.SetString([]byte("mine"), store.NoTTL)
			default:
				k.Delete()
			}
			return store.Done, nil
		})
	}()
	synctest.Wait()
	return out
}

func testParkedByChange(f *fixture) {
	first, second := f.park("k", false), f.park("k", false)
	f.set("k", "v")
	synctest.Wait()
	select {
	case err := <-first:
		if err != nil {
			f.Errorf("the first ended with %v", err)
		}
	default:
		f.Fatalf("the first waits though the key was set")
	}
	f.waits("the second, for whom nothing was left,", second)
	f.set("k", "w")
	if err := <-second; err != nil {
		f.Errorf("the second ended with %v", err)
	}
}

func testParkedByExpiry(f *fixture) {
	f.setTTL("k", "v", store.ExpireIn(1000))
	first := f.park("k", true)
	f.clock.Advance(999 * time.Millisecond)
	time.Sleep(999 * time.Millisecond)
	f.waits("who waits for an expiry", first)
	f.clock.Advance(time.Millisecond)
	time.Sleep(time.Millisecond)
	synctest.Wait()
	select {
	case err := <-first:
		if err != nil {
			f.Errorf("the wait ended with %v", err)
		}
	default:
		f.Fatalf("the key has expired, and who waits for it waits still")
	}
}
