package resp_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startRedis starts a redis-server, the judge of verdicts and of replies, and
// returns the path of its socket.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal("redis-server is missing: install the Debian package redis-server")
		}
		t.Skip("needs redis-server: install the Debian package redis-server")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(program, append([]string{
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir,
	}, args...)...)
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
	log := bufio.NewScanner(out)
	for log.Scan() {
		line := log.Text()
		if strings.Contains(line, "Redis version=") && !strings.Contains(line, "version=7.0.") {
			text := "verdicts were taken from redis-server 7.0.15 (Debian 12's package redis-server), this is another: " + line
			if os.Getenv("LATCHKEY_CI") == "1" {
				t.Fatal(text)
			}
			t.Skip(text)
		}
		// Printed for a Unix socket as it is for a port.
		if strings.Contains(line, "ready to accept connections") {
			go io.Copy(io.Discard, out)
			return socket
		}
	}
	t.Fatal("redis-server ended before it was ready to accept connections")
	return ""
}

// ask sends bytes to a server and returns all that it answers until it closes.
// The end of the sent bytes is visible to it, so that it closes in any case.
func ask(t *testing.T, socket string, request []byte) []byte {
	t.Helper()
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		// The server may close before it has read everything.
		nc.Write(request)
		nc.(*net.UnixConn).CloseWrite()
	}()
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("redis-server did not answer %.80q: %v", request, err)
	}
	return answer.Bytes()
}
