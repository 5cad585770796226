//go:build amd64 || arm64

package store

import "unsafe"

// prefetch asks the processor for the cache line at p and does not wait for it.
//
//go:noescape
func prefetch(p unsafe.Pointer)
