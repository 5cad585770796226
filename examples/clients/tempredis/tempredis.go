// Package tempredis starts a redis-server for a test and ends it again. It has the names that redsync's tests use
// of github.com/stvp/tempredis, and takes its place in them, because that one waits for the words of one version of
// redis-server, and for ever when another is installed.
//
// As there, the program is whatever is called redis-server on PATH, and reads its configuration from standard
// input; so a link of that name puts latchkey under tests which know nothing of it.
package tempredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ready is in the line that says so: "Ready to accept connections" of latchkey and of Redis 4 and later, to which 7.2
// adds "tcp" or "unix", and "The server is now ready to accept connections at FILE" when 7.0 has no TCP port.
const ready = "eady to accept connections"

// Config holds directives of redis.conf and their values.
type Config map[string]string

// Server is a running redis-server.
type Server struct {
	cmd    *exec.Cmd
	dir    string
	socket string
	output chan struct{} // closed when all that it printed has been read
}

// Start starts redis-server and returns when it accepts connections on its unix socket, and on TCP if config has a
// port. The caller's Config stays as it is. If the program ends before that, the error has what it printed.
func Start(config Config) (*Server, error) {
	dir, err := os.MkdirTemp("", "tempredis-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, socket: filepath.Join(dir, "redis.sock"), output: make(chan struct{})}
	directives := Config{"port": "0", "unixsocket": s.socket, "save": `""`, "appendonly": "no", "dir": dir}
	for name, value := range config {
		directives[name] = value
	}
	s.socket = directives["unixsocket"]
	var text strings.Builder
	for name, value := range directives {
		fmt.Fprintf(&text, "%s %s\n", name, value)
	}
	printed, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.cmd = exec.Command("redis-server", "-")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = strings.NewReader(text.String()), w, w
	err = s.cmd.Start()
	w.Close()
	if err != nil {
		printed.Close()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var before strings.Builder
	lines := bufio.NewScanner(printed)
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			go func() { // so that a full pipe never stops the server
				defer close(s.output)
				defer printed.Close()
				_, _ = io.Copy(io.Discard, printed)
			}()
			return s, nil
		}
		fmt.Fprintln(&before, lines.Text())
	}
	printed.Close()
	close(s.output)
	return nil, errors.Join(fmt.Errorf("tempredis: %s ended or closed its output before it was ready; it printed:\n%s",
		s.cmd.Path, &before), s.Kill())
}

// Socket is the path of the unix socket.
func (s *Server) Socket() string { return s.socket }

// Term asks the server to end, and waits for it.
func (s *Server) Term() error { return s.end(syscall.SIGTERM) }

// Kill ends the server at once.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

func (s *Server) end(signal os.Signal) error {
	errSignal := s.cmd.Process.Signal(signal)
	if errors.Is(errSignal, os.ErrProcessDone) {
		errSignal = nil
	}
	errWait := s.cmd.Wait()
	<-s.output
	if signal == syscall.SIGKILL {
		errWait = nil // killed is what was asked for
	}
	return errors.Join(errSignal, errWait, os.RemoveAll(s.dir))
}
