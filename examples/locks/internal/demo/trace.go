package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// trace prints what a client sends and what comes back, one line per command, while it is switched on.
type trace struct {
	mu  sync.Mutex
	on  bool
	out io.Writer
}

func (t *trace) set(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = on
}

func (t *trace) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		fmt.Fprintf(t.out, "  "+format+"\n", args...)
	}
}

// traced is a redis.Hook for one named client.
type traced struct {
	*trace
	name string
}

func (t traced) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (t traced) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if handshake(cmd) {
			return err
		}
		t.note("%-3s %-58s -> %s", t.name, line(cmd), reply(cmd, err))
		return err
	}
}

func (t traced) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if handshake(cmds[0]) {
			return err
		}
		refused := errors.Is(err, redis.TxFailedErr)
		for _, cmd := range cmds {
			got := reply(cmd, cmd.Err())
			switch name := strings.ToUpper(cmd.Name()); {
			case name == "MULTI":
				got = "OK"
			case name == "EXEC" && refused:
				got = "nil: the watched key has changed"
			case name == "EXEC":
				continue // its reply is that of the commands above
			case refused:
				got = "QUEUED"
			}
			t.note("%-3s %-58s -> %s", t.name, line(cmd), got)
		}
		return err
	}
}

var (
	longHex    = regexp.MustCompile(`^[0-9a-f]{32,}$`)
	whitespace = regexp.MustCompile(`\s+`)
)

// line is the command as it would be typed, with tokens and digests cut to four characters.
func line(cmd redis.Cmder) string {
	args := cmd.Args()
	words := make([]string, len(args))
	for i, arg := range args {
		word := fmt.Sprint(arg)
		switch {
		case i == 0:
			word = strings.ToUpper(word)
		case longHex.MatchString(word):
			word = word[:4] + "…"
		case strings.ContainsAny(word, " \n"):
			word = `"` + strings.TrimSpace(whitespace.ReplaceAllString(word, " ")) + `"`
			if strings.ToUpper(words[0]) == "EVAL" {
				word = `"if redis.call(…"`
			}
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

// handshake tells the first words of a connection, which have nothing to do with locks.
func handshake(cmd redis.Cmder) bool {
	name := cmd.Name()
	return name == "hello" || name == "client"
}

// reply is what came back. A hook runs before go-redis has put the error into the command, so it is handed in.
func reply(cmd redis.Cmder, err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "nil"
	case err != nil:
		return err.Error()
	}
	var value any
	switch c := cmd.(type) {
	case *redis.Cmd:
		value = c.Val()
	case *redis.StringCmd:
		value = c.Val()
	case *redis.StatusCmd:
		value = c.Val()
	case *redis.IntCmd:
		value = c.Val()
	case *redis.BoolCmd:
		if value = 0; c.Val() {
			value = 1
		}
	case *redis.DurationCmd:
		if value = c.Val().Milliseconds(); c.Val() < 0 {
			value = int64(c.Val()) // -1 and -2 are not times
		}
	default:
		return "?"
	}
	text := fmt.Sprint(value)
	if longHex.MatchString(text) {
		return text[:4] + "…"
	}
	return text
}
