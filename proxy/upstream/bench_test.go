package upstream

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// benchmark forwards b.N commands from several goroutines with that many commands under way each.
func benchmark(b *testing.B, p *Pool, clients, depth int) {
	raw := cmd("GET", "key:000000000001")
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for id := range clients {
		running.Go(func() {
			calls := make([]*Call, 0, depth)
			for left := b.N / clients; left > 0; left -= depth {
				for range min(depth, left) {
					calls = append(calls, p.Do(Request{Proto: 2, Sticky: uint64(id + 1), Raw: raw}))
				}
				for _, c := range calls {
					if _, err := c.Wait(nil); err != nil {
						b.Error(err)
					}
					c.Release()
				}
				calls = calls[:0]
			}
		})
	}
	running.Wait()
}

// BenchmarkForward is what a command costs against an upstream in the same process, which answers
// as fast as it reads, so its cost is part of the number.
func BenchmarkForward(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answerFast(conn) })
		}
	})
	for _, shape := range []struct{ clients, depth int }{{1, 1}, {50, 1}, {50, 16}} {
		b.Run(fmt.Sprintf("clients=%d/depth=%d", shape.clients, shape.depth), func(b *testing.B) {
			p := openLive(b, Options{URL: "redis://" + listener.Addr().String()})
			benchmark(b, p, shape.clients, shape.depth)
		})
	}
}

// answerFast answers a null for every two bulk headers: the requests are all GET key.
func answerFast(conn net.Conn) {
	defer conn.Close()
	c := &fakeConn{Conn: conn, r: bufio.NewReader(conn)}
	if c.greet() != nil {
		return
	}
	in, out := make([]byte, 64<<10), []byte(nil)
	for dollars := 0; ; {
		n, err := conn.Read(in)
		if err != nil {
			return
		}
		out = out[:0]
		for _, b := range in[:n] {
			if b == '$' {
				if dollars++; dollars%2 == 0 {
					out = append(out, "$-1\r\n"...)
				}
			}
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// BenchmarkForwardLive is the same against redis-server, over its unix socket.
func BenchmarkForwardLive(b *testing.B) {
	socket := transcript.StartJudge(b).Socket
	for _, shape := range []struct{ clients, depth int }{{1, 1}, {50, 1}, {50, 16}} {
		b.Run(fmt.Sprintf("clients=%d/depth=%d", shape.clients, shape.depth), func(b *testing.B) {
			p := openLive(b, Options{URL: "unix://" + socket})
			benchmark(b, p, shape.clients, shape.depth)
		})
	}
}
