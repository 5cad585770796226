// Package server finds the servers that the tests of this module run against.
//
//	LATCHKEY_ADDR=host:port[,host:port...]   servers that are running, if there are enough
//	LOCKS_SERVER=redis-server                start that program instead of latchkey
//	LATCHKEY_BIN=path                        start this latchkey; a relative path counts from the folder of go.mod
//
// With none of them set, latchkey is built from ../../cmd/latchkey. Started servers listen on a free loopback
// port and end with Close.
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
var ErrMissing = errors.New("server: not installed")

// Set is a number of running servers.
type Set struct {
	Addrs   []string
	running []*exec.Cmd
	dir     string
}

// moduleRoot is the folder of this module's go.mod, wherever a test runs.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("server: go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Start returns n servers that answer PING.
func Start(n int) (set *Set, err error) {
	if env := os.Getenv("LATCHKEY_ADDR"); env != "" {
		if addrs := strings.Split(env, ","); len(addrs) >= n {
			return &Set{Addrs: addrs[:n]}, nil
		}
	}
	set = &Set{}
	defer func() {
		if err != nil {
			err = errors.Join(err, set.Close())
		}
	}()
	if set.dir, err = os.MkdirTemp("", "locks-"); err != nil {
		return set, err
	}
	command, err := set.command()
	if err != nil {
		return set, err
	}
	for range n {
		if err := set.start(command); err != nil {
			return set, err
		}
	}
	return set, nil
}

// command is what to start, up to the port.
func (s *Set) command() ([]string, error) {
	if kind := os.Getenv("LOCKS_SERVER"); kind == "redis-server" {
		path, err := exec.LookPath(kind)
		if err != nil {
			return nil, fmt.Errorf("%w: redis-server (Debian package redis-server)", ErrMissing)
		}
		return []string{path, "--save", "", "--appendonly", "no", "--port"}, nil
	} else if kind != "" && kind != "latchkey" {
		return nil, fmt.Errorf("server: LOCKS_SERVER is %q; it may be latchkey or redis-server", kind)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	if bin := os.Getenv("LATCHKEY_BIN"); bin != "" {
		if !filepath.IsAbs(bin) {
			bin = filepath.Join(root, bin) // tests run in their package's folder
		}
		return []string{bin, "serve", "--port"}, nil
	}
	bin := filepath.Join(s.dir, "latchkey")
	build := exec.Command("go", "build", "-o", bin, "./cmd/latchkey")
	build.Dir = filepath.Join(root, "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("server: build latchkey in %s: %w\n%s", build.Dir, err, out)
	}
	return []string{bin, "serve", "--port"}, nil
}

func (s *Set) start(command []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := listener.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := listener.Close(); err != nil {
		return err
	}
	var output bytes.Buffer
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], port)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &output, &output
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("server: start %s: %w", command[0], err)
	}
	if err := ready(addr, 10*time.Second); err != nil {
		_ = stop(cmd)
		return fmt.Errorf("server: %s does not answer: %w; its output:\n%s", strings.Join(cmd.Args, " "), err, &output)
	}
	s.Addrs, s.running = append(s.Addrs, addr), append(s.running, cmd)
	return nil
}

// ready returns when the server has answered PING, or the time is over.
func ready(addr string, within time.Duration) error {
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
	reply := make([]byte, len("+PONG\r\n"))
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	if got := string(reply[:n]); got != "+PONG\r\n" {
		return fmt.Errorf("answered PING with %q", got)
	}
	return nil
}

// Close ends the servers that Start started, and removes their folder.
func (s *Set) Close() error {
	var errs []error
	for _, cmd := range s.running {
		errs = append(errs, stop(cmd))
	}
	s.running = nil
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// stop asks the server to end, and insists after ten seconds. How it ends is not this module's business.
func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	insist := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer insist.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
