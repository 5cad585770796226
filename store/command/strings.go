package command

import (
	"math"
	"strconv"

	"github.com/latchkey-proxy/latchkey/store"
)

const setSyntaxExpiry = "EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds"

func stringCommands() []*Spec {
	return []*Spec{
		{
			Name: "append", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString,
			Keys: OneKey(KeyRW | KeyInsert), Handler: appendTo,
			Summary: "Appends to a string, which is created when absent.", Since: "2.0.0", Group: "string",
			Complexity: "O(1), amortized over the growth of the string.", Syntax: "key value",
		},
		{
			Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: decr,
			Summary: "Takes one from the integer in a string; absent counts as 0.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: decrBy,
			Summary: "Takes a number from the integer in a string; absent counts as 0.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key decrement",
		},
		{
			Name: "get", Arity: 2, Flags: ReadOnly | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRO | KeyAccess), Handler: get,
			Summary: "Returns the value of a string.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "getdel", Arity: 2, Flags: Write | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyDelete), Handler: getDel,
			Summary: "Returns the value of a string and deletes it.", Since: "6.2.0", Group: "string",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "getex", Arity: -2, Flags: Write | Fast, Categories: CatString, Brief: true,
			Keys: []KeySpec{{
				Begin: 1, Flags: KeyRW | KeyAccess | KeyUpdate,
				Notes: "RW and UPDATE because it changes the TTL",
			}},
			Handler: getEX,
			Summary: "Returns the value of a string and sets or removes its expiry.", Since: "6.2.0", Group: "string",
			Complexity: "O(1)", Syntax: "key [" + setSyntaxExpiry + " | PERSIST]",
		},
		{
			Name: "getrange", Arity: 4, Flags: ReadOnly, Categories: CatString,
			Keys: OneKey(KeyRO | KeyAccess), Handler: getRange,
			Summary: "Returns a part of a string.", Since: "2.4.0", Group: "string",
			Complexity: "O(N) where N is the length of the part.", Syntax: "key start end",
		},
		{
			Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: getSet,
			Summary: "Sets a string and returns its value before.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key value",
		},
		{
			Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: incr,
			Summary: "Adds one to the integer in a string; absent counts as 0.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: incrBy,
			Summary: "Adds a number to the integer in a string; absent counts as 0.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key increment",
		},
		{
			Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: incrByFloat,
			Summary: "Adds a floating point number to the number in a string; absent counts as 0.", Since: "2.6.0", Group: "string",
			Complexity: "O(1)", Syntax: "key increment",
		},
		{
			Name: "lcs", Arity: -3, Flags: ReadOnly, Categories: CatString, Access: Locked,
			Keys: []KeySpec{{Begin: 1, Last: 1, Flags: KeyRO | KeyAccess}}, Handler: lcs,
			Summary: "Finds the longest common subsequence of two strings.", Since: "7.0.0", Group: "string",
			Complexity: "O(N*M) where N and M are the lengths of the strings.",
			Syntax:     "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
		},
		{
			Name: "mget", Arity: -2, Flags: ReadOnly | Fast, Categories: CatString,
			Keys: AllKeys(KeyRO | KeyAccess), Handler: mGet,
			Summary: "Returns the values of several strings.", Since: "1.0.0", Group: "string",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key [key ...]",
		},
		{
			Name: "mset", Arity: -3, Flags: Write | DenyOOM, Categories: CatString,
			Keys: []KeySpec{{Begin: 1, Last: -1, Step: 2, Flags: KeyOW | KeyUpdate}}, Handler: mSet,
			Summary: "Sets several strings.", Since: "1.0.1", Group: "string",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key value [key value ...]",
		},
		{
			Name: "msetnx", Arity: -3, Flags: Write | DenyOOM, Categories: CatString,
			Keys: []KeySpec{{Begin: 1, Last: -1, Step: 2, Flags: KeyOW | KeyInsert}}, Handler: mSetNX,
			Summary: "Sets several strings if none of the keys exists.", Since: "1.0.1", Group: "string",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key value [key value ...]",
		},
		{
			Name: "psetex", Arity: 4, Flags: Write | DenyOOM, Categories: CatString, Brief: true,
			Keys: OneKey(KeyOW | KeyUpdate), Handler: pSetEX,
			Summary: "Sets a string that expires after some milliseconds.", Since: "2.6.0", Group: "string",
			Complexity: "O(1)", Syntax: "key milliseconds value",
		},
		{
			Name: "set", Arity: -3, Flags: Write | DenyOOM, Categories: CatString, Brief: true,
			Keys: []KeySpec{{
				Begin: 1, Flags: KeyRW | KeyAccess | KeyUpdate | KeyVariable,
				Notes: "RW and ACCESS due to the optional `GET` argument",
			}},
			Handler: set,
			Summary: "Sets a string, whatever the key held before, if its conditions are met.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)",
			Syntax: "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [" +
				setSyntaxExpiry + " | KEEPTTL]",
			Differs: "It also knows IFEQ, IFNE, IFDEQ and IFDNE, as Redis 8.4 (IFEQ: Valkey 8.1).",
		},
		{
			Name: "setex", Arity: 4, Flags: Write | DenyOOM, Categories: CatString, Brief: true,
			Keys: OneKey(KeyOW | KeyUpdate), Handler: setEX,
			Summary: "Sets a string that expires after some seconds.", Since: "2.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key seconds value",
		},
		{
			Name: "setnx", Arity: 3, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyOW | KeyInsert), Handler: setNX,
			Summary: "Sets a string if the key does not exist.", Since: "1.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key value",
		},
		{
			Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Categories: CatString,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: setRange,
			Summary: "Overwrites a part of a string, which is created when absent and filled up with zeros.", Since: "2.2.0", Group: "string",
			Complexity: "O(M) where M is the length of the value, not counting the growth of the string.", Syntax: "key offset value",
		},
		{
			Name: "strlen", Arity: 2, Flags: ReadOnly | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRO), Handler: strLen,
			Summary: "Returns the length of a string.", Since: "2.2.0", Group: "string",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "substr", Arity: 4, Flags: ReadOnly, Categories: CatString,
			Keys: OneKey(KeyRO | KeyAccess), Handler: getRange,
			Summary: "Returns a part of a string; the former name of GETRANGE.", Since: "1.0.0", Group: "string",
			Complexity: "O(N) where N is the length of the part.", Syntax: "key start end",
		},
	}
}

