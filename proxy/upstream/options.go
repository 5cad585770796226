package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"
)

// Options says how to reach an upstream. Only URL is needed.
type Options struct {
	// URL of the upstream, as ParseURL reads it.
	URL string

	// Conns is the number of connections for each database and protocol version in use, made
	// when first needed. More spread large replies; fewer make larger batches. Default 2.
	Conns int

	// Databases is how many databases a Request may name, from 0. It bounds the number of
	// connections to Databases x 2 x Conns. Default 16.
	Databases int

	// DialTimeout bounds connecting, TLS and handshake together. Default 2 s.
	DialTimeout time.Duration

	// ReplyTimeout is for how long an upstream that owes a reply, or a request's rest, may move
	// no byte before the connection is given up (found at most a quarter later). It must be
	// longer than the slowest command: a script upstream may run for 5 s before Redis itself
	// answers others. Default 10 s.
	ReplyTimeout time.Duration

	// MaxReply is the largest reply in bytes; a larger one ends the connection. Default
	// 512 MiB and 64 KiB, so that the largest string fits.
	MaxReply int

	// ReplyBytes bounds the bytes of all replies of 1 KiB and more that are not released yet;
	// beyond it replies are dropped, with ErrUnknownOutcome. Default 1 GiB.
	ReplyBytes int64

	// QueueCommands bounds the commands of a connection that are unanswered, written or not;
	// beyond it they fail with ErrBusy. Default 65536.
	QueueCommands int

	// QueueBytes bounds the bytes of a connection that are not written yet, counting those in
	// the hands of the kernel's write; one command of any size may wait alone. Beyond it
	// commands fail with ErrBusy. Default 64 MiB.
	QueueBytes int

	// BackoffMin and BackoffMax are the first and the longest pause between two attempts to
	// reach an upstream that is down; it doubles from one to the other and is then multiplied
	// by a random number from 0.5 to 1. Defaults 50 ms and 5 s.
	BackoffMin, BackoffMax time.Duration

	// TLS is the configuration for rediss URLs; nil is the system's certificate authorities.
	// It is cloned; versions below TLS 1.2 are not used whatever it says, and an empty
	// ServerName becomes the URL's host.
	TLS *tls.Config

	// Logger gets lost and regained connections. Default: none.
	Logger *slog.Logger

	// Dial opens the connection under TLS and handshake. Default: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Jitter gives random numbers from 0 to 1 for the backoff. Default: math/rand/v2.
	Jitter func() float64
}

// check fills in the defaults and names the first field that makes no sense.
func (o *Options) check() (Target, error) {
	target, err := ParseURL(o.URL)
	if err != nil {
		return Target{}, err
	}
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"Conns", &o.Conns, 2},
		{"Databases", &o.Databases, 16},
		{"MaxReply", &o.MaxReply, 512<<20 + 64<<10},
		{"QueueCommands", &o.QueueCommands, 64 << 10},
		{"QueueBytes", &o.QueueBytes, 64 << 20},
	} {
		if *f.value < 0 {
			return Target{}, fmt.Errorf("upstream options: %s is %d, must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	for _, f := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"DialTimeout", &o.DialTimeout, 2 * time.Second},
		{"ReplyTimeout", &o.ReplyTimeout, 10 * time.Second},
		{"BackoffMin", &o.BackoffMin, 50 * time.Millisecond},
		{"BackoffMax", &o.BackoffMax, max(5*time.Second, o.BackoffMin)},
	} {
		if *f.value < 0 {
			return Target{}, fmt.Errorf("upstream options: %s is %v, must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	if o.ReplyBytes < 0 {
		return Target{}, fmt.Errorf("upstream options: ReplyBytes is %d, must not be negative", o.ReplyBytes)
	}
	if o.ReplyBytes == 0 {
		o.ReplyBytes = 1 << 30
	}
	if o.BackoffMax < o.BackoffMin {
		return Target{}, fmt.Errorf("upstream options: BackoffMax %v is below BackoffMin %v", o.BackoffMax, o.BackoffMin)
	}
	if o.ReplyTimeout < 4 {
		return Target{}, fmt.Errorf("upstream options: ReplyTimeout is %v, too short to watch", o.ReplyTimeout)
	}
	if target.DB >= o.Databases {
		return Target{}, fmt.Errorf("upstream options: the URL names database %d, but Databases is %d", target.DB, o.Databases)
	}
	if target.TLS {
		if o.TLS == nil {
			o.TLS = &tls.Config{}
		}
		o.TLS = o.TLS.Clone()
		o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS12)
		if o.TLS.ServerName == "" {
			o.TLS.ServerName = target.Host
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.Level(127)}))
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return target, nil
}
