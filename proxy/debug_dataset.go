package proxy

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// digest is Redis's sum of a dataset, which does not depend on the order of its
// keys, nor on that of the members of a set.
type digest [sha1.Size]byte

// xor adds what may come in any order.
func (d *digest) xor(b []byte) {
	sum := sha1.Sum(b)
	for i := range d {
		d[i] ^= sum[i]
	}
}

// mix adds what has its place.
func (d *digest) mix(b []byte) {
	d.xor(b)
	*d = sha1.Sum(d[:])
}

func (d *digest) mixInt(n int) { d.mix(binary.BigEndian.AppendUint32(nil, uint32(n))) }

func (d *digest) status(c *command.Call) { c.Reply.Status(hex.EncodeToString(d[:])) }

// The numbers that Redis gives to types.
const (
	digestString = 0
	digestList   = 1
	digestSet    = 2
	digestModule = 5
)

// value adds a key's value and that it expires, not when.
func (d *digest) value(k *store.Key) {
	switch k.Kind() {
	case store.String:
		d.mixInt(digestString)
		d.mix(k.Str())
	case store.List:
		d.mixInt(digestList)
		for i := range k.Len() {
			d.mix([]byte(k.Element(i)))
		}
	case store.Set:
		d.mixInt(digestSet)
		for _, m := range k.Members() {
			d.xor([]byte(m))
		}
	default:
		d.mixInt(digestModule)
		d.mix(k.Opaque())
	}
	if k.Expiry() != 0 {
		d.xor([]byte("!!expire!!"))
	}
}

// debugDigest answers one sum of all keys of all databases.
func debugDigest(c *command.Call) {
	debugTx(c, nil, true, func(tx *store.Tx) {
		var all digest
		for db := range tx.Store().Databases() {
			if tx.Size(db) == 0 {
				continue
			}
			all.mixInt(db)
			var names []string
			tx.Scan(db, 0, math.MaxInt, func(name, _ string) { names = append(names, name) })
			for _, name := range names {
				if k := tx.Key(db, []byte(name)); k.Exists() {
					var d digest
					d.mix(k.Name())
					d.value(k)
					all.xor(d[:])
				}
			}
		}
		all.status(c)
	})
}

// debugDigestValue answers the sum of each key's value, zeros for one that is
// not there.
func debugDigestValue(c *command.Call) {
	debugTx(c, c.Args[2:], false, func(tx *store.Tx) {
		c.Reply.Array(len(c.Args) - 2)
		for i := 2; i < len(c.Args); i++ {
			var d digest
			if k := c.Key(i); k.Exists() {
				d.value(k)
			}
			d.status(c)
		}
	})
}

// debugTx runs f in a transaction that holds the keys, or all there are. What f
// does not commit is undone.
func debugTx(c *command.Call, keys [][]byte, all bool, f func(tx *store.Tx)) {
	tx := c.Tx
	if c.From == command.FromClient { // otherwise the transaction runs alone
		tx.Begin()
		var err error
		if all {
			err = tx.AcquireAll(c.S.Wait)
		} else {
			for _, k := range keys {
				tx.Add(c.DB(), k)
			}
			err = tx.Acquire(c.S.Wait)
		}
		if err != nil {
			c.Err(command.WaitError(err))
			return
		}
		defer tx.Rollback() // nothing was changed
	}
	f(tx)
}

// debugPackedThreshold knows Redis's values from others; nothing depends on it
// here.
func debugPackedThreshold(c *command.Call) {
	if n, ok := config.ParseMemory(string(c.Args[2])); !ok || n > 1<<32-1<<20 {
		c.Err("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
		return
	}
	c.OK()
}

// What POPULATE sets in one transaction, at most, is so many keys and, from the
// second on, so many bytes.
const (
	populateKeys  = 256
	populateBytes = 1 << 20
)

// debugPopulate sets keys that are not there to values that say their number. It
// stops when the client has gone or memory is full.
func debugPopulate(c *command.Call) {
	count, ok := command.ParseInt(c.Args[2])
	size := int64(-1)
	if len(c.Args) == 5 && ok {
		size, ok = command.ParseInt(c.Args[4])
		ok = ok && size >= 0
	}
	if !ok || count < 0 {
		c.Err("ERR value is out of range, must be positive")
		return
	}
	if size > c.E.MaxValue.Load() {
		c.Err(command.ErrStringTooLong)
		return
	}
	prefix := []byte("key")
	if len(c.Args) > 3 {
		prefix = c.Args[3]
	}
	name := func(i int64) []byte {
		return strconv.AppendInt(append(prefix[:len(prefix):len(prefix)], ':'), i, 10)
	}
	atOnce := max(1, min(populateKeys, populateBytes/(max(0, size)+1)))
	for from := int64(0); from < count; from += atOnce {
		to := from + min(count-from, atOnce)
		if c.From == command.FromClient { // otherwise the transaction runs alone
			c.Tx.Begin()
			for i := from; i < to; i++ {
				c.Tx.Add(c.DB(), name(i))
			}
			if err := c.Tx.Acquire(c.S.Wait); err != nil {
				c.Err(command.WaitError(err))
				return
			}
		}
		for i := from; i < to; i++ {
			if k := c.Tx.Key(c.DB(), name(i)); !k.Exists() {
				k.SetString(populated(i, size), store.NoTTL)
			}
		}
		if c.From == command.FromClient {
			if err := c.Tx.Commit(); err != nil {
				c.Err(command.ErrMisconf)
				return
			}
		}
		if c.E.Store.OverLimit() {
			c.Err(command.ErrOOM)
			return
		}
		if limit := c.E.MaxWeight.Load(); limit > 0 && c.Tx.Weight() > limit {
			c.Err(command.ErrTxTooLarge)
			return
		}
		if cl, ok := c.S.Client.(*client); ok {
			select {
			case <-cl.done:
				c.OK()
				return
			default:
			}
		}
	}
	c.OK()
}

// populated is the value of key i: cut off at, or filled up with zeros to, size
// bytes if that is not negative.
func populated(i, size int64) []byte {
	v := strconv.AppendInt([]byte("value:"), i, 10)
	if size < 0 {
		return v
	}
	filled := make([]byte, size)
	copy(filled, v)
	return filled
}
