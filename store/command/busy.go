package command

import "github.com/latchkey-proxy/latchkey/store"

// SlowError tells those who have waited too long for a key what holds it. It is a
// store.ErrBusy; who runs for long hands it to Tx.BusyAs.
type SlowError struct{ reply string }

// SlowFunction is what those get who want a key that a slow function holds, as
// Redis 7 words it: FUNCTION KILL ends functions, SCRIPT KILL scripts.
var SlowFunction = &SlowError{ErrBusyFunction}

func (e *SlowError) Error() string { return "store: the key is held: " + e.reply }

// Unwrap makes it a store.ErrBusy.
func (e *SlowError) Unwrap() error { return store.ErrBusy }
