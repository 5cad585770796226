package resp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

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
