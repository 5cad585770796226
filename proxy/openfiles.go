package proxy

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/latchkey-proxy/latchkey/proxy/config"
)

// reservedFiles is how many files the process may have open beside its clients:
// listeners, logs, what the Go runtime needs.
const reservedFiles = 32

// openFiles raises the process's limit of open files so that it may serve this
// many clients, as far as the system lets it, and returns for how many it lasts.
func openFiles(clients int64) int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return clients // unknown: accept will tell
	}
	if want := uint64(clients + reservedFiles); limit.Cur < want {
		higher := unix.Rlimit{Cur: want, Max: max(want, limit.Max)}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &higher) != nil { // only root may raise Max
			higher = unix.Rlimit{Cur: min(want, limit.Max), Max: limit.Max}
			if unix.Setrlimit(unix.RLIMIT_NOFILE, &higher) != nil {
				higher = limit
			}
		}
		limit = higher
	}
	if limit.Cur >= uint64(clients+reservedFiles) {
		return clients
	}
	return max(1, int64(limit.Cur)-reservedFiles)
}

// fitMaxClients makes room for maxclients, or lowers it to what there is room
// for and says so, as Redis does at its start.
func (s *Server) fitMaxClients() {
	want := s.cfg.Int("maxclients")
	room := openFiles(want)
	if room >= want {
		return
	}
	s.log.Warn("the limit of open files is too low for maxclients, which is lowered; raise it with ulimit -n or LimitNOFILE",
		"maxclients", want, "lowered to", room, "open files wanted", want+reservedFiles)
	if err := s.cfg.Set([]config.Pair{{Name: "maxclients", Value: strconv.FormatInt(room, 10)}}, true); err != nil {
		s.log.Error("maxclients cannot be lowered", "err", err)
	}
}

// followMaxClients answers CONFIG SET maxclients.
func (s *Server) followMaxClients(_, _ string) error {
	want := s.cfg.Int("maxclients")
	if room := openFiles(want); room < want {
		return fmt.Errorf("The operating system is not able to handle the specified number of clients, try with %d", room)
	}
	return nil
}
