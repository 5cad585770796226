// Package demo is what the seven programs have in common: flags, clients whose commands are printed, and the
// way a race is shown: first in order, command by command, then many times with all contenders at once.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
)

// Stage is what a program works with. Clients are closed when the program ends.
type Stage struct {
	Key string // the lock's key, on every server; deleted before each race and at the end

	out        io.Writer
	addrs      []string
	contenders int
	rounds     int
	holds      int
	trace      trace
	clients    map[string]*redis.Client
}

// backstage is the client whose commands are not part of the story.
const backstage = "backstage"

// Race is one way to lock under one kind of bad luck.
type Race struct {
	Label string // begins with "wrong: ", "right: " or "limit: "
	// Round returns a fresh round. Clients are taken from the Stage: A is the one with the bad luck, B and on
	// contend.
	Round func(section *contention.Section) contention.Round
	// Watched is false for a race that is not worth reading command by command.
	Watched bool
	// Contenders is how many are watched; 0 means two.
	Contenders int
	// Rounds replaces the number of rounds asked for, if that is higher; 0 does not.
	Rounds int
}

// Main runs a program and ends the process: with 0, with 1 and a line on standard error if it failed, or with 2
// if it was called wrongly. servers is how many addresses it needs.
func Main(name string, servers int, play func(ctx context.Context, s *Stage) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, name, servers, os.Args[1:], os.Stdout, os.Stderr, play)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, name string, servers int, args []string, out, errOut io.Writer, play func(ctx context.Context, s *Stage) error) int {
	s := &Stage{out: out, trace: trace{out: out}, clients: map[string]*redis.Client{}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(errOut)
	defaultAddr, what := "127.0.0.1:6380", "address of the server"
	if servers > 1 {
		defaultAddr, what = "127.0.0.1:6381,127.0.0.1:6382,127.0.0.1:6383", fmt.Sprintf("addresses of %d independent servers, separated by commas", servers)
	}
	addr := flags.String("addr", defaultAddr, what)
	remote := flags.Bool("remote", false, "allow a server that is not on this machine")
	flags.StringVar(&s.Key, "key", "example:lock.foo", "key of the lock; it is overwritten and deleted")
	flags.IntVar(&s.contenders, "contenders", 8, "clients that want the lock at once, 2 to 24")
	flags.IntVar(&s.rounds, "rounds", 100, "how often each race is run, 1 to 10000")
	flags.IntVar(&s.holds, "holds", 500, "how often the right lock is taken in plain use, 1 to 100000")
	limit := flags.Duration("limit", time.Minute, "longest run")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	s.addrs = strings.Split(*addr, ",")
	if err := s.check(servers, flags.Args(), *remote); err != nil {
		fmt.Fprintf(errOut, "%s: error: %v\n", name, err)
		return 2
	}

	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	defer s.close()
	if err := s.reach(ctx); err != nil {
		fmt.Fprintf(errOut, "%s: error: %v\n%s: hint: start one with: go run ./cmd/latchkey serve --port <port>\n", name, err, name)
		return 1
	}
	err := s.clear(ctx) // of what a run left that was cut short
	if err == nil {
		err = play(ctx, s)
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err = errors.Join(err, s.clear(cleanup)); err != nil {
		fmt.Fprintf(errOut, "%s: error: %v\n", name, err)
		return 1
	}
	return 0
}

func (s *Stage) check(servers int, rest []string, remote bool) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q; everything is a flag, see -help", rest[0])
	case len(s.addrs) != servers:
		return fmt.Errorf("-addr names %d servers, this program needs %d", len(s.addrs), servers)
	case s.contenders < 2 || s.contenders > 24:
		return fmt.Errorf("-contenders is %d; it may be 2 to 24", s.contenders)
	case s.rounds < 1 || s.rounds > 10000:
		return fmt.Errorf("-rounds is %d; it may be 1 to 10000", s.rounds)
	case s.holds < 1 || s.holds > 100000:
		return fmt.Errorf("-holds is %d; it may be 1 to 100000", s.holds)
	}
	for _, addr := range s.addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("-addr: %w", err)
		}
		if ip := net.ParseIP(host); !remote && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("%s is not on this machine; these programs overwrite the key %q and load the server: add -remote if that is meant", addr, s.Key)
		}
	}
	return nil
}

func (s *Stage) reach(ctx context.Context) error {
	for i := range s.addrs {
		if err := s.Server(backstage, i).Ping(ctx).Err(); err != nil {
			return fmt.Errorf("no server answers at %s: %w", s.addrs[i], err)
		}
	}
	return nil
}

// Client returns the client of that name on the first server.
func (s *Stage) Client(name string) *redis.Client { return s.Server(name, 0) }

// Server returns the client of that name on one server. It is made when it is first asked for, which must not
// happen in several goroutines.
func (s *Stage) Server(name string, server int) *redis.Client {
	if len(s.addrs) > 1 {
		name = fmt.Sprintf("%s%d", name, server+1)
	}
	c, ok := s.clients[name]
	if !ok {
		c = Dial(s.addrs[server])
		if !strings.HasPrefix(name, backstage) {
			c.AddHook(traced{&s.trace, name})
		}
		s.clients[name] = c
	}
	return c
}