// defaultMaxValue is proto-max-bulk-len's default, in bytes.
const defaultMaxValue = 512 << 20

// maxValue is the longest string that a command may make, in bytes.
func (c *Call) maxValue() int64 {
	if n := c.E.MaxValue.Load(); n > 0 {
		return n
	}
	return defaultMaxValue
}

// fits tells whether a string of size and more bytes may be made; otherwise the
// error is answered. Neither is negative.
func (c *Call) fits(size, more int64) bool {
	if size > math.MaxInt64-more || size+more > c.maxValue() {
		c.Err(ErrStringTooLong)
		return false
	}
	return true
}

func isStringOrNone(kind store.Kind) bool { return kind == store.String || kind == store.None }

func get(c *Call) {
	k := c.ReadKey(1)
	if c.IsString(k) {
		c.bulkOrNull(k)
	}
}

func getDel(c *Call) {
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	c.bulkOrNull(k)
	if k.Exists() {
		c.remove(k)
	}
}

func getEX(c *Call) {
	var o setOptions
	if !o.parse(c, 2, knowsPersist) {
		return
	}
	k := c.ReadKey(1)
	switch {
	case !c.IsString(k):
		return
	case !k.Exists(): // as in Redis, the time is not looked at then
		c.Reply.Null()
		return
	}
	ttl, ok := o.ttl(c)
	if !ok {
		return
	}
	c.Reply.Bulk(k.Str())
	switch {
	case o.timed():
		k.SetExpiry(ttl)
		if k.Exists() {
			c.Notify(store.NotifyGeneric, "expire", k)
		} else {
			c.Notify(store.NotifyGeneric, "del", k)
		}
	case o.expiry == persist && k.Expiry() != 0:
		k.SetExpiry(store.NoTTL)
		c.Notify(store.NotifyGeneric, "persist", k)
	}
}

