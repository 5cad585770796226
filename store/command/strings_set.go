package command

import (
	"bytes"
	"math"

	"github.com/latchkey-proxy/latchkey/store"
)

// condition says when a SET may happen.
type condition uint8

const (
	always condition = iota
	ifAbsent
	ifPresent
	ifEqual
	ifNotEqual
	ifDigest
	ifNotDigest
)

// expiryOption is the option that speaks of a key's expiry.
type expiryOption uint8

const (
	noExpiry expiryOption = iota
	expireEX
	expirePX
	expireEXAT
	expirePXAT
	keepTTL
	persist
)

// setOptions are the options of SET and of all that set a string.
type setOptions struct {
	cond   condition
	match  []byte // what the value is compared with
	get    bool
	expiry expiryOption
	time   []byte // argument of EX, PX, EXAT, PXAT
}

// The options that a command knows.
const (
	knowsExist   = 1 << iota // NX, XX
	knowsCompare             // IFEQ, IFNE, IFDEQ, IFDNE
	knowsGet                 // GET
	knowsKeepTTL
	knowsPersist
)

// parse reads options from argument from on. As in Redis an option may be
// repeated, and those that exclude each other are a syntax error.
func (o *setOptions) parse(c *Call, from, knows int) bool {
	for i := from; i < len(c.Args); i++ {
		arg := c.Args[i]
		more := i+1 < len(c.Args)
		switch {
		case knows&knowsExist != 0 && o.accepts(ifAbsent) && equalFold(arg, "nx"):
			o.cond = ifAbsent
		case knows&knowsExist != 0 && o.accepts(ifPresent) && equalFold(arg, "xx"):
			o.cond = ifPresent
		case knows&knowsGet != 0 && equalFold(arg, "get"):
			o.get = true
		case knows&knowsKeepTTL != 0 && o.allows(keepTTL) && equalFold(arg, "keepttl"):
			o.expiry = keepTTL
		case knows&knowsPersist != 0 && o.allows(persist) && equalFold(arg, "persist"):
			o.expiry = persist
		case more && o.allows(expireEX) && equalFold(arg, "ex"):
			o.expiry = expireEX
			i++
			o.time = c.Args[i]
		case more && o.allows(expirePX) && equalFold(arg, "px"):
			o.expiry = expirePX
			i++
			o.time = c.Args[i]
		case more && o.allows(expireEXAT) && equalFold(arg, "exat"):
			o.expiry = expireEXAT
			i++
			o.time = c.Args[i]
		case more && o.allows(expirePXAT) && equalFold(arg, "pxat"):
			o.expiry = expirePXAT
			i++
			o.time = c.Args[i]
		case more && knows&knowsCompare != 0 && o.cond == always && comparison(arg) != always:
			o.cond = comparison(arg)
			i++
			o.match = c.Args[i]
		default:
			c.Err(ErrSyntax)
			return false
		}
	}
	if (o.cond == ifDigest || o.cond == ifNotDigest) && !isDigest(o.match) {
		c.Err(errDigestLength)
		return false
	}
	return true
}

func (o *setOptions) accepts(cond condition) bool { return o.cond == always || o.cond == cond }

func (o *setOptions) allows(e expiryOption) bool { return o.expiry == noExpiry || o.expiry == e }

// timed tells whether the options set an expiry.
func (o *setOptions) timed() bool { return expireEX <= o.expiry && o.expiry <= expirePXAT }

// ttl makes a store.TTL of the options. A time that Redis refuses is answered.
func (o *setOptions) ttl(c *Call) (store.TTL, bool) {
	switch o.expiry {
	case keepTTL:
		return store.KeepTTL, true
	case noExpiry, persist:
		return store.NoTTL, true
	}
	n, ok := ParseInt(o.time)
	if !ok {
		c.Err(ErrNotInteger)
		return store.NoTTL, false
	}
	ttl, ok := o.ttlOf(c, n)
	if !ok {
		c.Err(invalidExpire(c.Spec))
	}
	return ttl, ok
}

// ttlOf is ttl of a time that is parsed already.
func (o *setOptions) ttlOf(c *Call, n int64) (store.TTL, bool) {
	if n <= 0 {
		return store.NoTTL, false
	}
	if o.expiry == expireEX || o.expiry == expireEXAT {
		if n > math.MaxInt64/1000 {
			return store.NoTTL, false
		}
		n *= 1000
	}
	if o.expiry == expireEXAT || o.expiry == expirePXAT {
		return store.ExpireAt(n), true
	}
	if n > math.MaxInt64-c.Tx.Now() {
		return store.NoTTL, false
	}
	return store.ExpireIn(n), true
}

// met tells whether the condition holds. A comparison with what is not a string
// is answered with an error, and ok is false.
func (o *setOptions) met(c *Call, k *store.Key) (met, ok bool) {
	switch o.cond {
	case ifAbsent:
		return !k.Exists(), true
	case ifPresent:
		return k.Exists(), true
	case always:
		return true, true
	}
	if !c.IsString(k) {
		return false, false
	}
	return c.compares(k, o.cond, o.match), true
}

