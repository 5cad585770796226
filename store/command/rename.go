package command

import (
	"bytes"
	"math"

	"github.com/latchkey-proxy/latchkey/store"
)

func renameCommands() []*Spec {
	return []*Spec{
		{
			Name: "rename", Arity: 3, Flags: Write, Categories: CatKeyspace,
			Keys: []KeySpec{
				{Begin: 1, Flags: KeyRW | KeyAccess | KeyDelete},
				{Begin: 2, Flags: KeyOW | KeyUpdate},
			},
			Handler: rename,
			Summary: "Renames a key; another of the new name is replaced.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key newkey",
		},
		{
			Name: "renamenx", Arity: 3, Flags: Write | Fast, Categories: CatKeyspace,
			Keys: []KeySpec{
				{Begin: 1, Flags: KeyRW | KeyAccess | KeyDelete},
				{Begin: 2, Flags: KeyOW | KeyInsert},
			},
			Handler: renameNX,
			Summary: "Renames a key unless the new name is taken.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key newkey",
		},
		{
			Name: "copy", Arity: -3, Flags: Write | DenyOOM, Categories: CatKeyspace,
			Keys: []KeySpec{
				{Begin: 1, Flags: KeyRO | KeyAccess},
				{Begin: 2, Flags: KeyOW | KeyUpdate},
			},
			Access: Locked, Handler: copyKey, Extra: copyExtra,
			Summary: "Copies a key with its expiry to another name, and maybe to another database.", Since: "6.2.0", Group: "generic",
			Complexity: "O(N) where N is the length of the string.",
			Syntax:     "source destination [DB destination-db] [REPLACE]",
		},
		{
			Name: "move", Arity: 3, Flags: Write | Fast, Categories: CatKeyspace,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: move, Extra: moveExtra,
			Summary: "Moves a key to another database unless it is there already.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key db",
		},
	}
}

func rename(c *Call)   { renameKey(c, false) }
func renameNX(c *Call) { renameKey(c, true) }

func renameKey(c *Call, nx bool) {
	from, to := c.Key(1), c.Key(2)
	if !from.Exists() {
		c.Err(ErrNoSuchKey)
		return
	}
	if nx && to.Exists() {
		c.Reply.Int(0)
		return
	}
	if from != to {
		from.MoveTo(to)
		c.Notify(store.NotifyNew, "new", to)
		c.Notify(store.NotifyGeneric, "rename_from", from)
		c.Notify(store.NotifyGeneric, "rename_to", to)
	}
	if nx {
		c.Reply.Int(1)
	} else {
		c.OK()
	}
}

// parseDB reads the number of a database of the session's store.
func (c *Call) parseDB(i int) (db int, msg string) {
	n, ok := ParseInt(c.Args[i])
	switch {
	case !ok:
		return 0, ErrNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, errIntRange
	case n < 0 || n >= int64(c.E.Store.Databases()):
		return 0, ErrDBIndex
	}
	return int(n), ""
}

func (c *Call) copyOptions() (db int, replace bool, msg string) {
	db = c.S.DB
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "replace"):
			replace = true
		case c.Is(i, "db") && i+1 < len(c.Args):
			i++
			if db, msg = c.parseDB(i); msg != "" {
				return db, replace, msg
			}
		default:
			return db, replace, ErrSyntax
		}
	}
	return db, replace, ""
}

func copyExtra(c *Call, add func(db int, name []byte)) {
	if len(c.Args) < 3 {
		return
	}
	if db, _, msg := c.copyOptions(); msg == "" && db != c.S.DB {
		add(db, c.Args[2])
	}
}

func copyKey(c *Call) {
	db, replace, msg := c.copyOptions()
	if msg != "" {
		c.Err(msg)
		return
	}
	if db == c.S.DB && bytes.Equal(c.Args[1], c.Args[2]) {
		c.Err(errSameObject)
		return
	}
	from := c.ReadKey(1)
	if !from.Exists() {
		c.Reply.Int(0)
		return
	}
	to := c.Tx.Key(db, c.Args[2])
	if to.Exists() && !replace {
		c.Reply.Int(0)
		return
	}
	from.CopyTo(to)
	c.Notify(store.NotifyNew, "new", to)
	c.Notify(store.NotifyGeneric, "copy_to", to)
	c.Reply.Int(1)
}

func moveExtra(c *Call, add func(db int, name []byte)) {
	if len(c.Args) < 3 {
		return
	}
	if db, msg := c.parseDB(2); msg == "" && db != c.S.DB {
		add(db, c.Args[1])
	}
}

func move(c *Call) {
	db, msg := c.parseDB(2)
	if msg != "" {
		c.Err(msg)
		return
	}
	if db == c.S.DB {
		c.Err(errSameObject)
		return
	}
	from, to := c.Key(1), c.Tx.Key(db, c.Args[1])
	if !from.Exists() || to.Exists() {
		c.Reply.Int(0)
		return
	}
	from.MoveTo(to)
	c.Notify(store.NotifyNew, "new", to)
	c.Notify(store.NotifyGeneric, "move_from", from)
	c.Notify(store.NotifyGeneric, "move_to", to)
	c.Reply.Int(1)
}
