package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tidwall/resp"
	"golang.org/x/sys/unix"
)

const (
	dialTimeout = 10 * time.Second // connecting and the TLS handshake
	keepAlive   = 15 * time.Second // as redis-cli: notices a dead server during a long command
)

// address says where the server is and how to reach it.
type address struct {
	host   string
	port   int
	socket string // a unix socket; wins over host and port

	tls      bool
	cacert   string // file with the certificates to trust, PEM; "" for the system's
	cert     string // file with the client's certificate, PEM
	key      string // file with its key, PEM
	insecure bool   // take any certificate
	sni      string // server name asked for and verified; "" for host
}

// String is the address as the prompt and the messages show it.
func (a address) String() string {
	if a.socket != "" {
		return a.socket
	}
	return net.JoinHostPort(a.host, strconv.Itoa(a.port))
}

// conn is a connection that carries whole commands and whole replies. One
// goroutine uses it; close may be called from another, and ends a receive.
type conn struct {
	raw    net.Conn // the socket, below TLS
	nc     net.Conn
	frames *frameReader
}

// dial connects, with TLS if the address says so. Nothing is sent yet.
func dial(a address) (*conn, error) {
	network, target := "tcp", a.String()
	if a.socket != "" {
		network = "unix"
	}
	config, err := a.tlsConfig()
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	raw, err := d.Dial(network, target)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", a, cause(err))
	}
	c := &conn{raw: raw, nc: raw}
	if config != nil {
		secure := tls.Client(raw, config)
		raw.SetDeadline(time.Now().Add(dialTimeout))
		if err := secure.Handshake(); err != nil {
			raw.Close()
			return nil, fmt.Errorf("cannot negotiate TLS with %s: %w", a, cause(err))
		}
		raw.SetDeadline(time.Time{})
		c.nc = secure
	}
	c.frames = newFrameReader(c.nc)
	return c, nil
}

// tlsConfig is nil for a connection without TLS.
func (a address) tlsConfig() (*tls.Config, error) {
	if !a.tls {
		return nil, nil
	}
	config := &tls.Config{
		ServerName:         a.sni,
		InsecureSkipVerify: a.insecure, // the operator asked for it with --insecure
	}
	if config.ServerName == "" {
		config.ServerName = a.host
	}
	if a.cacert != "" {
		pem, err := os.ReadFile(a.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert: %s holds no certificate in PEM form", a.cacert)
		}
	}
	if a.cert != "" || a.key != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// send writes one command.
func (c *conn) send(args []string) error {
	values := make([]resp.Value, len(args))
	for i, arg := range args {
		values[i] = resp.StringValue(arg)
	}
	// Not resp.Writer: its WriteValue answers nil when the write has failed.
	b, err := resp.ArrayValue(values).MarshalRESP()
	if err != nil {
		return err
	}
	_, err = c.nc.Write(b)
	return err
}

// receive waits for one reply. An error reply is a reply, not an error.
func (c *conn) receive() (resp.Value, error) { return c.frames.read() }

// call sends one command and returns its reply.
func (c *conn) call(args ...string) (resp.Value, error) {
	if err := c.send(args); err != nil {
		return resp.Value{}, err
	}
	return c.receive()
}

func (c *conn) close() { c.nc.Close() }

// stale reports whether the server has closed the connection. It looks without
// waiting and without sending: between commands there is nothing to read.
func (c *conn) stale() bool {
	sc, ok := c.raw.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = err == nil && n == 0 || errors.Is(err, unix.ECONNRESET)
	})
	return closed || err != nil
}

// cause strips the layers that repeat the address or name a system call: what
// remains says what was wrong.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err
}

// hint is the line that follows a failure to connect, or "".
func (a address) hint(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) && a.socket != "":
		if a.socket == "" && a.port == defaultPort {
			return "no server is running there; `latchkey serve` starts one, -p 6379 is where redis-server usually is"
		}
		return "no server is running there; -h, -p and -s choose another"
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return "the server does not speak TLS there; leave --tls out or choose its TLS port with -p"
	case a.tls && errors.Is(err, os.ErrDeadlineExceeded):
		return "the server may not speak TLS there: it waits for more; leave --tls out or choose its TLS port with -p"
	case strings.Contains(err.Error(), "certificate signed by unknown authority"):
		return "--cacert FILE names the authority to trust"
	}
	return ""
}
