package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTLS puts a TLS listener that wants client certificates in front of a
// redis-server.
func TestTLS(t *testing.T) {
	r := startRedis(t)
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"lock.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := dir+"/cert.pem", dir+"/key.pem"
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", r.socket)
			if err != nil {
				client.Close()
				continue
			}
			wg.Go(func() { io.Copy(server, client); server.Close() })
			wg.Go(func() { io.Copy(client, server); client.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	_, port, _ := net.SplitHostPort(l.Addr().String())

	client := []string{"-p", port, "--tls", "--cert", certFile, "--key", keyFile}
	with := func(args ...string) []string { return append(client[:len(client):len(client)], args...) }
	runCLI("", with("--cacert", certFile, "--sni", "lock.example", "ping")...).want(t, 0, "=PONG\n", "=")
	runCLI("", with("--insecure", "ping")...).want(t, 0, "=PONG\n", "=")
	runCLI("", with("--cacert", certFile, "-u", "rediss://127.0.0.1:"+port, "--sni", "lock.example", "ping")...).want(t, 0, "=PONG\n", "=")
	runCLI("", with("ping")...).want(t, 1, "=", "cannot negotiate TLS with 127.0.0.1:"+port)
	runCLI("", with("--cacert", certFile, "ping")...).want(t, 1, "=", "certificate")
	runCLI("", "-p", port, "--tls", "--insecure", "ping").want(t, 1, "=", "certificate required")
}

// TestTLSWithoutTLS: what a server that does not speak TLS makes of it says what to try.
func TestTLSWithoutTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			client.Write([]byte("-ERR unknown command\r\n"))
			client.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	runCLI("", "--tls", "-p", port, "ping").want(t, 1, "=", "hint: the server does not speak TLS there")

	// One that waits for the end of a line gives no sign.
	if got := (address{tls: true}).hint(fmt.Errorf("cannot negotiate TLS: %w", os.ErrDeadlineExceeded)); !strings.HasPrefix(got, "the server may not speak TLS there") {
		t.Errorf("the hint for a handshake that takes too long is %q", got)
	}
	if got := (address{}).hint(os.ErrDeadlineExceeded); got != "" {
		t.Errorf("the hint for a timeout without TLS is %q, want none", got)
	}
}
