package latchkey

import "runtime"

// taken is how many bytes the SDK has taken for frames and values since it collected last.
var taken int

// makeRoom collects when that many bytes more would leave much garbage behind: Go collects when its heap has
// doubled, and does not know where linear memory ends, so a few values of megabytes would fill it.
func makeRoom(bytes int) {
	const often = 2 << 20
	if taken += bytes; taken > often {
		taken = 0
		runtime.GC()
	}
}
