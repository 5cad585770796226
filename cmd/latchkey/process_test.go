package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// ready is the line that tools which start a redis-server wait for.
const ready = "Ready to accept connections"

// process is a server that runs in the background.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *saidBuffer
	exited         chan struct{}
}

// startServer starts a server in a folder and returns when it has said that it
// is ready. The caller must stop it.
func startServer(dir, stdin, path string, args ...string) (*process, error) {
	cache, err := os.MkdirTemp("", "latchkey-cache-") // of compiled modules
	if err != nil {
		return nil, err
	}
	isReady := make(chan struct{})
	var once sync.Once
	seen := func() { once.Do(func() { close(isReady) }) }
	p := &process{
		cmd:    exec.Command(path, args...),
		stdout: &saidBuffer{line: ready, seen: seen},
		stderr: &saidBuffer{line: ready, seen: seen},
		exited: make(chan struct{}),
	}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	p.cmd.Stdin = strings.NewReader(stdin)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		os.RemoveAll(cache)
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		os.RemoveAll(cache)
		close(p.exited)
	}()
	select {
	case <-isReady:
		return p, nil
	case <-p.exited:
		err = errors.New("it ended before it was ready: " + p.cmd.ProcessState.String())
	case <-time.After(patience):
		err = fmt.Errorf("it did not say %q within %v", ready, patience)
	}
	p.stop()
	return nil, fmt.Errorf("%s %s: %w; it said:\n%s%s", path, strings.Join(args, " "), err, p.stdout, p.stderr)
}

// stop ends the process, if it has not ended.
func (p *process) stop() {
	select {
	case <-p.exited:
		return
	default:
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.exited
	}
}

// saidBuffer keeps what a process writes, and tells when a line was seen.
type saidBuffer struct {
	line string
	seen func()

	mu sync.Mutex
	b  bytes.Buffer
}

func (t *saidBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(p)
	if bytes.Contains(t.b.Bytes(), []byte(t.line+"\n")) {
		t.seen()
	}
	return len(p), nil
}

func (t *saidBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// freePort is a TCP port that nobody listens on. Somebody else may take it
// before it is used; then the test says that it is taken.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// mustFreePort is freePort for tests.
func mustFreePort(t *testing.T) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
