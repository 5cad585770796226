package store

import (
	"math"
	"unsafe"
)

// Key is a transaction's handle of one acquired key. It lives until the
// transaction ends. Reads see what the transaction itself has written.
type Key struct {
	tx      *Tx
	sh      *shard
	db      int // physical
	logical int
	hash    uint64
	name    []byte
	next    *Key // in tx.index

	base     *entry // installed in the shard, nil: absent
	baseSize int64  // of base, before the first change
	baseTTL  bool   // base had an expiry
	e        *entry // as the transaction sees it, nil: absent or expired
	expired  bool   // base is there, but its time has passed
	changed  bool   // to be installed at commit
	owned    bool   // e may be written in place
	private  bool   // the bytes of e are the transaction's own
	signal   bool   // wake blocked commands at commit
	late     bool   // was not declared
	rel      int64  // TTL in ms that begins to run at commit
	saved    uint32 // 1 + epoch of the newest undo record

	lock *keyLock
}

func (k *Key) reset() { *k = Key{} }

// load finds the entry. Under the latch.
func (k *Key) load() {
	if k.tx.flushed != nil && k.tx.flushed[k.db] {
		return
	}
	k.tx.lsn = max(k.tx.lsn, k.sh.lsn) // that it is absent is news too
	e := k.sh.get(k.db, k.hash, k.name)
	if e == nil {
		return
	}
	k.base = e
	if e.expire != 0 {
		k.baseTTL = true
		// Several keys may be waited for one after the other: time is read
		// when all of them are held, so the verdict of a locked transaction is
		// given at its first look.
		if k.tx.mode == short || k.lock == nil {
			k.judge()
			return
		}
	}
	k.e = e
}

// judge tells whether the entry's time has passed.
func (k *Key) judge() {
	if k.base.expire <= k.tx.Now() {
		k.expired, k.e = true, nil
		return
	}
	k.e = k.base
}

// see returns the entry as the transaction sees it.
func (k *Key) see() *entry {
	if k.e != nil && k.e.expire != 0 {
		k.lapse()
	}
	return k.e
}

// lapse is see of a key that has an expiry.
func (k *Key) lapse() {
	if k.e == k.base && !k.changed && k.e.expire <= k.tx.Now() {
		k.expired, k.e = true, nil
	}
}

// install puts the change into the shard. Under the latch.
func (k *Key) install() {
	sh, s := k.sh, k.tx.s
	base := k.base
	if mutantNoKeyLock { // somebody else may have installed meanwhile
		base = sh.get(k.db, k.hash, k.name)
	}
	var entries, volatile, bytes int64
	if k.expired {
		s.Counter.Expired.Add(1)
	}
	if base != nil {
		bytes -= k.baseSize
		if k.baseTTL {
			volatile--
		}
		entries--
	}
	switch {
	case k.e != nil:
		if k.e.expire != 0 {
			volatile++
		}
		k.e.settle()
		bytes += k.e.size()
		entries++
		sh.put(k.hash, k.e, base)
	case base != nil:
		sh.remove(k.hash, base)
	}
	s.account(k.db, entries, volatile, bytes)
	sh.lsn = max(sh.lsn, k.tx.lsn) // others that hold keys of the shard may install later commits before
	if len(sh.watch) != 0 {
		sh.touchWatched(k.db, k.hash, k.name, k.expired && k.e == nil)
	}
}

// save makes an undo record of the key for the innermost savepoint.
func (k *Key) save() {
	tx := k.tx
	if k.saved == tx.epoch+1 {
		return
	}
	u := next(&tx.undo)
	u.k, u.e = k, k.e
	u.changed, u.owned, u.private, u.signal, u.rel, u.saved = k.changed, k.owned, k.private, k.signal, k.rel, k.saved
	// A locked transaction never writes to an entry that is not its own.
	if e := k.e; e != nil && (k.owned || tx.mode == short) {
		u.val, u.expire, u.restore = e.value, e.expire, true
		if e.holds() {
			u.room = e.room
		}
	}
	k.saved = tx.epoch + 1
}

// begin prepares the first and every further change of the key.
func (k *Key) begin() {
	k.see()
	if !k.changed && k.base != nil && k.baseSize == 0 {
		k.baseSize = k.base.size()
	}
	first := !k.changed
	k.save()
	k.changed = true
	if first && k.expired {
		k.tx.expire(k)
	}
}

