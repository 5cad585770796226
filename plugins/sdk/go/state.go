package latchkey

import "unsafe"

// KeyState is the state that this module keeps at key, a copy, with the number that says
// how it is encoded; ok is false if there is no key. ErrWrongType for any other value.
func (c *Call) KeyState(key []byte) (state []byte, version uint32, ok bool, err error) {
	state, ok, err = read(nil, func(buf unsafe.Pointer, size uint32) int32 {
		return hostKeyStateGet(start(key), uint32(len(key)), buf, size, unsafe.Pointer(&version))
	})
	return state, version, ok, err
}

// SetKeyState writes a state at key, as Set writes a string.
func (c *Call) SetKeyState(key, state []byte, version uint32, o SetOptions) (done bool, err error) {
	flags, px := o.pack()
	code := hostKeyStateSet(start(key), uint32(len(key)), start(state), uint32(len(state)), version, flags, px)
	return code == 1, failed(code)
}

// ReadKeyState copies a part of the state at key into buf, from offset on, and returns
// how many bytes there were; ok is false if there is no key.
func (c *Call) ReadKeyState(key []byte, offset uint32, buf []byte) (n int, ok bool, err error) {
	code := hostKeyStateRead(start(key), uint32(len(key)), offset, start(buf), uint32(len(buf)))
	return max(int(code), 0), code >= 0, failed(code)
}

// WriteKeyState overwrites a part of the state at key, in place; ok is false if there
// is no key.
func (c *Call) WriteKeyState(key []byte, offset uint32, part []byte) (ok bool, err error) {
	code := hostKeyStateWrite(start(key), uint32(len(key)), offset, start(part), uint32(len(part)))
	return code == 1, failed(code)
}

// State is the state of the module, a copy; ok is false if it has none yet.
func (c *Call) State() (state []byte, version uint32, ok bool, err error) {
	state, ok, err = read(nil, func(buf unsafe.Pointer, size uint32) int32 {
		return hostStateGet(buf, size, unsafe.Pointer(&version))
	})
	return state, version, ok, err
}

// SetState writes the state of the module.
func (c *Call) SetState(state []byte, version uint32) error {
	return failed(hostStateSet(start(state), uint32(len(state)), version))
}