func mGet(c *Call) {
	c.Reply.Array(len(c.Args) - 1)
	for i := 1; i < len(c.Args); i++ {
		k := c.ReadKey(i)
		if k.Kind() != store.String {
			c.Reply.Null()
			continue
		}
		c.Reply.Bulk(k.Str())
	}
}

func strLen(c *Call) {
	k := c.ReadKey(1)
	if c.IsString(k) {
		c.Reply.Int(int64(len(k.Str())))
	}
}

// getRange is GETRANGE and SUBSTR.
func getRange(c *Call) {
	start, end, ok := c.bounds()
	if !ok {
		return
	}
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	v := k.Str()
	start, end, ok = clampRange(start, end, int64(len(v)))
	if !ok {
		c.Reply.Bulk(nil)
		return
	}
	c.Reply.Bulk(v[start : end+1])
}

// clampRange makes a range of indexes, negative ones counted from the end, one
// that lies in [0, n). It is false when nothing is left.
func clampRange(start, end, n int64) (int64, int64, bool) {
	if start < 0 && end < 0 && start > end {
		return 0, 0, false
	}
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n-1)
	return start, end, start <= end
}

func setRange(c *Call) {
	off, ok := c.Int(2)
	if !ok {
		return
	}
	if off < 0 {
		c.Err(ErrOffsetRange)
		return
	}
	v := c.Args[3]
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	if len(v) == 0 {
		c.Reply.Int(int64(len(k.Str())))
		return
	}
	if !c.fits(off, int64(len(v))) {
		return
	}
	created := !k.Exists()
	n := k.SetRange(int(off), v)
	c.notifyString(k, "setrange", created)
	c.Reply.Int(int64(n))
}

func appendTo(c *Call) {
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	created := !k.Exists()
	if created {
		k.SetString(c.Args[2], store.NoTTL)
	} else {
		if !c.fits(int64(len(k.Str())), int64(len(c.Args[2]))) {
			return
		}
		k.Append(c.Args[2])
	}
	c.notifyString(k, "append", created)
	c.Reply.Int(int64(len(k.Str())))
}

func incr(c *Call) { c.add(1) }

func decr(c *Call) { c.add(-1) }

func incrBy(c *Call) {
	if n, ok := c.Int(2); ok {
		c.add(n)
	}
}

func decrBy(c *Call) {
	n, ok := c.Int(2)
	if !ok {
		return
	}
	if n == math.MinInt64 {
		c.Err(ErrDecrOverflow)
		return
	}
	c.add(-n)
}

// add adds n to the integer at the first key.
func (c *Call) add(n int64) {
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	created := !k.Exists()
	var value int64
	if !created {
		var ok bool
		if value, ok = ParseInt(k.Str()); !ok {
			c.Err(ErrNotInteger)
			return
		}
	}
	if n < 0 && value < math.MinInt64-n || n > 0 && value > math.MaxInt64-n {
		c.Err(ErrOverflow)
		return
	}
	value += n
	var digits [20]byte
	k.SetString(strconv.AppendInt(digits[:0], value, 10), store.KeepTTL)
	c.notifyString(k, "incrby", created)
	c.Reply.Int(value)
}

func incrByFloat(c *Call) {
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	created := !k.Exists()
	value, ok := extendedOfInt(0), true
	if !created {
		value, ok = parseExtended(k.Str())
	}
	if !ok {
		c.Err(ErrNotFloat)
		return
	}
	by, ok := parseExtended(c.Args[2])
	if !ok {
		c.Err(ErrNotFloat)
		return
	}
	sum, ok := addExtended(value, by)
	if !ok {
		c.Err(ErrNaN)
		return
	}
	text := formatExtended(sum)
	k.SetStringOwned(text, store.KeepTTL)
	k.SetText()
	c.notifyString(k, "incrbyfloat", created)
	c.Reply.Bulk(text)
}
