//go:build !linux && !darwin && !freebsd && !dragonfly

package proxy

// systemMemory is not known here.
func systemMemory() int64 { return 0 }