// Servers returns the clients of that name on all servers.
func (s *Stage) Servers(name string) []redis.UniversalClient {
	all := make([]redis.UniversalClient, len(s.addrs))
	for i := range s.addrs {
		all[i] = s.Server(name, i)
	}
	return all
}

// Contender is the name of a contender: B, C, D and on.
func Contender(i int) string { return string(rune('B' + i)) }

// Contenders makes something for every contender there can be, before they run at once.
func Contenders[T any](s *Stage, make func(name string) T) []T {
	var all []T
	for i := range s.contenders {
		all = append(all, make(Contender(i)))
	}
	return all
}

// Dial returns a client as a lock wants it.
func Dial(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr,
		// A command sent again after a lost reply would find what the first has done: SET NX our own lock, DEL
		// the lock of somebody else.
		MaxRetries:    -1,
		DialerRetries: 1,
		// Without this a context's deadline does not end the wait for a reply.
		ContextTimeoutEnabled: true,
		// Announcements of a hosted server's maintenance; nothing that a lock needs.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Lapse makes the time of the lock pass on every server. A lock without an expiry stays, and that is said.
func (s *Stage) Lapse(ctx context.Context) error {
	gone := true
	for i := range s.addrs {
		ended, err := contention.Lapse(ctx, s.Server(backstage, i), s.Key)
		if err != nil {
			return err
		}
		gone = gone && ended
	}
	if gone {
		s.Note("time passes (the rest of the TTL is cut to 1 ms); PTTL is -2, the key is gone")
	} else {
		s.Note("time passes; PTTL is -1, the key has no end")
	}
	return nil
}

// Note prints a line among the commands of a race that is watched, and nothing otherwise.
func (s *Stage) Note(format string, args ...any) { s.trace.note("--- "+format, args...) }

// Say prints a line.
func (s *Stage) Say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// Watch prints the commands that the clients send while do runs.
func (s *Stage) Watch(title string, do func() error) error {
	fmt.Fprintf(s.out, "\n%s\n", title)
	s.trace.set(true)
	defer s.trace.set(false)
	return do()
}

// Show prints each race in order, then how all of them end when everybody comes at once.
func (s *Stage) Show(ctx context.Context, races ...Race) error {
	for _, race := range races {
		if !race.Watched {
			continue
		}
		if err := s.clear(ctx); err != nil {
			return err
		}
		contenders := race.Contenders
		if contenders == 0 {
			contenders = 2
		}
		var section contention.Section
		if err := s.Watch(race.Label, func() error { return race.Round(&section).InOrder(ctx, &section, contenders) }); err != nil {
			return fmt.Errorf("%s: %w", race.Label, err)
		}
		fmt.Fprintf(s.out, "  holders at once: %d\n", section.Count().Most)
	}

	width := 0
	for _, race := range races {
		width = max(width, len(race.Label))
	}
	fmt.Fprintf(s.out, "\n%-*s  rounds  holders  overlapped  most at once  nobody got in\n", width,
		fmt.Sprintf("%d contenders at once", s.contenders))
	for _, race := range races {
		rounds := s.rounds
		if race.Rounds > 0 {
			rounds = min(rounds, race.Rounds)
		}
		var section contention.Section
		deserted := 0
		for range rounds {
			if err := s.clear(ctx); err != nil {
				return err
			}
			before := section.Count().Holders
			if err := race.Round(&section).AtOnce(ctx, &section, s.contenders); err != nil {
				return fmt.Errorf("%s: %w", race.Label, err)
			}
			if section.Count().Holders == before {
				deserted++
			}
		}
		count := section.Count()
		fmt.Fprintf(s.out, "%-*s  %6d  %7d  %10d  %12d  %13d\n", width, race.Label,
			rounds, count.Holders, count.Overlapped, count.Most, deserted)
	}
	return nil
}

// Use prints how the right lock does in plain use.
func (s *Stage) Use(ctx context.Context, label string, acquire func(ctx context.Context, contender int) (func(context.Context) error, error)) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	var section contention.Section
	load := contention.Load{
		Contenders: s.contenders,
		Holds:      s.holds,
		Acquire:    acquire,
		Work:       func(ctx context.Context) error { return s.Client(backstage).Ping(ctx).Err() },
	}
	if err := load.Run(ctx, &section); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	count := section.Count()
	fmt.Fprintf(s.out, "\nplain use of the right way (%s): held %d times by %d contenders, overlapped %d\n",
		label, count.Holders, s.contenders, count.Overlapped)
	return nil
}

func (s *Stage) clear(ctx context.Context) error {
	for i := range s.addrs {
		if err := s.Server(backstage, i).Del(ctx, s.Key).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) close() {
	for _, c := range s.clients {
		_ = c.Close() // the program ends; there is nobody to tell
	}
}
