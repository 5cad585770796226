package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/proxy/upstream"
)

const redisVersion = proxy.RedisVersion

func goVersion() string { return strings.TrimPrefix(runtime.Version(), "go") }

// serve runs the server until a signal or SHUTDOWN ends it.
func serve(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 1 && strings.HasPrefix(args[0], "-") && inform(args[0], stdout) {
		return exitOK
	}
	// The signals are caught before anything can be waited for, so that none
	// that comes early kills a server that is half up.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	sources := config.ParseArgs(args, stdin)
	sources.CheckUpstream = func(url string) error {
		_, err := upstream.ParseURL(url)
		return err
	}
	cfg, err := config.Load(sources)
	if err != nil {
		hint := ""
		var bad *config.Error
		if errors.As(err, &bad) {
			hint = bad.Hint()
		}
		fail(stderr, err, hint)
		return exitUsage
	}
	// Before the first relative path is used, which is logfile's.
	if dir := cfg.String("dir"); dir != "" && dir != "." {
		if err := os.Chdir(dir); err != nil {
			fail(stderr, fmt.Errorf("cannot use dir %s: %w", dir, errors.Unwrap(err)), "make the folder, or name another with --dir")
			return exitFailed
		}
	}
	out, log, closeLog, err := openLog(cfg, stdout, stderr)
	if err != nil {
		fail(stderr, err, "")
		return exitFailed
	}
	defer closeLog()
	for _, w := range cfg.Warnings() {
		log.Warn(w.String())
	}
	for _, ig := range cfg.Ignored() {
		log.Debug("directive has no effect in latchkey", "directive", ig.Directive, "at", ig.Origin.String())
	}

	stop := make(chan struct{})
	var once sync.Once
	r, err := openRooms(cfg, log)
	if err != nil {
		fail(stderr, err, "")
		return exitFailed
	}
	defer r.close()
	procs := newProcessors(runtime.NumCPU(), longScripts(cfg))
	defer procs.close()
	r.scripts.OnLong = procs.long
	options := r.serverOptions(cfg, log)
	options.Shutdown = func() { once.Do(func() { close(stop) }) }
	s, err := proxy.New(options)
	if err != nil {
		var bad *config.Error
		if errors.As(err, &bad) {
			fail(stderr, err, bad.Hint())
			return exitUsage
		}
		fail(stderr, err, "")
		return exitFailed
	}
	r.scripts.Engine().SetOthers(s.Store().UsedMemory)
	if err := r.loadModules(cfg, s.Engine(), log); err != nil {
		fail(stderr, err, "see docs/PLUGINS.md for what a module must be")
		s.Close(0)
		return exitFailed
	}
	if err := s.Listen(); err != nil {
		fail(stderr, listenError(err), listenHint(err, cfg))
		s.Close(0)
		return exitFailed
	}
	removePid := writePid(cfg, log)
	defer removePid()
	greet(out, s, cfg)

	select {
	case sig := <-signals:
		log.Info("received a signal, shutting down", "signal", sig.String())
	case <-stop:
		log.Info("shutdown was asked for by a client")
	}
	if err := s.Close(time.Duration(max(1, cfg.Int("shutdown-timeout"))) * time.Second); err != nil {
		fail(stderr, err, "")
		return exitFailed
	}
	fmt.Fprintln(out, "latchkey is now ready to exit, bye bye...")
	return exitOK
}

// openLog returns where the greeting goes and the logger. With a logfile both
// go there.
func openLog(cfg *config.Config, stdout, stderr io.Writer) (io.Writer, *slog.Logger, func(), error) {
	var level slog.LevelVar
	setLevel := func() { level.Set(logLevel(cfg.String("loglevel"))) }
	setLevel()
	cfg.OnChange("loglevel", func(_, _ string) error { setLevel(); return nil })
	to, out, closeLog := stderr, stdout, func() {}
	if path := cfg.String("logfile"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("cannot open logfile: %w", err)
		}
		to, out, closeLog = f, f, func() { f.Close() }
	}
	return out, slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: &level})), closeLog, nil
}

func logLevel(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "nothing":
		return slog.LevelError + 4
	}
	return slog.LevelInfo
}

// listenError keeps of a bind error what a reader needs.
func listenError(err error) error {
	var op *net.OpError
	var sys *os.SyscallError
	if errors.As(err, &op) && errors.As(err, &sys) {
		return fmt.Errorf("cannot listen on %s: %w", op.Addr, sys.Err)
	}
	return err
}

func listenHint(err error, cfg *config.Config) string {
	switch {
	case errors.Is(err, proxy.ErrNowhere):
		return "name an address with --port and --bind, or a socket with --unixsocket"
	case errors.Is(err, proxy.ErrSocketTaken):
		return "name another socket with --unixsocket"
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("another server may be running there; try --port %d", cfg.Int("port")+1)
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 are for privileged users; try --port 6380"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "bind names an address that this machine does not have; try --bind 127.0.0.1"
	}
	return ""
}

func writePid(cfg *config.Config, log *slog.Logger) func() {
	path := cfg.String("pidfile")
	if path == "" {
		return func() {}
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		log.Warn("cannot write the pidfile", "err", err)
		return func() {}
	}
	return func() { os.Remove(path) }
}

// greet says where the server is, what it owns, how durable it is, and what to
// try first.
func greet(out io.Writer, s *proxy.Server, cfg *config.Config) {
	var addrs []string
	host, port := "", ""
	for _, a := range s.Addrs() {
		addrs = append(addrs, a.String())
		if tcp, ok := a.(*net.TCPAddr); ok && host == "" {
			port = strconv.Itoa(tcp.Port)
			host = tcp.IP.String()
			if tcp.IP.IsUnspecified() {
				host = "127.0.0.1"
			}
		}
	}
	fmt.Fprintf(out, "latchkey %s, answering as Redis %s, pid %d\n", version, redisVersion, os.Getpid())
	fmt.Fprintf(out, "  listening   %s\n", strings.Join(addrs, ", "))
	if url := cfg.String("upstream"); url != "" {
		up, _ := upstream.ParseURL(url) // a server is made of it, so it is right
		own := cfg.Strings("own")
		if len(own) == 0 {
			fmt.Fprintf(out, "  owns        no keys; all are forwarded to %s (name ours with --own PATTERN)\n", up.Address)
		} else {
			fmt.Fprintf(out, "  owns        keys like %s; all others are forwarded to %s\n", strings.Join(own, " "), up.Address)
		}
	} else {
		fmt.Fprintf(out, "  owns        all keys (no upstream)\n")
	}
	fmt.Fprintf(out, "  durability  in memory only: a restart begins empty\n")
	switch {
	case port != "":
		at := "-p " + port
		if host != "127.0.0.1" {
			at = "-h " + host + " " + at
		}
		if port == "6380" && host == "127.0.0.1" {
			at = ""
		}
		fmt.Fprintf(out, "  try         latchkey cli %s\n", strings.TrimSpace(at+" SET lock:demo token NX PX 30000"))
	case cfg.String("unixsocket") != "":
		fmt.Fprintf(out, "  try         latchkey cli -s %s SET lock:demo token NX PX 30000\n", cfg.String("unixsocket"))
	}
	if path := cfg.String("unixsocket"); path != "" {
		// Redis's words: who starts servers for tests waits for them.
		fmt.Fprintf(out, "The server is now ready to accept connections at %s\n", path)
	}
	fmt.Fprintln(out, "Ready to accept connections")
}
