//go:build !wasip1

package latchkey

import "unsafe"

// Outside of latchkey there is no host: a plugin that is built for this machine
// prints its manifest, and its logic can be tested as far as it asks nothing.

const outside = "latchkey: this function works in a module that latchkey runs, and not outside of it"

func hostGet(key unsafe.Pointer, keyLen uint32, buf unsafe.Pointer, size uint32) int32 {
	panic(outside)
}

func hostSet(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen, flags uint32, px int64) int32 {
	panic(outside)
}
func hostDel(key unsafe.Pointer, keyLen uint32) int32    { panic(outside) }
func hostExists(key unsafe.Pointer, keyLen uint32) int32 { panic(outside) }
func hostType(key unsafe.Pointer, keyLen uint32) int32   { panic(outside) }
func hostIncrBy(key unsafe.Pointer, keyLen uint32, delta int64, out unsafe.Pointer) int32 {
	panic(outside)
}

func hostCAS(key unsafe.Pointer, keyLen uint32, old unsafe.Pointer, oldLen uint32, value unsafe.Pointer, valueLen uint32, px int64) int32 {
	panic(outside)
}

func hostCAD(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32) int32 {
	panic(outside)
}
func hostCADArgs(key, value uint32) int32                           { panic(outside) }
func hostPTTL(key unsafe.Pointer, keyLen uint32) int64              { panic(outside) }
func hostPExpire(key unsafe.Pointer, keyLen uint32, ms int64) int32 { panic(outside) }
func hostKeyStateGet(key unsafe.Pointer, keyLen uint32, buf unsafe.Pointer, size uint32, version unsafe.Pointer) int32 {
	panic(outside)
}

func hostKeyStateSet(key unsafe.Pointer, keyLen uint32, state unsafe.Pointer, stateLen, version, flags uint32, px int64) int32 {
	panic(outside)
}

func hostKeyStateRead(key unsafe.Pointer, keyLen, offset uint32, buf unsafe.Pointer, size uint32) int32 {
	panic(outside)
}

func hostKeyStateWrite(key unsafe.Pointer, keyLen, offset uint32, part unsafe.Pointer, partLen uint32) int32 {
	panic(outside)
}
func hostStateGet(buf unsafe.Pointer, size uint32, version unsafe.Pointer) int32 { panic(outside) }
func hostStateSet(state unsafe.Pointer, stateLen, version uint32) int32          { panic(outside) }
func hostCall(argv unsafe.Pointer, argc uint32) int32                            { panic(outside) }
func hostCallType(handle int32) int32                                            { panic(outside) }
func hostCallInt(handle int32) int64                                             { panic(outside) }
func hostCallDouble(handle int32) float64                                        { panic(outside) }
func hostCallLen(handle int32) int32                                             { panic(outside) }
func hostCallElem(handle int32, index uint32) int32                              { panic(outside) }
func hostCallBytes(handle int32, buf unsafe.Pointer, size uint32) int32          { panic(outside) }
func hostCallFree(handle int32)                                                  { panic(outside) }
func hostReplyNull()                                                             { panic(outside) }
func hostReplyInt(n int64)                                                       { panic(outside) }
func hostReplyDouble(f float64)                                                  { panic(outside) }
func hostReplyBool(b int32)                                                      { panic(outside) }
func hostReplySimple(text unsafe.Pointer, n uint32)                              { panic(outside) }
func hostReplyBulk(b unsafe.Pointer, n uint32)                                   { panic(outside) }
func hostReplyError(text unsafe.Pointer, n uint32)                               { panic(outside) }
func hostReplyBigNum(digits unsafe.Pointer, n uint32)                            { panic(outside) }
func hostReplyVerbatim(format, text unsafe.Pointer, n uint32)                    { panic(outside) }
func hostReplyArray(n uint32)                                                    { panic(outside) }
func hostReplyMap(n uint32)                                                      { panic(outside) }
func hostReplySet(n uint32)                                                      { panic(outside) }
func hostReplyLen(n uint32)                                                      { panic(outside) }
func hostBlock(keys unsafe.Pointer, nkeys uint32, timeout, token int64) int32    { panic(outside) }
func hostWake(key unsafe.Pointer, keyLen uint32) int32                           { panic(outside) }
func hostBindClient(key unsafe.Pointer, keyLen uint32, token int64) int32        { panic(outside) }
func hostUnbindClient(key unsafe.Pointer, keyLen uint32) int32                   { panic(outside) }
func hostTimerSet(ms, token int64) int64                                         { panic(outside) }
func hostTimerCancel(timer int64) int32                                          { panic(outside) }
func hostNotify(event unsafe.Pointer, eventLen uint32, key unsafe.Pointer, keyLen uint32) int32 {
	panic(outside)
}

func hostConfigGet(name unsafe.Pointer, nameLen uint32, buf unsafe.Pointer, size uint32) int32 {
	panic(outside)
}
func hostRandom(buf unsafe.Pointer, n uint32)                       { panic(outside) }
func hostClient(field int32, buf unsafe.Pointer, size uint32) int32 { panic(outside) }
func hostNowMS() int64                                              { panic(outside) }
func hostFence() int64                                              { panic(outside) }
func hostLog(level int32, text unsafe.Pointer, n uint32)            { panic(outside) }
