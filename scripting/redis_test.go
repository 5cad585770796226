package scripting

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// redisServer is a connection to a redis-server of the test's own.
type redisServer struct {
	conn net.Conn
	r    *bufio.Reader
}

func startRedis(t *testing.T, options ...string) *redisServer {
	t.Helper()
	conn, err := net.Dial("tcp", transcript.StartJudge(t, options...).Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisServer{conn, bufio.NewReader(conn)}
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
