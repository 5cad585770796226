// Random sends random commands with odd arguments to redis-server and to
// latchkey and compares the replies. What differs is cut down to the fewest
// commands that show it and printed as a section of a transcript, with
// latchkey's reply beside redis-server's.
//
//	go run ./store/command/transcript/random -redis redis-server -latchkey bin/latchkey [-seed 1] [-cases 2000] [-families strings,keys]
//
// The same seed makes the same cases. It exits with 1 when something differed.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

var errDiffer = errors.New("they differ")

func main() {
	redis := flag.String("redis", "redis-server", "the redis-server that judges, version 7.0")
	latchkey := flag.String("latchkey", "bin/latchkey", "the latchkey to compare")
	seed := flag.Uint64("seed", 1, "the number that the cases are drawn from")
	cases := flag.Int("cases", 2000, "how many cases to try")
	names := flag.String("families", "", "the families to draw from, with commas between; all if empty")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *redis, *latchkey, *seed, *cases, *names)
	switch {
	case errors.Is(err, errDiffer):
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "random: error: %v\n", err)
		os.Exit(1)
	}
}

// atOnce is how many cases go out in one pipeline.
const atOnce = 50

func run(ctx context.Context, redis, latchkey string, seed uint64, cases int, names string) error {
	all := slices.Sorted(maps.Keys(families))
	if names != "" {
		all = strings.Split(names, ",")
		for _, name := range all {
			if families[name] == nil {
				return fmt.Errorf("no family is named %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(families)), ", "))
			}
		}
	}
	p := &pair{}
	// Scripts that fail keep what they wrote, so that what follows can be compared.
	for i, program := range [][]string{{redis}, {latchkey, "--script-error-rollback", "no"}} {
		server, err := transcript.StartServer(ctx, program[0], program[1:]...)
		if err != nil {
			return err
		}
		defer server.Stop()
		if p[i], err = dial(ctx, server.Target()); err != nil {
			return err
		}
		defer p[i].nc.Close()
	}

	found, same := map[string]int{}, 0
	for n := 0; n < cases && ctx.Err() == nil; {
		var batch []tried
		for ; len(batch) < atOnce && n < cases; n++ {
			batch = append(batch, draft(seed, n, all))
		}
		replies, err := p.play(batch)
		if err != nil {
			return fmt.Errorf("cases %d to %d of seed %d: %w", batch[0].number, n-1, seed, err)
		}
		for i, c := range batch {
			at := c.differs(replies[0][i], replies[1][i])
			if at < 0 {
				same++
				continue
			}
			if err := p.report(seed, c.upTo(at), found); err != nil {
				return err
			}
		}
	}
	fmt.Printf("seed %d: %d cases, %d equal, %d different in %d commands\n", seed, cases, same, cases-same, len(found))
	if len(found) != 0 {
		return errDiffer
	}
	return ctx.Err()
}

// tried is a case: commands for one connection that begins with setup.
type tried struct {
	number   int
	proto    string
	commands [][]string
}

// longestCase is how many commands a case has at most.
const longestCase = 20

func draft(seed uint64, number int, names []string) tried {
	rnd := rand.New(rand.NewPCG(seed, uint64(number)))
	c := tried{number: number, proto: []string{"2", "3"}[rnd.IntN(2)]}
	family := names[rnd.IntN(len(names))]
	for range 3 + rnd.IntN(longestCase-2) {
		from := families[family]
		if rnd.IntN(5) == 0 {
			from = families[names[rnd.IntN(len(names))]]
		}
		c.commands = append(c.commands, disturb(rnd, expand(rnd, from[rnd.IntN(len(from))])))
	}
	return c
}

func (c tried) upTo(last int) tried {
	c.commands = c.commands[:last+1]
	return c
}

// differs is the place of the first command whose replies are not alike, -1 if
// all are.
func (c tried) differs(redis, latchkey []transcript.Reply) int {
	for i, words := range c.commands {
		if !alike(leewayOf(words), redis[i], latchkey[i]) {
			if listed(words, redis[i], latchkey[i]) {
				return -1 // what follows may differ because of it
			}
			return i
		}
	}
	return -1
}

// peer is a connection to one of the servers.
type peer struct {
	nc net.Conn
	r  *bufio.Reader
}

func dial(ctx context.Context, target transcript.Target) (*peer, error) {
	nc, err := target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &peer{nc, bufio.NewReader(nc)}, nil
}

// pair is redis-server and latchkey.
type pair [2]*peer

// play sends cases to both servers and returns the replies of each, by case.
func (p *pair) play(cases []tried) (replies [2][][]transcript.Reply, err error) {
	for i, server := range p {
		if replies[i], err = server.play(cases); err != nil {
			return replies, fmt.Errorf("%s: %w", []string{"redis-server", "latchkey"}[i], err)
		}
	}
	return replies, nil
}

// playTime is how long a pipeline of cases may take.
const playTime = time.Minute

func (s *peer) play(cases []tried) ([][]transcript.Reply, error) {
	var sent []byte
	for _, c := range cases {
		sent = append(sent, transcript.Encode([]string{"RESET"})...)
		sent = append(sent, transcript.Encode([]string{"HELLO", c.proto})...)
		for _, line := range setup {
			words, err := transcript.SplitWords(line)
			if err != nil {
				return nil, err
			}
			sent = append(sent, transcript.Encode(words)...)
		}
		for _, words := range c.commands {
			sent = append(sent, transcript.Encode(words)...)
		}
	}
	s.nc.SetDeadline(time.Now().Add(playTime))
	wrote := make(chan error, 1)
	go func() {
		_, err := s.nc.Write(sent)
		wrote <- err
	}()
	var all [][]transcript.Reply
	for _, c := range cases {
		var replies []transcript.Reply
		for i := range 2 + len(setup) + len(c.commands) {
			r, err := transcript.ReadReply(s.r)
			if err != nil {
				return nil, fmt.Errorf("case %d: %w", c.number, err)
			}
			if i >= 2+len(setup) {
				replies = append(replies, r)
			}
		}
		all = append(all, replies)
	}
	return all, <-wrote
}

// report prints a case that differs at its last command, once for each command
// and kind of reply.
func (p *pair) report(seed uint64, c tried, found map[string]int) error {
	c, err := p.shorten(c)
	if err != nil {
		return err
	}
	replies, err := p.play([]tried{c})
	if err != nil {
		return err
	}
	last := len(c.commands) - 1
	if c.differs(replies[0][0], replies[1][0]) != last {
		return nil // it came of the moment
	}
	sort := strings.ToLower(c.commands[last][0]) + string(replies[0][0][last].Kind) + string(replies[1][0][last].Kind)
	if found[sort]++; found[sort] > 1 {
		return nil
	}
	fmt.Printf("== seed %d, case %d, RESP%s\n\n", seed, c.number, c.proto)
	for i, words := range c.commands {
		quoted := make([]string, len(words))
		for j, w := range words {
			quoted[j] = transcript.Quote(w)
		}
		fmt.Println(strings.Join(quoted, " "))
		for _, line := range replies[0][0][i].Lines() {
			fmt.Println("  " + line)
		}
	}
	fmt.Println("# latchkey:")
	for _, line := range replies[1][0][last].Lines() {
		fmt.Println("#   " + line)
	}
	fmt.Println()
	return nil
}

// shorten leaves out every command without which the last still differs.
func (p *pair) shorten(c tried) (tried, error) {
	for i := len(c.commands) - 2; i >= 0; i-- {
		fewer := c
		fewer.commands = slices.Delete(slices.Clone(c.commands), i, i+1)
		replies, err := p.play([]tried{fewer})
		if err != nil {
			return c, err
		}
		if fewer.differs(replies[0][0], replies[1][0]) == len(fewer.commands)-1 {
			c = fewer
		}
	}
	return c, nil
}
