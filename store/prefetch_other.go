//go:build !amd64 && !arm64

package store

import "unsafe"

// prefetch does nothing where we have no instruction for it.
func prefetch(*[touchMost]unsafe.Pointer, int, uintptr) {}