// own prepares a change of the present entry, which must be there.
func (k *Key) own() *entry {
	k.begin()
	if !k.owned {
		if k.tx.mode != short {
			k.e = k.e.clone()
		}
		k.owned = true
	}
	return k.e
}

// expire records that a writer has found the key's time passed and removes it.
func (tx *Tx) expire(k *Key) {
	tx.effects = append(tx.effects, Effect{Op: OpDel, DB: k.logical, Key: k.name})
	if classes := tx.s.Notify(); classes&NotifyExpired != 0 {
		tx.Emit(Event{Kind: EventKeyspace, DB: k.logical, Class: NotifyExpired, Channel: []byte("expired"), Payload: append([]byte(nil), k.name...)})
	}
}

// The classes of keyspace events, as bits of SetNotify.
const (
	NotifyKeyspace = 1 << iota // K: __keyspace@<db>__ channels
	NotifyKeyevent             // E: __keyevent@<db>__ channels
	NotifyGeneric              // g: DEL, EXPIRE, RENAME ...
	NotifyString               // $
	NotifyList                 // l
	NotifySet                  // s
	NotifyHash                 // h
	NotifyZset                 // z
	NotifyExpired              // x
	NotifyEvicted              // e
	NotifyStream               // t
	NotifyModule               // d
	NotifyMiss                 // m
	NotifyNew                  // n
)

// Kind is the type of the key's value, None when it is absent or expired.
func (k *Key) Kind() Kind {
	e := k.see()
	if e == nil {
		return None
	}
	return e.kind
}

// Exists tells whether the key is there.
func (k *Key) Exists() bool { return k.see() != nil }

// Name is the key's name, a view.
func (k *Key) Name() []byte { return k.name }

// DB is the key's logical database.
func (k *Key) DB() int { return k.logical }

// Str is the value of a String, a view that must not be written; nil when the
// key is absent or of another kind.
func (k *Key) Str() []byte {
	e := k.see()
	if e == nil {
		return nil
	}
	return e.str
}

// Raw tells whether a String was changed in place since it was set (APPEND,
// SETRANGE, SETBIT): OBJECT ENCODING then answers raw.
func (k *Key) Raw() bool {
	e := k.see()
	return e != nil && e.raw
}

// Expiry is the time the key expires at, in Unix ms; 0 when it never does or is
// absent. A TTL set by this transaction counts from its time until it commits.
func (k *Key) Expiry() int64 {
	e := k.see()
	if e == nil {
		return 0
	}
	return e.expire
}

// Touch marks the key as used just now.
func (k *Key) Touch() {
	if k.e != nil {
		k.e.access = k.tx.s.second.Load()
	}
}

// IdleSeconds is how long the key was not touched.
func (k *Key) IdleSeconds() int64 {
	e := k.see()
	if e == nil {
		return 0
	}
	return max(0, int64(k.tx.s.second.Load())-int64(e.access))
}

// SetIdle makes the key look as if it was last touched seconds ago (RESTORE
// IDLETIME). The key must exist.
func (k *Key) SetIdle(seconds int64) {
	k.own().access = uint32(max(0, int64(k.tx.s.second.Load())-seconds))
}

// Size is what the entry takes in memory by our own account, in bytes.
func (k *Key) Size() int64 {
	e := k.see()
	if e == nil {
		return 0
	}
	return e.size()
}

// TTL says what becomes of a key's expiry when its value is set.
type TTL struct {
	at   int64
	keep bool
	rel  bool
}

// NoTTL removes an expiry, KeepTTL leaves it as it is.
var (
	NoTTL   = TTL{}
	KeepTTL = TTL{keep: true}
)

// ExpireAt is an absolute expiry in Unix ms; a time that has passed deletes the
// key when it is set.
func ExpireAt(milli int64) TTL { return TTL{at: milli} }

// ExpireIn is a relative expiry in ms, above 0. It begins to run at commit.
func ExpireIn(milli int64) TTL { return TTL{at: milli, rel: true} }

// SetString sets the key to a copy of v, whatever it was before.
func (k *Key) SetString(v []byte, ttl TTL) {
	if e, fresh := k.renew(); !fresh || !e.hold(v) {
		e.str = append(make([]byte, 0, len(v)), v...)
	}
	k.setString(ttl)
}

// SetStringOwned sets the key to v itself, which the store owns from then on.
func (k *Key) SetStringOwned(v []byte, ttl TTL) {
	if e, fresh := k.renew(); !fresh || !e.hold(v) {
		e.str = v
	}
	k.setString(ttl)
}

