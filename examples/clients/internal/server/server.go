// Package server starts the server that the tests of this module talk to.
//
//	CLIENTS_SERVER=redis-server   start that program instead of latchkey
//	LATCHKEY_BIN=path             start this latchkey; a relative path counts from the folder of go.mod
//
// With none of them set, latchkey is built from ../../cmd/latchkey.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrMissing says that the program asked for is not installed; the error names the Debian package.
var ErrMissing = errors.New("not installed")

// Program is what servers are started from.
type Program struct {
	// Path is the program, absolute. It takes the arguments of redis-server.
	Path string
	// Latchkey says that it is latchkey and not redis-server.
	Latchkey bool

	dir string
}

// Find finds or builds the program. Close removes what was built.
func Find() (*Program, error) {
	if kind := os.Getenv("CLIENTS_SERVER"); kind == "redis-server" {
		path, err := exec.LookPath(kind)
		if err != nil {
			return nil, fmt.Errorf("redis-server (Debian package redis-server): %w", ErrMissing)
		}
		return &Program{Path: path}, nil
	} else if kind != "" && kind != "latchkey" {
		return nil, fmt.Errorf("CLIENTS_SERVER is %q; it may be latchkey or redis-server", kind)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	if bin := os.Getenv("LATCHKEY_BIN"); bin != "" {
		if !filepath.IsAbs(bin) {
			bin = filepath.Join(root, bin) // tests run in their package's folder
		}
		return &Program{Path: bin, Latchkey: true}, nil
	}
	dir, err := os.MkdirTemp("", "clients-")
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(dir, "latchkey")
	build := exec.Command("go", "build", "-o", bin, "./cmd/latchkey")
	build.Dir = filepath.Join(root, "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build latchkey in %s: %w\n%s", build.Dir, err, out), os.RemoveAll(dir))
	}
	return &Program{Path: bin, Latchkey: true, dir: dir}, nil
}

// moduleRoot is the folder of this module's go.mod, wherever a test runs.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Close removes the program if Find built it.
func (p *Program) Close() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// Server is a running server on a loopback port, empty at the start.
type Server struct {
	Addr string

	program    *Program
	directives []string
	dir        string
	cmd        *exec.Cmd
	output     *bytes.Buffer
}

// Start starts the program on a free port, with directives (--name value), and returns when it answers.
func (p *Program) Start(directives ...string) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: listener.Addr().String(), program: p, directives: directives}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "clients-"); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

func (s *Server) start() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	s.output = &bytes.Buffer{}
	s.cmd = exec.Command(s.program.Path, append([]string{"--port", port, "--save", "", "--appendonly", "no"}, s.directives...)...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if err := answers(s.Addr, 10*time.Second); err != nil {
		_ = s.stop() // waits, so that the output is whole
		return fmt.Errorf("%s does not answer: %w; its output:\n%s", strings.Join(s.cmd.Args, " "), err, s.output)
	}
	return nil
}

// Restart ends the server and starts it again on the same port, empty.
func (s *Server) Restart() error {
	return errors.Join(s.stop(), s.start())
}

// Close ends the server.
func (s *Server) Close() error {
	return errors.Join(s.stop(), os.RemoveAll(s.dir))
}

// stop asks the server to end, and insists after ten seconds, which is an error: clients that stay connected must
// not keep it up.
func (s *Server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	insist := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer insist.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("%s ended with %w within 10 s of SIGTERM; its output:\n%s", s.cmd.Path, err, s.output)
	}
	return nil
}

// answers returns when the server has said something to PING, be it that a password is needed.
func answers(addr string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		err := ping(ctx, addr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}

func ping(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, len("+PONG"))
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	if got := string(reply[:n]); got != "+PONG" && got != "-NOAU" {
		return fmt.Errorf("answered PING with %q", got)
	}
	return nil
}
