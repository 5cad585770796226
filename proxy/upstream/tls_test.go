package upstream

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// testCertificate makes a certificate for upstream.test and a configuration that trusts it.
func testCertificate(t *testing.T) (tls.Certificate, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"upstream.test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, &tls.Config{RootCAs: roots}
}

// serveTLS is an upstream that speaks no newer TLS than most (0: any).
func serveTLS(conn net.Conn, certificate tls.Certificate, most uint16) {
	defer conn.Close()
	secured := tls.Server(conn, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS10,
		MaxVersion:   most,
	})
	defer secured.Close()
	c := &fakeConn{Conn: secured, r: bufio.NewReader(secured)}
	if c.greet() == nil {
		c.echo()
	}
}

// TLS 1.2 at least, the server's name checked, and no plain byte before.
func TestTLS(t *testing.T) {
	certificate, authorities := testCertificate(t)
	for _, tc := range []struct {
		name string
		most uint16
		host string
		text string
	}{
		{"TLS 1.3", 0, "upstream.test", ""},
		{"TLS 1.2", tls.VersionTLS12, "upstream.test", ""},
		{"TLS 1.1", tls.VersionTLS11, "upstream.test", "is unreachable"},
		{"another name", 0, "other.test", "certificate is valid for upstream.test, not other.test"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			var serving sync.WaitGroup
			defer serving.Wait()
			serving.Go(func() { serveTLS(theirs, certificate, tc.most) })
			p := openLive(t, Options{
				URL: "rediss://" + tc.host, Conns: 1, TLS: authorities,
				Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
			})
			got, err := ask(p, request("ECHO", "x"))
			if tc.text == "" {
				wantReply(t, "ECHO", got, err, bulk("x"))
			} else {
				wantError(t, "ECHO", err, ErrUnavailable, tc.text)
			}
			p.Close()
		})
	}
}