// renew prepares the entry for another value. It is fresh unless the transaction
// has written to it: then effects tell of the bytes in its room.
func (k *Key) renew() (e *entry, fresh bool) {
	fresh = !k.changed
	k.begin()
	switch {
	case k.e == nil:
		return k.create(), true
	case k.owned || k.tx.mode == short:
	default:
		k.e = k.e.clone()
	}
	k.owned = true
	return k.e, fresh
}

// setString is what is left to do when the entry has its bytes.
func (k *Key) setString(ttl TTL) {
	e := k.e
	e.kind, e.raw, e.text = String, false, false
	if e.coll != nil {
		e.coll = nil
	}
	k.private = true
	e.access = k.tx.s.second.Load()
	eff := next(&k.tx.effects)
	eff.Op, eff.DB, eff.Key, eff.Value = OpSet, k.logical, k.name, e.str
	switch {
	case ttl.keep:
		eff.At, eff.rel = e.expire, k.rel
	case ttl.rel:
		e.expire = saturate(k.tx.Now(), ttl.at)
		k.rel = ttl.at
		eff.At, eff.rel = e.expire, ttl.at
	default:
		e.expire = ttl.at
		k.rel = 0
		eff.At = ttl.at
	}
	if ttl.at != 0 && !ttl.rel && ttl.at <= k.tx.Now() {
		k.Delete()
	}
}

// saturate adds a relative time in ms to now without overflow.
func saturate(now, rel int64) int64 {
	if rel > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + rel
}

// Append appends v to a String, which must exist, and returns the new length.
func (k *Key) Append(v []byte) int {
	e := k.own()
	old := len(e.str)
	need := old + len(v)
	if need <= cap(e.str) && (k.private || k.tx.mode == short) {
		// Bytes past the length belong to nobody: no view reaches them.
		e.str = append(e.str, v...)
	} else {
		// A locked transaction leaves the spare bytes of the committed value
		// alone, lest an undone append and a later one share them.
		if !k.tx.take(grow(old, need)) {
			return old
		}
		grown := make([]byte, old, grow(old, need))
		copy(grown, e.str)
		e.str = append(grown, v...)
		k.private = true
	}
	e.raw = true
	k.tx.effects = append(k.tx.effects, Effect{Op: OpAppend, DB: k.logical, Key: k.name, Value: k.told(e.str[old:need:need])})
	return need
}

// grow is the capacity for need bytes of a value that has begun to grow: double
// up to 1 MiB and then 1 MiB more, as Redis's strings grow.
func grow(old, need int) int {
	if old == 0 {
		return need
	}
	if need < 1<<20 {
		return need * 2
	}
	return need + 1<<20
}

// SetRange overwrites the bytes from off on; a gap, and an absent key, is filled
// with zeros first. v must not be empty. It returns the new length.
func (k *Key) SetRange(off int, v []byte) int {
	var e *entry
	if k.see() == nil {
		e = k.create()
	} else {
		e = k.own()
	}
	old, need := len(e.str), off+len(v)
	switch {
	case need <= old:
		k.saveBytes(e.str[off:need])
	case need <= cap(e.str) && (k.private || k.tx.mode == short):
		// As in Append. What lies in the spare bytes may be left from a longer
		// value that was undone.
		if off < old {
			k.saveBytes(e.str[off:])
		}
		e.str = e.str[:need]
		if off > old {
			clear(e.str[old:off])
		}
	default:
		if !k.tx.take(grow(old, need)) {
			return old
		}
		grown := make([]byte, need, grow(old, need))
		copy(grown, e.str)
		e.str = grown
		k.private = true
	}
	copy(e.str[off:], v)
	e.raw = true
	k.tx.effects = append(k.tx.effects, Effect{Op: OpSetRange, DB: k.logical, Key: k.name, Value: k.told(e.str[off:need:need]), N: int64(off)})
	return len(e.str)
}

// told is what an effect says of a part of the value. In a transaction that may
// run for long it is a copy: a view would keep every array alive that the value
// has ever outgrown.
func (k *Key) told(part []byte) []byte {
	if k.tx.mode == short {
		return part
	}
	return append(make([]byte, 0, len(part)), part...)
}

