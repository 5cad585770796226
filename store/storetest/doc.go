// Package storetest is the suite that every store must pass: what the keyspace
// keeps inside, and what its effect log is made of, may change; what Run checks
// may not.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(o store.Options) (*store.Store, error) { return store.New(o) })
//	}
//
// Most of it runs in testing/synctest bubbles: waiting for a lock is seen by the
// goroutine standing still, and time passes only when a test says so.
package storetest
