package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a pseudo terminal with somebody at it.
type console struct {
	t     *testing.T
	keys  *os.File
	shown chan []byte
	text  string
}

// openConsole opens a pseudo terminal. A container may have none: then the test
// is skipped, with LATCHKEY_CI=1 it fails.
func openConsole(t *testing.T) (c *console, tty *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatalf("no pseudo terminals here: %v", err)
		}
		// It may: a reader's container without /dev/ptmx can run all else.
		t.Skipf("no pseudo terminals here: %v", err)
	}
	keys := os.NewFile(uintptr(fd), "ptmx") // pollable, so that Close ends a Read
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c = &console{t: t, keys: keys, shown: make(chan []byte, 100)}
	go func() {
		defer close(c.shown)
		for {
			b := make([]byte, 4096)
			n, err := keys.Read(b)
			if err != nil {
				return
			}
			c.shown <- b[:n]
		}
	}()
	t.Cleanup(func() {
		tty.Close()
		keys.Close()
		for range c.shown {
		}
	})
	return c, tty
}

// see waits until the terminal shows a text after what was seen before.
func (c *console) see(want string) {
	c.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		if i := strings.Index(c.text, want); i >= 0 {
			c.text = c.text[i+len(want):]
			return
		}
		select {
		case b, ok := <-c.shown:
			if !ok {
				c.t.Fatalf("the terminal was closed before it showed %q; it shows %q", want, c.text)
			}
			c.text += string(b)
		case <-deadline:
			c.t.Fatalf("the terminal does not show %q but %q", want, c.text)
		}
	}
}

func (c *console) press(keys string) {
	c.t.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// TestTerminal is a session at a real terminal: editing, history, and Ctrl-C
// while a command waits, while messages come, and at the prompt.
func TestTerminal(t *testing.T) {
	r := startRedis(t)
	c, tty := openConsole(t)
	var errOut bytes.Buffer
	exit := make(chan int, 1)
	go func() { exit <- Run([]string{"-p", r.port}, tty, tty, &errOut) }()

	prompt := "\r127.0.0.1:" + r.port + "> "
	interrupt := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	blocked := func(class string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(r.cli("", "info", "clients").out, class); {
			if time.Now().After(deadline) {
				t.Fatalf("no client is %s", class)
			}
		}
	}
	c.see(prompt)
	c.press("sett k v\x1b[D\x1b[D\x1b[D\x1b[D\x7f\r")
	c.see("set k v")
	c.see("OK\r\n")
	c.see(prompt)
	c.press("\x1b[A\x17\x17\x17get k\r")
	c.see("\"v\"\r\n")
	c.see(prompt)
	c.press("blpop nothing 0\r")
	blocked("blocked_clients:1")
	interrupt()
	c.see(prompt)
	c.press("subscribe news\r")
	c.see("Reading messages... (press Ctrl-C to quit)\r\n")
	c.see("1) \"subscribe\"\r\n2) \"news\"\r\n3) (integer) 1\r\n")
	r.cli("", "publish", "news", "hello")
	c.see("1) \"message\"\r\n2) \"news\"\r\n3) \"hello\"\r\n")
	interrupt()
	c.see(prompt)
	c.press("monitor\r")
	c.see("OK\r\n")
	r.cli("", "echo", "seen")
	c.see(`"echo" "seen"`)
	interrupt()
	c.see(prompt)
	c.press("incr k\r")
	c.see("(error) ERR value is not an integer or out of range\r\n")
	c.see(prompt)
	c.press("rubbish\x03")
	c.see("^C")
	c.see(prompt)
	c.press("\x04")
	select {
	case status := <-exit:
		if status != 0 {
			t.Errorf("exit %d, %s", status, errOut.String())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Ctrl-D did not end the prompt")
	}
	if n := strings.Count(errOut.String(), "latchkey: interrupted; connected to 127.0.0.1:"+r.port+" again\n"); n != 3 {
		t.Errorf("three interruptions were told %d times: %q", n, errOut.String())
	}
}

func TestAskPassword(t *testing.T) {
	r := startRedis(t, "--requirepass", "secret")
	r.cli("", "--askpass", "ping").want(t, 1, "=", "--askpass needs a terminal")
	c, tty := openConsole(t)
	var out bytes.Buffer
	exit := make(chan int, 1)
	go func() { exit <- Run([]string{"-p", r.port, "--askpass", "--raw", "ping"}, tty, &out, tty) }()
	c.see("Please input password: ")
	c.press("secret\r")
	c.see("******")
	select {
	case status := <-exit:
		if status != 0 || out.String() != "PONG\n" {
			t.Errorf("exit %d, %q", status, out.String())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the password was not taken")
	}
}