// saveBytes makes an undo record of bytes that are about to be overwritten.
func (k *Key) saveBytes(at []byte) {
	k.tx.weigh(len(at) + int(unsafe.Sizeof(undo{})+unsafe.Sizeof(otherUndo{})))
	k.tx.undo = append(k.tx.undo, undo{k: k, other: &otherUndo{at: at, old: append(make([]byte, 0, len(at)), at...)}})
}

// create makes an empty String of an absent key.
func (k *Key) create() *entry {
	k.begin()
	e := newEntry(k.name)
	e.db, e.kind, e.access = int32(k.db), String, k.tx.s.second.Load()
	k.e, k.owned, k.private, k.rel = e, true, true, 0
	return e
}

// SetRaw marks a String, which must exist, as if it was changed in place: the
// result of BITOP answers raw to OBJECT ENCODING, whatever its bytes.
func (k *Key) SetRaw() { k.own().raw = true }

// SetText marks a String, which must exist, as made as text: a result of
// INCRBYFLOAT is none of OBJECT ENCODING's integers, even if it looks like one.
func (k *Key) SetText() { k.own().text = true }

// Text tells whether a String was marked by SetText since it was set.
func (k *Key) Text() bool {
	e := k.see()
	return e != nil && e.text
}

// SetExpiry sets, replaces or (with NoTTL) removes the expiry of a key that
// exists. A time that has passed deletes the key.
func (k *Key) SetExpiry(ttl TTL) {
	if ttl.keep {
		return
	}
	if !ttl.rel && ttl.at != 0 && ttl.at <= k.tx.Now() {
		k.Delete()
		return
	}
	e := k.own()
	eff := Effect{Op: OpExpire, DB: k.logical, Key: k.name}
	switch {
	case ttl.rel:
		e.expire = saturate(k.tx.Now(), ttl.at)
		k.rel = ttl.at
		eff.At, eff.rel = e.expire, ttl.at
	case ttl.at == 0:
		eff.Op = OpPersist
		e.expire, k.rel = 0, 0
	default:
		e.expire, k.rel = ttl.at, 0
		eff.At = ttl.at
	}
	k.tx.effects = append(k.tx.effects, eff)
}

// Delete removes the key and tells whether it was there.
func (k *Key) Delete() bool {
	if k.see() == nil {
		if k.expired && !k.changed {
			k.begin() // a writer removes what has expired
		}
		return false
	}
	k.begin()
	k.e, k.owned, k.private, k.rel = nil, false, false, 0
	eff := next(&k.tx.effects)
	eff.Op, eff.DB, eff.Key = OpDel, k.logical, k.name
	return true
}

// CopyTo makes dst what k is: value, expiry and encoding. k must exist. A
// collection is copied with its elements, which are shared.
func (k *Key) CopyTo(dst *Key) {
	e := k.see()
	rel := k.rel
	ttl := TTL{at: e.expire}
	if rel != 0 {
		ttl = ExpireIn(rel)
	}
	if e.coll != nil {
		if n := e.coll.size(); k.tx.Alloc(int(n)) && k.tx.Pay(e.coll.len()/elementsPerUnit) {
			dst.setCollection(e.kind, e.coll.clone(k.tx), ttl)
		}
		return
	}
	if !k.tx.take(len(e.str)) {
		return
	}
	raw, text := e.raw, e.text
	// The bytes are copied: either of the two may be changed in place later.
	dst.SetString(e.str, ttl)
	if dst.e != nil {
		dst.e.raw, dst.e.text = raw, text
	}
}

// MoveTo makes dst what k is: value, expiry and encoding, and deletes k, which
// must exist and be another key. Only bytes in the entry are copied: what undo
// restores in k are the same bytes, and changes of them in place are undone before.
func (k *Key) MoveTo(dst *Key) {
	e := k.see()
	ttl := TTL{at: e.expire}
	if k.rel != 0 {
		ttl = ExpireIn(k.rel)
	}
	kind, coll, str, raw, text := e.kind, e.coll, e.str, e.raw, e.text
	k.Delete()
	switch {
	case coll != nil:
		dst.setCollection(kind, coll, ttl)
		return
	case e.holds():
		dst.SetString(str, ttl)
	default:
		dst.SetStringOwned(str, ttl)
	}
	dst.e.raw, dst.e.text = raw, text
}

// Signal wakes, at commit and before anybody else gets the key, the commands
// that are blocked on it.
func (k *Key) Signal() {
	k.save()
	k.signal = true
}
