package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

// slow is the time from which the prompt says how long a command took.
const slow = 500 * time.Millisecond

// interact runs commands from standard input until it ends or says quit: from
// a prompt if it is a terminal, else from its lines.
func (s *session) interact(stdin io.Reader) int {
	file, ok := terminal(stdin)
	if !ok {
		return s.batch(bufio.NewReader(stdin))
	}
	// Ctrl-C must end the command that runs, and not the prompt.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	s.interrupts = interrupts
	s.opt.failOnError = false // as redis-cli: a prompt goes on
	if err := s.connect(true); err != nil {
		s.complain(err)
	}
	return s.prompt(newEditor(file, s.out))
}

// lineReader is where the prompt's lines come from. readLine answers io.EOF
// when there are no more.
type lineReader interface {
	readLine(prompt string) (string, error)
	remember(line string)
}

// prompt runs lines until quit or the end, and goes on after any error.
func (s *session) prompt(lines lineReader) int {
	for {
		s.out.Flush()
		line, err := lines.readLine(s.promptText())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return s.report(fmt.Errorf("cannot read standard input: %w", err))
			}
			return exitOK
		}
		if strings.TrimSpace(line) != "" {
			lines.remember(line)
		}
		select {
		case <-s.interrupts: // pressed after the last command had ended
		default:
		}
		quit, err := s.line(line)
		if errors.Is(err, errInterrupted) {
			s.out.WriteString("\n")
			err = s.resume()
		}
		if errors.Is(err, errOutput) {
			return s.report(err)
		}
		if err != nil {
			s.complain(err)
		}
		if quit {
			return exitOK
		}
	}
}

// promptText is host:port[db](TX)> , as redis-cli has it.
func (s *session) promptText() string {
	if s.conn == nil {
		return "not connected> "
	}
	text := s.opt.address.String()
	if s.db != 0 {
		text += fmt.Sprintf("[%d]", s.db)
	}
	if s.tx {
		text += "(TX)"
	}
	return text + "> "
}

// resume connects again after Ctrl-C has closed the connection.
func (s *session) resume() error {
	if s.conn != nil {
		return nil // the wait between two repetitions was interrupted
	}
	if err := s.connect(true); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "latchkey: interrupted; connected to %s again\n", s.opt.address)
	return nil
}

// batch runs the lines of a file or pipe. It stops at the first failure of the
// connection and, with -e, at the first error reply.
func (s *session) batch(in *bufio.Reader) int {
	if err := s.connect(false); err != nil {
		return s.report(err)
	}
	for number := 1; ; number++ {
		line, err := in.ReadString('\n')
		if line != "" {
			quit, err := s.line(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return s.report(fmt.Errorf("line %d: %w", number, err))
			}
			if quit {
				return exitOK
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return exitOK
		case err != nil:
			return s.report(fmt.Errorf("cannot read standard input: %w", err))
		}
	}
}

// line runs one line: a command, a number and a command to repeat, or one of
// the prompt's own words. What is wrong with the line itself is printed like a
// reply, as redis-cli does; with -e it is an error.
func (s *session) line(line string) (quit bool, err error) {
	args, err := quoting.Split(line)
	if err != nil {
		return false, s.invalid("Invalid argument(s)")
	}
	if len(args) == 0 {
		return false, nil
	}
	repeat := 1
	if n, err := strconv.Atoi(args[0]); len(args) > 1 && (err == nil || errors.Is(err, strconv.ErrRange)) {
		if err != nil || n <= 0 {
			return false, s.invalid("Invalid repeat count: a command can be preceded by a number from 1")
		}
		repeat, args = n, args[1:]
	}
	switch word := strings.ToLower(args[0]); {
	case word == "quit" || word == "exit":
		return true, nil
	case word == "clear" && len(args) == 1:
		s.out.WriteString("\x1b[H\x1b[2J")
		return false, nil
	case word == "connect" && len(args) == 3:
		port, err := parsePort(args[2])
		if err != nil {
			return false, err
		}
		s.opt.address.host, s.opt.address.port, s.opt.address.socket = args[1], port, ""
		return false, s.connect(s.interrupts != nil)
	}
	start := time.Now()
	err = s.run(args, repeat)
	if took := time.Since(start); err == nil && took >= slow && s.opt.layout.format == formatTTY {
		fmt.Fprintf(s.out, "(%.2fs)\n", took.Seconds())
	}
	return false, err
}

func (s *session) invalid(text string) error {
	if s.opt.failOnError {
		return errors.New(text)
	}
	s.out.WriteString(text + "\n")
	return s.out.Flush()
}
