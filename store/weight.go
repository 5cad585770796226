package store

import "unsafe"

const effectSize = int64(unsafe.Sizeof(Effect{}))

// Weight is about how many bytes the transaction holds until it ends, beside the
// values that it leaves behind: its effects, its events, and what undo must
// remember. A script that overwrites one key a thousand times leaves one value,
// but a thousand effects; whoever runs foreign code in a transaction bounds it
// by this.
func (tx *Tx) Weight() int64 {
	for ; tx.weighed < len(tx.effects); tx.weighed++ {
		e := &tx.effects[tx.weighed]
		tx.weight += effectSize + int64(len(e.Value))
		for _, a := range e.Args {
			tx.weight += int64(len(a))
		}
	}
	return tx.weight + int64(len(tx.journal))*int64(unsafe.Sizeof(change{}))
}

// weigh adds to the weight what is not an effect.
func (tx *Tx) weigh(bytes int) { tx.weight += int64(bytes) }
