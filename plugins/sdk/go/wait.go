package latchkey

import "unsafe"

// Block has the client wait for keys that the command declares, for at most timeout milliseconds,
// 0 for ever. Run then returns nil without a reply; what it has changed is undone. Wake is
// called, with the token, when one of the keys is changed, deleted or expires, and it is this
// client's turn.
func (c *Call) Block(timeout, token int64, keys ...[]byte) error {
	frame := make([]arg, len(keys))
	for i, k := range keys {
		frame[i] = argOf(k)
	}
	return failed(hostBlock(unsafe.Pointer(unsafe.SliceData(frame)), uint32(len(frame)), timeout, token))
}

// errAgain is ErrAgain's type, so that it is no reply.
type errAgain struct{}

func (errAgain) Error() string { return "latchkey: the client goes on waiting" }

// ErrAgain, returned by Wake without a reply, has the client go on waiting; it keeps its
// place.
var ErrAgain error = errAgain{}

// WakeKey wakes at commit those who wait for the key, though it does not change.
func (c *Call) WakeKey(key []byte) error { return failed(hostWake(start(key), uint32(len(key)))) }

// BindClient has Closed called, with the key and the token, when the connection of the call's client
// ends. Of one client and key the last token counts.
func (c *Call) BindClient(key []byte, token int64) error {
	return failed(hostBindClient(start(key), uint32(len(key)), token))
}

// UnbindClient takes back what BindClient has bound to the key, for whatever client.
func (c *Call) UnbindClient(key []byte) error {
	return failed(hostUnbindClient(start(key), uint32(len(key))))
}

// SetTimer has Timer called with the token, ms milliseconds after commit. It returns the
// timer's number.
func (c *Call) SetTimer(ms, token int64) (timer int64, err error) {
	timer = hostTimerSet(ms, token)
	if timer <= int64(ErrWrongType) {
		return 0, Code(timer)
	}
	return timer, nil
}

// CancelTimer takes a timer back; there is false if it has none of that number.
func (c *Call) CancelTimer(timer int64) (there bool, err error) {
	code := hostTimerCancel(timer)
	return code == 1, failed(code)
}
