package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server process that was started to replay transcripts on, or to
// compare with. It listens on a free port of 127.0.0.1 and on a Unix socket, and
// keeps nothing on disk.
type Server struct {
	Addr   string // host:port
	Socket string // path

	cmd    *exec.Cmd
	dir    string
	output *tail
	exited chan struct{}
}

// StartServer starts program with the directives that transcripts count on, and
// returns when it answers PING, be it that a password is needed. Both redis-server
// and latchkey take them. Those given here come after them; the first may be the
// path of a configuration file instead, which comes before them. The caller must
// Stop or Kill it.
func StartServer(ctx context.Context, program string, directives ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "transcript")
	if err != nil {
		return nil, err
	}
	var args []string
	if len(directives) > 0 && !strings.HasPrefix(directives[0], "--") {
		args, directives = directives[:1:1], directives[1:]
	}
	socket := filepath.Join(dir, "s")
	args = append(args,
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--unixsocket", socket, "--dir", dir,
		"--save", "", "--appendonly", "no",
		"--enable-debug-command", "yes",
	)
	args = append(args, directives...)
	s := &Server{
		Addr:   net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Socket: socket,
		cmd:    exec.Command(program, args...),
		dir:    dir,
		output: &tail{},
		exited: make(chan struct{}),
	}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s %s: %w; its last output:\n%s", program, strings.Join(args, " "), err, s.output)
	}
	return s, nil
}

// Target is where the server listens.
func (s *Server) Target() Target { return TCP(s.Addr) }

// Stop ends the process, by SIGTERM and after five seconds by SIGKILL, and
// removes its folder.
func (s *Server) Stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second):
		s.cmd.Process.Kill()
		<-s.exited
	}
	os.RemoveAll(s.dir)
}

// Kill is Stop without asking, for who has nothing to lose.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.exited
	os.RemoveAll(s.dir)
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := dialConn(ctx, s.Target(), 2)
		if err == nil {
			_, err = c.do("PING")
			c.nc.Close()
		}
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("ended before it answered PING")
		case <-ctx.Done():
			return fmt.Errorf("no answer to PING: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the last of what a process wrote.
type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(p)
	if over := t.b.Len() - 8192; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
