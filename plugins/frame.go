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
	b := append(in.frame[:0], make([]byte, frameHead)...)
	binary.LittleEndian.PutUint32(b, uint32(len(args)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(in.declared)))
	if len(in.declared) > 0 {
		binary.LittleEndian.PutUint32(b[8:], uint32(in.declared[0].Index))
	}
	binary.LittleEndian.PutUint32(b[12:], uint32(in.db))
	at := in.arena + uint32(frameHead+8*len(args))
	for _, a := range args {
		b = binary.LittleEndian.AppendUint32(b, at)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a)))
		at += uint32(len(a))
	}
	for _, a := range args {
		b = append(b, a...)
	}
	in.frame = b
	if !in.mem.Write(in.arena, b) {
		return errors.New("the room that lk_arena gave is not in memory")
	}
	return nil
}
