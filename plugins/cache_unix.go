//go:build unix

package plugins

import (
	"os"
	"syscall"
)

// checkPrivate refuses a folder that others own or may write or read.
func checkPrivate(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return plain(err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(sys.Uid) != os.Geteuid() || st.Mode().Perm()&0o077 != 0 {
		return errNotPrivate
	}
	return nil
}