// compares tells whether a comparing condition holds for a string. An absent key
// is equal to nothing.
func (c *Call) compares(k *store.Key, cond condition, match []byte) bool {
	if !k.Exists() {
		return cond == ifNotEqual || cond == ifNotDigest
	}
	switch cond {
	case ifEqual:
		return bytes.Equal(k.Str(), match)
	case ifNotEqual:
		return !bytes.Equal(k.Str(), match)
	case ifDigest:
		return c.digestEqual(k.Str(), match)
	case ifNotDigest:
		return !c.digestEqual(k.Str(), match)
	}
	panic("command: compares without a comparison")
}

// set is SET and all its kin: it sets the key at argument key to argument value
// if the options let it. The reply is the caller's, but for errors and the old
// value that GET asks for. ok is false when there is nothing more to be said.
func (c *Call) set(key, value int, o *setOptions) (done, ok bool) {
	ttl, ok := o.ttl(c)
	if !ok {
		return false, false
	}
	k := c.Key(key)
	if o.get {
		c.Looked(k)
		if !c.IsString(k) {
			return false, false
		}
	}
	met, ok := o.met(c, k)
	if !ok {
		return false, false
	}
	if o.get {
		c.bulkOrNull(k)
	}
	if met {
		c.put(k, c.Args[value], ttl, o)
	}
	return met, !o.get
}

// put sets a key and tells those who listen.
func (c *Call) put(k *store.Key, value []byte, ttl store.TTL, o *setOptions) {
	created := !k.Exists()
	k.SetString(value, ttl)
	c.notifyString(k, "set", created)
	if o.timed() {
		c.Notify(store.NotifyGeneric, "expire", k)
		if !k.Exists() { // the time had passed: Redis finds that out at the next look
			c.Notify(store.NotifyExpired, "expired", k)
		}
	}
}

// notifyString emits what happened to a string, and before it that the key is
// new.
func (c *Call) notifyString(k *store.Key, event string, created bool) {
	if created {
		c.Notify(store.NotifyNew, "new", k)
	}
	c.Notify(store.NotifyString, event, k)
}

// bulkOrNull answers a string's value, or null when the key is absent.
func (c *Call) bulkOrNull(k *store.Key) {
	if !k.Exists() {
		c.Reply.Null()
		return
	}
	c.Reply.Bulk(k.Str())
}

func set(c *Call) {
	var o setOptions
	if !o.parse(c, 3, knowsExist|knowsCompare|knowsGet|knowsKeepTTL) {
		return
	}
	c.setReply(1, 2, &o)
}

func (c *Call) setReply(key, value int, o *setOptions) {
	done, ok := c.set(key, value, o)
	switch {
	case !ok:
	case done:
		c.OK()
	default:
		c.Reply.Null()
	}
}

func setNX(c *Call) {
	done, ok := c.set(1, 2, &setOptions{cond: ifAbsent})
	if ok {
		c.Reply.Int(oneIf(done))
	}
}

func setEX(c *Call) {
	c.setReply(1, 3, &setOptions{expiry: expireEX, time: c.Args[2]})
}

func pSetEX(c *Call) {
	c.setReply(1, 3, &setOptions{expiry: expirePX, time: c.Args[2]})
}

func getSet(c *Call) {
	c.set(1, 2, &setOptions{get: true})
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// mSet is MSET and MSETNX.
func mSet(c *Call) {
	c.mSet(always)
}

func mSetNX(c *Call) {
	c.mSet(ifAbsent)
}

func (c *Call) mSet(cond condition) {
	if len(c.Args)%2 == 0 {
		c.Err(WrongArity(c.Spec))
		return
	}
	o := setOptions{cond: cond}
	done, ok := c.setPairs(1, len(c.Args), &o)
	switch {
	case !ok:
	case cond == always:
		c.OK()
	default:
		c.Reply.Int(oneIf(done))
	}
}

// setPairs sets the keys and values of arguments from to end, all or none.
func (c *Call) setPairs(from, end int, o *setOptions) (done, ok bool) {
	ttl, ok := o.ttl(c)
	if !ok {
		return false, false
	}
	for i := from; i < end && o.cond != always; i += 2 {
		if met, ok := o.met(c, c.Key(i)); !met {
			return false, ok
		}
	}
	for i := from; i < end; i += 2 {
		c.put(c.Key(i), c.Args[i+1], ttl, o)
	}
	return true, true
}

// mSetEX is Redis 8.4's MSETEX.
func mSetEX(c *Call) {
	n, ok := ParseInt(c.Args[1])
	if !ok || n < 1 || n > math.MaxInt32 {
		c.Err(errNumKeys)
		return
	}
	end := 2 + 2*int(n)
	if end > len(c.Args) {
		c.Err(errPairs)
		return
	}
	var o setOptions
	if !o.parse(c, end, knowsExist|knowsKeepTTL) {
		return
	}
	if done, ok := c.setPairs(2, end, &o); ok {
		c.Reply.Int(oneIf(done))
	}
}
