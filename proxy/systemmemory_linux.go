package proxy

import "golang.org/x/sys/unix"

// systemMemory is the machine's memory in bytes, 0 where it cannot be asked.
func systemMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
