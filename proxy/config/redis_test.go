package config

import (
	"bufio"
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

// redisServer is a live redis-server to compare with.
type redisServer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	dir  string
	conf string
}

// startRedis starts a redis-server of its own on a free loopback port, with a configuration file of the given text
// after "save" and "dir" lines. It ends with the test.
func startRedis(t *testing.T, conf string) *redisServer {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal("redis-server is missing: install the Debian package redis-server")
		}
		t.Skip("needs the Debian package redis-server")
	}
	s := &redisServer{t: t, dir: t.TempDir()}
	s.conf = s.dir + "/redis.conf"
	if err := os.WriteFile(s.conf, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	cmd := exec.Command(program, s.conf, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	log := bufio.NewReader(out)
	for {
		line, err := log.ReadString('\n')
		if err != nil {
			t.Fatalf("redis-server did not start: %v", err)
		}
		if strings.Contains(line, "Ready to accept connections") {
			break
		}
	}
	go io.Copy(io.Discard, log)
	if s.conn, err = net.DialTimeout("tcp", "127.0.0.1:"+port, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	s.r = bufio.NewReader(s.conn)
	return s
}

// do sends a command and returns the reply's words; an error reply is one word that begins with "ERR" or the like.
func (s *redisServer) do(args ...string) []string {
	s.t.Helper()
	s.conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(s.conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(s.conn, "$%d\r\n%s\r\n", len(a), a)
	}
	return s.reply()
}

func (s *redisServer) reply() []string {
	line, err := s.r.ReadString('\n')
	if err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '*':
		var words []string
		for range n {
			words = append(words, s.reply()...)
		}
		return words
	case '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(s.r, b); err != nil {
			s.t.Fatalf("redis-server: %v", err)
		}
		return []string{string(b[:n])}
	}
	return []string{line[1:]}
}
