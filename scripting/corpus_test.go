package scripting

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// asker asks a server over two connections, one for each protocol.
type asker struct {
	conns map[int]net.Conn
	read  map[int]*bufio.Reader
}

func dialServer(t testing.TB, addr string) *asker {
	t.Helper()
	a := &asker{map[int]net.Conn{}, map[int]*bufio.Reader{}}
	for proto := 2; proto <= 3; proto++ {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		a.conns[proto], a.read[proto] = conn, bufio.NewReader(conn)
		if _, err := a.ask(proto, "HELLO", strconv.Itoa(proto)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *asker) ask(proto int, args ...string) (transcript.Reply, error) {
	if err := a.send(proto, args...); err != nil {
		return transcript.Reply{}, err
	}
	return transcript.ReadReply(a.read[proto])
}

// send is ask without the reply.
func (a *asker) send(proto int, args ...string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	a.conns[proto].SetDeadline(time.Now().Add(underrace.Slow * 20 * time.Second))
	_, err := a.conns[proto].Write(b.Bytes())
	return err
}

// startLatchkey starts a server of ours and returns its address.
func startLatchkey(t testing.TB, o Options, s Settings) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	runner := NewRunner(newEngine(t, o), s, 2, log)
	server, err := proxy.New(proxy.Options{Families: append(command.Families(), runner.Specs()), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Serve(l)
	t.Cleanup(func() { server.Close(time.Second) })
	return l.Addr().String()
}

// replay runs a snippet on an empty keyspace.
func (s *snippet) replay(a *asker) (got outcome, err error) {
	if _, err := a.ask(2, "FLUSHALL"); err != nil {
		return got, err
	}
	for i, words := range s.setup {
		if r, err := a.ask(2, words...); err != nil {
			return got, err
		} else if r.Kind == transcript.Error {
			return got, fmt.Errorf("the command %q above it answers %s", s.setups[i], r.Text)
		}
	}
	r, err := a.ask(s.proto, s.words(s.command, s.source)...)
	if err != nil {
		return got, err
	}
	got.reply = lineOf(r)
	got.keys, err = dump(a)
	return got, err
}

// words are those of a command that runs the snippet.
func (s *snippet) words(command, what string) []string {
	words := append([]string{command, what, strconv.Itoa(len(s.keys))}, s.keys...)
	return append(words, s.args...)
}

// dump describes every key.
func dump(a *asker) (lines []string, err error) {
	names, err := a.ask(2, "KEYS", "*")
	if err != nil {
		return nil, err
	}
	for _, e := range names.Elems {
		kind, err := a.ask(2, "TYPE", e.Text)
		if err != nil {
			return nil, err
		}
		value := transcript.Reply{}
		switch kind.Text {
		case "string":
			value, err = a.ask(2, "GET", e.Text)
		case "list":
			value, err = a.ask(2, "LRANGE", e.Text, "0", "-1")
		case "set":
			value, err = a.ask(3, "SMEMBERS", e.Text)
		default:
			err = fmt.Errorf("key %q is a %s, which is not dumped", e.Text, kind.Text)
		}
		if err != nil {
			return nil, err
		}
		line := transcript.Quote(e.Text) + " " + lineOf(value)
		if ttl, err := a.ask(2, "PTTL", e.Text); err != nil {
			return nil, err
		} else if ttl.Text != "-1" {
			line += " expires"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines, nil
}

func redisAsker(t testing.TB) *asker {
	t.Helper()
	return dialServer(t, transcript.StartJudge(t).Addr)
}

// updating says that the files are to be written anew.
func updating() bool { return os.Getenv("LATCHKEY_UPDATE") == "1" }

const updateHint = "LATCHKEY_UPDATE=1 go test ./scripting -run TestCorpus writes it anew"

// TestCorpusRedis asks redis-server whether the stored answers are its own.
func TestCorpusRedis(t *testing.T) {
	redis := redisAsker(t)
	for _, f := range readCorpus(t) {
		for _, s := range underrace.Sample(f.snippets, 8) {
			got, err := s.replay(redis)
			if err != nil {
				t.Fatalf("%s:%d: %s\nredis-server: %v", s.file, s.line, s.source, err)
			}
			if !got.equal(s.want) {
				if !updating() {
					t.Errorf("%s:%d: %s\n it says %s\nredis-server answers %s\n%s", s.file, s.line, s.source, s.want, got, updateHint)
				}
				s.want = got
			}
		}
		f.update(t)
	}
}

func (f *corpusFile) update(t *testing.T) {
	t.Helper()
	if !updating() {
		return
	}
	if err := os.WriteFile(f.path, f.print(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCorpus replays the corpus here: every reply, and every key afterwards, is as
// the files say.
func TestCorpus(t *testing.T) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			// What a script wrote before an uncaught error stays, as in Redis.
			addr := startLatchkey(t, Options{Version: "7.0.15", VMOnly: vmOnly}, Settings{KeepOnError: true, Limits: Limits{Time: underrace.Slow * 10 * time.Second}})
			testCorpus(t, engine, dialServer(t, addr))
		})
	}
}

func testCorpus(t *testing.T, engine string, a *asker) {
	same, differ := 0, 0
	for _, f := range readCorpus(t) {
		for _, s := range underrace.Sample(f.snippets, 8) {
			got, err := s.replay(a)
			if err != nil {
				t.Errorf("%s:%d: %s\n%v", s.file, s.line, s.source, err)
				continue
			}
			d := s.differsIn(engine)
			switch {
			case d == nil && got.equal(s.want):
				same++
			case d == nil:
				t.Errorf("%s:%d: %s\n got  %s\n want %s", s.file, s.line, s.source, got, s.want)
			case got.equal(s.want):
				t.Errorf("%s:%d: %s\nis listed as different (%s), and is not: %s", s.file, s.line, s.source, d.reason, got)
			default:
				differ++
				if !got.equal(d.got) {
					if !updating() {
						t.Errorf("%s:%d: %s\n got  %s\n want %s\nas a difference that is accepted: %s", s.file, s.line, s.source, got, d.got, d.reason)
					}
					d.got = got
				}
			}
		}
		f.update(t)
	}
	t.Logf("%s: %d equal, %d accepted differences", engine, same, differ)
}

// TestCorpusFiles: the files are written as they are read, no snippet stands in
// them twice, and they are as many as they are meant to be.
func TestCorpusFiles(t *testing.T) {
	seen := map[string]*snippet{}
	for _, f := range readCorpus(t) {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, f.print()) {
			t.Errorf("%s is not written as it is read; %s", f.path, updateHint)
		}
		for _, s := range f.snippets {
			key := strings.Join(append(append(slices.Clone(s.options), s.setups...), s.source), "\n")
			if first := seen[key]; first != nil {
				t.Errorf("%s:%d: the same stands at %s:%d: %s", s.file, s.line, first.file, first.line, s.source)
			}
			seen[key] = s
			if s.want.reply == "" {
				t.Errorf("%s:%d: %s\nhas no reply; %s", s.file, s.line, s.source, updateHint)
			}
			for _, d := range s.differs {
				if d.reason == "" {
					t.Errorf("%s:%d: %s\na difference without a reason", s.file, s.line, s.source)
				}
			}
		}
	}
	const least = 1000
	if len(seen) < least {
		t.Errorf("%d snippets, want at least %d", len(seen), least)
	}
	t.Logf("%d snippets", len(seen))
}
