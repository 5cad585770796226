package store

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// Op says what an Effect did to its key or database.
type Op uint8

// The effects. Each can be written as one Redis command; AppendRESP says which.
const (
	OpSet      Op = iota + 1 // SET key value [PXAT at]: value and expiry replaced
	OpDel                    // DEL key
	OpAppend                 // APPEND key value
	OpSetRange               // SETRANGE key n value
	OpExpire                 // PEXPIREAT key at
	OpPersist                // PERSIST key
	OpFlushDB                // FLUSHDB
	OpFlushAll               // FLUSHALL
	OpSwapDB                 // SWAPDB db n
	OpCommand                // args[0] key args[1:]
	OpBeyond                 // args: a command beyond the keyspace, see Tx.Beyond
)

// Effect is one change that a transaction made, with absolute expiry: what a
// log or a replica must replay, never the script that caused it. Its bytes are
// views that live until Append returns.
type Effect struct {
	Op    Op
	DB    int
	Key   []byte
	Value []byte
	At    int64 // expiry in Unix ms for OpSet (0: none) and OpExpire
	N     int64 // offset of OpSetRange, the other database of OpSwapDB

	// Args are the command of OpCommand and what follows its key, or the whole
	// command of OpBeyond. They are kept by nobody but never change.
	Args []string

	rel int64 // relative TTL in ms, made absolute at commit
}

// AppendRESP appends the effect as a Redis command in RESP.
func (e *Effect) AppendRESP(dst []byte) []byte {
	switch e.Op {
	case OpSet:
		if e.At != 0 {
			dst = appendArgs(dst, 5, "SET", e.Key, e.Value)
			dst = appendBulk(dst, []byte("PXAT"))
			return appendBulk(dst, strconv.AppendInt(nil, e.At, 10))
		}
		return appendArgs(dst, 3, "SET", e.Key, e.Value)
	case OpDel:
		return appendArgs(dst, 2, "DEL", e.Key)
	case OpAppend:
		return appendArgs(dst, 3, "APPEND", e.Key, e.Value)
	case OpSetRange:
		return appendArgs(dst, 4, "SETRANGE", e.Key, strconv.AppendInt(nil, e.N, 10), e.Value)
	case OpExpire:
		return appendArgs(dst, 3, "PEXPIREAT", e.Key, strconv.AppendInt(nil, e.At, 10))
	case OpPersist:
		return appendArgs(dst, 2, "PERSIST", e.Key)
	case OpFlushDB:
		return appendArgs(dst, 1, "FLUSHDB")
	case OpFlushAll:
		return appendArgs(dst, 1, "FLUSHALL")
	case OpSwapDB:
		return appendArgs(dst, 3, "SWAPDB", strconv.AppendInt(nil, int64(e.DB), 10), strconv.AppendInt(nil, e.N, 10))
	case OpCommand:
		dst = appendArgs(dst, len(e.Args)+1, e.Args[0], e.Key)
		for _, a := range e.Args[1:] {
			dst = appendBulk(dst, a)
		}
		return dst
	case OpBeyond:
		dst = appendArgs(dst, len(e.Args), e.Args[0])
		for _, a := range e.Args[1:] {
			dst = appendBulk(dst, a)
		}
		return dst
	}
	panic("store: effect without an operation")
}

func appendArgs(dst []byte, n int, name string, args ...[]byte) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, '\r', '\n')
	dst = appendBulk(dst, []byte(name))
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}

func appendBulk[T []byte | string](dst []byte, b T) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(b)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// EffectLog receives the effects of each committing transaction, in the order
// of execution. Several effects of one Append belong together (a log writes
// them between MULTI and EXEC).
type EffectLog interface {
	// Append takes the effects of one transaction and gives it its LSN, which
	// grows by every Append. An error means that nothing was logged: the
	// transaction is rolled back. The effects' bytes may not be kept.
	Append(effects []Effect) (lsn uint64, err error)
	// Wait returns when all up to lsn is as durable as the policy promises. An
	// error means that the outcome is unknown.
	Wait(lsn uint64) error
}

// MemoryLog is an EffectLog that is as durable as the process. With Keep it
// remembers every record as RESP, for tests.
type MemoryLog struct {
	Keep bool

	lsn atomic.Uint64
	mu  sync.Mutex
	log [][]byte
}

// Append implements EffectLog.
func (l *MemoryLog) Append(effects []Effect) (uint64, error) {
	if !l.Keep {
		return l.lsn.Add(1), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var rec []byte
	for i := range effects {
		rec = effects[i].AppendRESP(rec)
	}
	l.log = append(l.log, rec)
	return l.lsn.Add(1), nil
}

// Wait implements EffectLog.
func (l *MemoryLog) Wait(uint64) error { return nil }

// LSN is the number of the newest record.
func (l *MemoryLog) LSN() uint64 { return l.lsn.Load() }

// Records returns what was kept, one RESP text per transaction.
func (l *MemoryLog) Records() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]string, len(l.log))
	for i, r := range l.log {
		out[i] = string(r)
	}
	return out
}
