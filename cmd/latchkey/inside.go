package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// serveInside runs a server in this process, on a free port of the loopback
// interface, for sub-commands that try something on one. Warnings go to log.
func serveInside(directives []string, log io.Writer) (addr string, stop func(), err error) {
	return serveInsideWith(directives, log, func(*rooms) {})
}

// serveInsideWith has prepare see the rooms before the first command.
func serveInsideWith(directives []string, log io.Writer, prepare func(*rooms)) (addr string, stop func(), err error) {
	cfg, err := config.Load(config.ParseArgs(directives, strings.NewReader("")))
	if err != nil {
		return "", nil, err
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: logLevel(cfg.String("loglevel"))}))
	r, err := openRooms(cfg, logger)
	if err != nil {
		return "", nil, err
	}
	prepare(r)
	s, err := proxy.New(r.serverOptions(cfg, logger))
	if err != nil {
		r.close()
		return "", nil, err
	}
	stop = func() {
		s.Close(time.Second)
		r.close()
	}
	if err := r.loadModules(cfg, s.Engine(), logger); err != nil {
		stop()
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("cannot listen on the loopback interface: %w", err)
	}
	s.Serve(l)
	return l.Addr().String(), stop, nil
}

// allCommands is the table of a server without modules.
func allCommands() (*command.Table, error) {
	cfg, log := config.New(), slog.New(slog.DiscardHandler)
	r, err := openRooms(cfg, log)
	if err != nil {
		return nil, err
	}
	defer r.close()
	s, err := proxy.New(r.serverOptions(cfg, log))
	if err != nil {
		return nil, err
	}
	defer s.Close(0)
	return s.Engine().Table, nil
}
