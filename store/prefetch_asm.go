//go:build amd64 || arm64

package store

import "unsafe"

// prefetch asks the processor for the cache lines at the first n addresses, and
// for those also bytes behind them, and does not wait for any.
//
//go:noescape
func prefetch(at *[touchMost]unsafe.Pointer, n int, also uintptr)
