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
	want, soft, hard := uint64(clients+reservedFiles), uint64(limit.Cur), uint64(limit.Max)
	// Only root may raise the hard limit.
	if soft < want && !setOpenFiles(&soft, want, max(want, hard)) {
		setOpenFiles(&soft, min(want, hard), hard)
	}
	if soft >= want {
		return clients
	}
	return max(1, int64(soft)-reservedFiles)
}

// setOpenFiles sets the limits of open files, and is false where the system
// refuses them.
func setOpenFiles(current *uint64, soft, hard uint64) bool {
	var limit unix.Rlimit
	convert(&limit.Cur, soft)
	convert(&limit.Max, hard)
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return false
	}
	*current = soft
	return true
}

// convert is for the limits, which are signed on FreeBSD.
func convert[N int64 | uint64](to *N, n uint64) { *to = N(n) }

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
