package scripting

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redisServer is a redis-server of the test's own.
type redisServer struct {
	cmd  *exec.Cmd
	conn net.Conn
	r    *bufio.Reader
}

func startRedis(t *testing.T, options ...string) *redisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal("redis-server is missing: install the Debian package redis-server")
		}
		t.Skip("redis-server is missing: install the Debian package redis-server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd := exec.Command(path, append([]string{
		"--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, options...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start redis-server: %v", err)
	}
	s := &redisServer{cmd: cmd}
	t.Cleanup(func() {
		if s.conn != nil {
			s.conn.Close()
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			break
		}
	}
	go io.Copy(io.Discard, out)
	if s.conn, err = net.Dial("tcp", addr.String()); err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
	s.r = bufio.NewReader(s.conn)
	return s
}

// do sends a command and returns the bytes of its reply.
func (s *redisServer) do(args ...string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	s.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := s.conn.Write(b.Bytes()); err != nil {
		return "", err
	}
	b.Reset()
	if err := s.read(&b); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (s *redisServer) read(b *bytes.Buffer) error {
	for left := 1; left > 0; left-- {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return err
		}
		b.WriteString(line)
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		switch {
		case (line[0] == '$' || line[0] == '=') && n >= 0:
			if _, err := io.CopyN(b, s.r, int64(n+2)); err != nil {
				return err
			}
		case (line[0] == '*' || line[0] == '~') && n > 0:
			left += n
		case line[0] == '%':
			left += 2 * n
		case line[0] == '|': // attributes come before the reply
			left += 2*n + 1
		}
	}
	return nil
}

func clipText(s string) string {
	if len(s) > 600 {
		return s[:600] + "..."
	}
	return s
}
