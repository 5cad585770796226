package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNowhere is what Listen returns when bind, port and unixsocket name nothing to
// listen on: nobody could ever reach the server.
var ErrNowhere = errors.New("configured to not listen anywhere")

// ErrSocketTaken is what Listen wraps when somebody listens on unixsocket.
var ErrSocketTaken = errors.New("another server listens there")

// Listen opens the addresses that bind, port and unixsocket name and serves
// them until Close. An error says which address could not be had; then none is
// served. From then on CONFIG SET of bind and port opens and closes addresses.
func (s *Server) Listen() error {
	s.fitMaxClients()
	tcp, err := s.openTCP(s.bindAddresses(), nil)
	if err != nil {
		return err
	}
	unix, err := s.openUnix()
	if err != nil {
		for _, l := range tcp {
			l.Close()
		}
		return err
	}
	if len(tcp) == 0 && unix == nil {
		return ErrNowhere
	}
	s.mu.Lock()
	s.tcp = tcp
	s.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(tcp)) {
		s.Serve(tcp[address])
	}
	if unix != nil {
		s.Serve(unix)
	}
	s.cron.Go(s.everySoOften)
	return nil
}

// relisten opens what bind and port name now and closes what they no longer
// name. On an error all is as it was. Connected clients are left alone.
func (s *Server) relisten() error {
	s.relistening.Lock()
	defer s.relistening.Unlock()
	s.mu.Lock()
	have, closing := s.tcp, s.closing
	s.mu.Unlock()
	if have == nil || closing {
		return nil // before Listen, which will read them
	}
	// What is given up is closed first: * cannot be had while 127.0.0.1 is.
	kept := make(map[string]net.Listener)
	var given []bindAddress
	wanted := s.bindAddresses()
	for address, l := range have {
		if slices.ContainsFunc(wanted, func(b bindAddress) bool { return b.address == address }) {
			kept[address] = l
		} else {
			given = append(given, bindAddress{address: address})
			s.forget(l)
		}
	}
	now, err := s.openTCP(wanted, kept)
	if err != nil {
		s.log.Warn("bind and port stay as they were", "err", err)
		back, again := s.openTCP(given, nil)
		if again != nil {
			s.log.Error("an address that was listened on cannot be had again", "err", again)
		}
		maps.Copy(kept, back)
		now = kept
	}
	s.mu.Lock()
	s.tcp = now
	s.mu.Unlock()
	for address, l := range now {
		if have[address] != l {
			s.Serve(l)
		}
	}
	if err != nil {
		return errors.New("Unable to listen on this port. Check server logs.")
	}
	return nil
}

// forget closes a listener that is served.
func (s *Server) forget(l net.Listener) {
	s.mu.Lock()
	s.listeners = slices.DeleteFunc(s.listeners, func(o net.Listener) bool { return o == l })
	s.mu.Unlock()
	l.Close()
}

// openTCP returns listeners for the addresses wanted: those in have, and new ones
// for the others. On an error the new ones are closed.
func (s *Server) openTCP(wanted []bindAddress, have map[string]net.Listener) (map[string]net.Listener, error) {
	open := make(map[string]net.Listener)
	fail := func(err error) (map[string]net.Listener, error) {
		for address, l := range open {
			if have[address] == nil {
				l.Close()
			}
		}
		return nil, err
	}
	for _, b := range wanted {
		if open[b.address] != nil {
			continue
		}
		if l := have[b.address]; l != nil {
			open[b.address] = l
			continue
		}
		l, err := listenTCP(b.address)
		switch {
		case err == nil:
			open[b.address] = l
		case b.optional:
			s.log.Debug("an optional address is not there", "address", b.address, "err", err)
		default:
			return fail(err)
		}
	}
	if len(open) == 0 && len(wanted) != 0 {
		return fail(errors.New("cannot listen: none of the addresses of bind could be had"))
	}
	return open, nil
}

// openUnix returns the listener of unixsocket, nil if there is none.
func (s *Server) openUnix() (net.Listener, error) {
	path := s.cfg.String("unixsocket")
	if path == "" {
		return nil, nil
	}
	err := freeSocket(path)
	var l net.Listener
	if err == nil {
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on unix socket %s: %w", path, err)
	}
	if perm, err := strconv.ParseUint(s.cfg.String("unixsocketperm"), 8, 32); err == nil && perm != 0 {
		if err := os.Chmod(path, os.FileMode(perm)); err != nil {
			l.Close()
			return nil, fmt.Errorf("cannot set unixsocketperm of %s: %w", path, err)
		}
	}
	return l, nil
}

// freeSocket removes the socket that a server has left which is gone. A file that is no
// socket, and the socket of a server that runs, stay: Redis removes both.
func freeSocket(path string) error {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case file.Mode()&fs.ModeSocket == 0:
		return errors.New("a file of that name is there, and is no socket")
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return ErrSocketTaken
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}

// bindAddress is an address to listen on: host and port.
type bindAddress struct {
	address  string
	optional bool // it may be missing
}

// bindAddresses are the addresses that bind and port name; none with port 0.
func (s *Server) bindAddresses() []bindAddress {
	port := strconv.Itoa(int(s.cfg.Int("port")))
	if port == "0" {
		return nil
	}
	var out []bindAddress
	for _, host := range s.cfg.Strings("bind") {
		host, optional := strings.CutPrefix(host, "-")
		// IPv6 may be switched off on this machine; the loopback default must
		// not fail for that.
		out = append(out, bindAddress{net.JoinHostPort(host, port), optional || host == "::1"})
	}
	return out
}

func listenTCP(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	network := "tcp"
	switch host {
	case "*":
		network, host = "tcp4", "0.0.0.0"
	case "::*":
		network, host = "tcp6", "::"
	}
	address = net.JoinHostPort(host, port)
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return l, nil
}
