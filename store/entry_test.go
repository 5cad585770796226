package store

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestEntryIsTwoCacheLines(t *testing.T) {
	const line = 64
	if size := unsafe.Sizeof(entry{}); unsafe.Sizeof(uintptr(0)) == 8 && size != 2*line {
		t.Errorf("an entry takes %d bytes, want %d: look at entryOverhead too", size, 2*line)
	}
	if end := unsafe.Offsetof(entry{}.expire) + 8; end > line {
		t.Errorf("the expiry ends at %d, beyond the first line", end)
	}
}

// Values that fit into the room beside their key are there, whichever way they came
// there, and the account knows.
func TestRoom(t *testing.T) {
	for _, keyLen := range []int{0, 1, 16, roomSize - 1, roomSize, roomSize + 1} {
		room := roomSize - keyLen
		if keyLen > roomSize {
			room = roomSize
		}
		for _, n := range []int{0, 1, 8, room, room + 1, 100} {
			if n < 0 {
				continue
			}
			name, value := bytes.Repeat([]byte("k"), keyLen), bytes.Repeat([]byte("v"), n)
			ways := map[string]func(k, other *Key){
				"set":       func(k, _ *Key) { k.SetString(value, NoTTL) },
				"set owned": func(k, _ *Key) { k.SetStringOwned(bytes.Clone(value), NoTTL) },
				"set twice": func(k, _ *Key) { k.SetString([]byte("first"), NoTTL); k.SetString(value, NoTTL) },
				"deleted and set": func(k, _ *Key) {
					k.SetString([]byte("first"), NoTTL)
					k.Delete()
					k.SetString(value, NoTTL)
				},
				"appended": func(k, _ *Key) {
					k.SetString(nil, NoTTL)
					for i := range value {
						k.Append(value[i : i+1])
					}
				},
				"moved": func(k, other *Key) {
					other.SetString(value, NoTTL)
					other.MoveTo(k)
					other.SetString([]byte("x"), NoTTL)
				},
				"copied": func(k, other *Key) {
					other.SetString(value, NoTTL)
					other.CopyTo(k)
					other.SetString([]byte("x"), NoTTL)
				},
			}
			for what, way := range ways {
				for _, lock := range []bool{false, true} {
					for _, before := range []string{"", "was", strings.Repeat("was", 30)} {
						label := fmt.Sprintf("key of %d bytes, %d bytes %s, locked %v, after %q", keyLen, n, what, lock, before)
						s, err := New(Options{})
						if err != nil {
							t.Fatal(err)
						}
						tx := s.NewTx()
						run := func(do func(k, other *Key)) {
							tx.Begin()
							tx.Add(0, name)
							tx.Add(0, []byte("other"))
							if lock {
								if err := tx.Acquire(nil); err != nil {
									t.Fatal(err)
								}
							} else if !tx.AcquireFast() {
								t.Fatal("a key is locked that nobody locked")
							}
							do(tx.Key(0, name), tx.Key(0, []byte("other")))
							if err := tx.Commit(); err != nil {
								t.Fatal(err)
							}
						}
						if before != "" {
							run(func(k, _ *Key) { k.SetString([]byte(before), NoTTL) })
						}
						run(way)
						run(func(k, other *Key) {
							other.Delete()
							if !bytes.Equal(k.Str(), value) {
								t.Errorf("%s: the value is %q", label, k.Str())
							}
							if holds := k.e.holds(); holds != (n <= room) {
								t.Errorf("%s: its bytes are in the entry: %v", label, holds)
							}
						})
						run(func(k, _ *Key) {
							if got := s.UsedMemory(); got != k.Size() {
								t.Errorf("%s: the account is %d, the entry's size %d", label, got, k.Size())
							}
							k.Delete()
						})
						if got := s.UsedMemory(); got != 0 {
							t.Errorf("%s: without keys the account is %d", label, got)
						}
						s.Close()
					}
				}
			}
		}
	}
}
