package plugins

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The frame in front of a command's arguments:
//
//	offset  0       4       8          12        16            16+8i
//	        argc    nkeys   first_key  db        ptr0 len0 ... ptr_i len_i ...
//
// then the bytes of all arguments, one after the other.
const frameHead = 16

func (in *instance) writeFrame(args [][]byte) error {
	at := frameHead + 8*len(args)
	size := at
	for _, a := range args {
		size += len(a)
	}
	if size > int(in.arenaLen) {
		if err := in.growArena(size); err != nil {
			return err
		}
	}
	b, ok := in.memory.at(in.arena, uint32(size))
	if !ok {
		return errors.New("the room that lk_arena gave is not in memory")
	}
	first := 0
	if len(in.declared) > 0 {
		first = in.declared[0].Index
	}
	binary.LittleEndian.PutUint64(b, uint64(len(args))|uint64(len(in.declared))<<32)
	binary.LittleEndian.PutUint64(b[8:], uint64(first)|uint64(in.db)<<32)
	pairs := b[frameHead:at]
	for _, a := range args {
		n := len(a)
		binary.LittleEndian.PutUint64(pairs, uint64(in.arena+uint32(at))|uint64(n)<<32)
		pairs = pairs[8:]
		to := b[at:][:n]
		at += n
		// Most arguments are shorter than it takes to find out how they are copied
		// best: they are two words that overlap.
		switch {
		case n > 16 || n < 4:
			copy(to, a)
		case n >= 8:
			last := binary.LittleEndian.Uint64(a[n-8:])
			binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(a))
			binary.LittleEndian.PutUint64(to[n-8:], last)
		default:
			last := binary.LittleEndian.Uint32(a[n-4:])
			binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(a))
			binary.LittleEndian.PutUint32(to[n-4:], last)
		}
	}
	return nil
}

// errNoRoom is that arguments do not fit into the guest, which is no fault of the guest's: whoever
// sends such must not be able to have it disabled.
type errNoRoom struct{ reason string }

func (e *errNoRoom) Error() string { return e.reason }

// unfit is what becomes of a call whose frame was not written: an error ends the instance.
func (in *instance) unfit(err error) error {
	var e *errNoRoom
	if errors.As(err, &e) {
		in.failed = in.m.problem(e.reason)
		return nil
	}
	return err
}

// growArena asks the guest for more room.
func (in *instance) growArena(size int) error {
	if most := in.m.host.pages(in.m.man) << 16; size > most {
		return &errNoRoom{fmt.Sprintf("the arguments take %d bytes, the module's memory may have %d", size, most)}
	}
	size = max(size, 4096)
	in.stack[0] = uint64(size)
	if err := in.callGuest(in.arenaFn); err != nil {
		return errors.New("lk_arena: " + reason(err))
	}
	at := uint32(in.stack[0])
	switch {
	case at == 0:
		return &errNoRoom{fmt.Sprintf("lk_arena(%d) returned 0: no room for the arguments", size)}
	case at%8 != 0 || uint64(at)+uint64(size) > uint64(len(in.memory)):
		return fmt.Errorf("lk_arena(%d) returned %d: no room for the arguments", size, at)
	}
	in.arena, in.arenaLen = at, uint32(size)
	return nil
}
