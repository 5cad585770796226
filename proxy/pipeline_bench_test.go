package proxy

import (
	"crypto/sha1"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// pipelineDepth is how many commands come with one read.
const pipelineDepth = 16

// unlock frees a lock if it has the token.
const unlock = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

// scripts are EVAL and its kin.
func scripts(t testing.TB) []*command.Spec {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	engine, err := scripting.New(scripting.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return scripting.NewRunner(engine, scripting.Settings{}, 2, log).Specs()
}

// A client's way through the server but for the network: sixteen commands are
// read at once, run and answered at once.
func BenchmarkPipeline(b *testing.B) {
	for _, bm := range []struct {
		name, line string // line's argument is the key
		first      int    // of the keys, of which 100,000 hold something
	}{
		{"setnx", "*3\r\n$5\r\nSETNX\r\n$16\r\n%s\r\n$8\r\nvvvvvvvv\r\n", 0},
		{"getset", "*3\r\n$6\r\nGETSET\r\n$16\r\n%s\r\n$8\r\nvvvvvvvv\r\n", 0},
		{"get", "*2\r\n$3\r\nGET\r\n$16\r\n%s\r\n", 0},
		{"evalsha", fmt.Sprintf("*5\r\n$7\r\nEVALSHA\r\n$40\r\n%x\r\n$1\r\n1\r\n$16\r\n%%s\r\n$8\r\nvvvvvvvv\r\n", sha1.Sum([]byte(unlock))), 100_000},
	} {
		b.Run(bm.name, func(b *testing.B) {
			const keys = 100_000
			s := startServer(b, scripts(b))
			conn := &pipelineConn{}
			c := newClient(s, conn)
			defer c.close()
			batches := func(line string, key func(i int) int) [][]byte {
				sent := make([][]byte, keys/pipelineDepth)
				for i := range keys {
					sent[i/pipelineDepth] = fmt.Appendf(sent[i/pipelineDepth], line, fmt.Sprintf("key:%012d", key(i)))
				}
				return sent
			}
			turns := func(n int) {
				for range n {
					if c.Turn() != netloop.Answered || c.Answer() != netloop.Idle {
						b.Fatal("the connection has ended")
					}
				}
			}
			conn.sent = batches("*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$8\r\nwwwwwwww\r\n", func(i int) int { return i })
			turns(len(conn.sent))
			conn.sent, conn.at = [][]byte{fmt.Appendf(nil, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(unlock), unlock)}, 0 // for evalsha
			turns(1)
			order := rand.New(rand.NewPCG(1, 2)).Perm(keys)
			conn.sent = batches(bm.line, func(i int) int { return bm.first + order[i] })
			b.ReportAllocs()
			b.ResetTimer()
			turns((b.N + pipelineDepth - 1) / pipelineDepth)
		})
	}
}

// pipelineConn is a connection on which a client sends without end, a batch for
// each Read, and throws the replies away.
type pipelineConn struct {
	net.Conn
	sent [][]byte
	at   int
}

func (c *pipelineConn) Read(p []byte) (int, error) {
	batch := c.sent[c.at%len(c.sent)]
	c.at++
	if len(p) < len(batch) {
		return 0, io.ErrShortBuffer
	}
	return copy(p, batch), nil
}

func (c *pipelineConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *pipelineConn) Close() error                { return nil }
func (c *pipelineConn) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (c *pipelineConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
