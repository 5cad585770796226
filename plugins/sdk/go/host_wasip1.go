package latchkey

import "unsafe"

// The host functions, as docs/PLUGIN-ABI.md has them. None keeps a pointer.

//go:wasmimport latchkey_v1 get
//go:noescape
func hostGet(key unsafe.Pointer, keyLen uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport latchkey_v1 set
//go:noescape
func hostSet(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen, flags uint32, px int64) int32

//go:wasmimport latchkey_v1 del
//go:noescape
func hostDel(key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 exists
//go:noescape
func hostExists(key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 type
//go:noescape
func hostType(key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 incrby
//go:noescape
func hostIncrBy(key unsafe.Pointer, keyLen uint32, delta int64, out unsafe.Pointer) int32

//go:wasmimport latchkey_v1 cas
//go:noescape
func hostCAS(key unsafe.Pointer, keyLen uint32, old unsafe.Pointer, oldLen uint32, value unsafe.Pointer, valueLen uint32, px int64) int32

//go:wasmimport latchkey_v1 cad
//go:noescape
func hostCAD(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32) int32

//go:wasmimport latchkey_v1 cad_args
func hostCADArgs(key, value uint32) int32

//go:wasmimport latchkey_v1 pttl
//go:noescape
func hostPTTL(key unsafe.Pointer, keyLen uint32) int64

//go:wasmimport latchkey_v1 pexpire
//go:noescape
func hostPExpire(key unsafe.Pointer, keyLen uint32, ms int64) int32

//go:wasmimport latchkey_v1 key_state_get
//go:noescape
func hostKeyStateGet(key unsafe.Pointer, keyLen uint32, buf unsafe.Pointer, size uint32, version unsafe.Pointer) int32

//go:wasmimport latchkey_v1 key_state_set
//go:noescape
func hostKeyStateSet(key unsafe.Pointer, keyLen uint32, state unsafe.Pointer, stateLen, version, flags uint32, px int64) int32

//go:wasmimport latchkey_v1 key_state_read
//go:noescape
func hostKeyStateRead(key unsafe.Pointer, keyLen, offset uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport latchkey_v1 key_state_write
//go:noescape
func hostKeyStateWrite(key unsafe.Pointer, keyLen, offset uint32, part unsafe.Pointer, partLen uint32) int32

//go:wasmimport latchkey_v1 state_get
//go:noescape
func hostStateGet(buf unsafe.Pointer, size uint32, version unsafe.Pointer) int32

//go:wasmimport latchkey_v1 state_set
//go:noescape
func hostStateSet(state unsafe.Pointer, stateLen, version uint32) int32

//go:wasmimport latchkey_v1 call
//go:noescape
func hostCall(argv unsafe.Pointer, argc uint32) int32

//go:wasmimport latchkey_v1 call_type
func hostCallType(handle int32) int32

//go:wasmimport latchkey_v1 call_int
func hostCallInt(handle int32) int64

//go:wasmimport latchkey_v1 call_double
func hostCallDouble(handle int32) float64

//go:wasmimport latchkey_v1 call_len
func hostCallLen(handle int32) int32

//go:wasmimport latchkey_v1 call_elem
func hostCallElem(handle int32, index uint32) int32

//go:wasmimport latchkey_v1 call_bytes
//go:noescape
func hostCallBytes(handle int32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport latchkey_v1 call_free
func hostCallFree(handle int32)

//go:wasmimport latchkey_v1 reply_null
func hostReplyNull()

//go:wasmimport latchkey_v1 reply_int
func hostReplyInt(n int64)

//go:wasmimport latchkey_v1 reply_double
func hostReplyDouble(f float64)

//go:wasmimport latchkey_v1 reply_bool
func hostReplyBool(b int32)

//go:wasmimport latchkey_v1 reply_simple
//go:noescape
func hostReplySimple(text unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 reply_bulk
//go:noescape
func hostReplyBulk(b unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 reply_error
//go:noescape
func hostReplyError(text unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 reply_bignum
//go:noescape
func hostReplyBigNum(digits unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 reply_verbatim
//go:noescape
func hostReplyVerbatim(format, text unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 reply_array
func hostReplyArray(n uint32)

//go:wasmimport latchkey_v1 reply_map
func hostReplyMap(n uint32)

//go:wasmimport latchkey_v1 reply_set
func hostReplySet(n uint32)

//go:wasmimport latchkey_v1 reply_len
func hostReplyLen(n uint32)

//go:wasmimport latchkey_v1 block
//go:noescape
func hostBlock(keys unsafe.Pointer, nkeys uint32, timeout, token int64) int32

//go:wasmimport latchkey_v1 wake
//go:noescape
func hostWake(key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 bind_client
//go:noescape
func hostBindClient(key unsafe.Pointer, keyLen uint32, token int64) int32

//go:wasmimport latchkey_v1 unbind_client
//go:noescape
func hostUnbindClient(key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 timer_set
func hostTimerSet(ms, token int64) int64

//go:wasmimport latchkey_v1 timer_cancel
func hostTimerCancel(timer int64) int32

//go:wasmimport latchkey_v1 notify
//go:noescape
func hostNotify(event unsafe.Pointer, eventLen uint32, key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport latchkey_v1 config_get
//go:noescape
func hostConfigGet(name unsafe.Pointer, nameLen uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport latchkey_v1 random
//go:noescape
func hostRandom(buf unsafe.Pointer, n uint32)

//go:wasmimport latchkey_v1 client
//go:noescape
func hostClient(field int32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport latchkey_v1 now_ms
func hostNowMS() int64

//go:wasmimport latchkey_v1 fence
func hostFence() int64

//go:wasmimport latchkey_v1 log
//go:noescape
func hostLog(level int32, text unsafe.Pointer, n uint32)
