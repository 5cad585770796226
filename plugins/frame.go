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
	size := frameHead + 8*len(args)
	for _, a := range args {
		size += len(a)
	}
	if size > 1<<30 {
		return errors.New("the arguments are larger than a guest's memory may be")
	}
	if uint32(size) > in.arenaLen {
		in.stack[0] = uint64(max(size, 4096))
		if err := in.arenaFn.CallWithStack(in, in.stack); err != nil {
			return errors.New("lk_arena: " + reason(err))
		}
		at := uint32(in.stack[0])
		if at == 0 || at%8 != 0 || uint64(at)+uint64(max(size, 4096)) > uint64(in.mem.Size()) {
			return fmt.Errorf("lk_arena(%d) returned %d: no room for the arguments", max(size, 4096), at)
		}
		in.arena, in.arenaLen = at, uint32(max(size, 4096))
	}
	b, ok := in.mem.Read(in.arena, uint32(size))
	if !ok {
		return errors.New("the room that lk_arena gave is not in memory")
	}
	first := uint32(0)
	if len(in.declared) > 0 {
		first = uint32(in.declared[0].Index)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(args))|uint64(len(in.declared))<<32)
	binary.LittleEndian.PutUint64(b[8:], uint64(first)|uint64(in.db)<<32)
	at := frameHead + 8*len(args)
	head := b[frameHead:at]
	for _, a := range args {
		binary.LittleEndian.PutUint64(head, uint64(in.arena+uint32(at))|uint64(len(a))<<32)
		head = head[8:]
		at += copy(b[at:], a)
	}
	return nil
}
