package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// limits are what the process that compiles a module may take.
type limits struct {
	pages   int   // of 64 KiB, that linear memories may have
	seconds int   // of processor time, which is counted in whole ones
	space   int64 // bytes of address space, of which a Go program reserves more than it uses
	heap    int64 // bytes from which on it collects without a pause
}

// compileLimits leave room for the largest modules that pass the checks of their
// shape, all in one: those take a quarter of a minute, and some hundred MiB. The
// server says how much processor time.
func compileLimits(pages int) limits {
	return limits{pages: pages, space: 4 << 30, heap: 1 << 30}
}

// maxCode bounds the instrumented code that the child reads, in bytes.
const maxCode = 64 << 20

// childMark stands in the child's environment. A program that does not know the
// sub-command, such as a test's, would otherwise load modules itself, and have
// children without end.
const childMark = "LATCHKEY_PLUGIN_COMPILE"

// Child compiles modules in a process of its own: this program, called as
// `latchkey plugin compile`. A module that keeps the compiler busy or makes it
// eat memory ends that process, not the server.
func Child(maxPages int) plugins.CompileFunc { return child(compileLimits(maxPages)) }

func child(l limits) plugins.CompileFunc {
	return func(ctx context.Context, limit time.Duration, dir string, code []byte) error {
		if os.Getenv(childMark) != "" {
			return errors.New("a process that compiles modules was asked to load one")
		}
		l := l
		l.seconds = max(1, int(math.Ceil(limit.Seconds())))
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("cannot find this program to compile with: %w", err)
		}
		cmd := exec.CommandContext(ctx, self, append([]string{"plugin", "compile", dir}, l.words()...)...)
		cmd.Stdin = bytes.NewReader(code)
		// Nothing of the server's environment, and one processor at a time.
		cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none", childMark + "=1"}
		cmd.WaitDelay = time.Second
		detach(cmd)
		said := &head{max: 4096}
		cmd.Stderr = said
		err = cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &exit) && exit.ExitCode() == exitFailed:
			return errors.New(said.firstLine())
		case errors.As(err, &exit) && exit.UserTime()+exit.SystemTime() >= limit:
			return plugins.ErrCompileTime
		case errors.As(err, &exit):
			return fmt.Errorf("its compiler was ended (%v): it may take %d MiB of memory", exit.ProcessState, l.space>>20)
		}
		return fmt.Errorf("cannot start the compiler: %w", err)
	}
}

func (l limits) words() []string {
	return []string{strconv.Itoa(l.pages), strconv.Itoa(l.seconds), strconv.FormatInt(l.space, 10), strconv.FormatInt(l.heap, 10)}
}

// parseLimits is the opposite of words.
func parseLimits(words []string) (l limits, ok bool) {
	var n [4]int64
	if len(words) != len(n) {
		return l, false
	}
	for i, w := range words {
		var err error
		if n[i], err = strconv.ParseInt(w, 10, 64); err != nil || n[i] <= 0 {
			return l, false
		}
	}
	return limits{int(n[0]), int(n[1]), n[2], n[3]}, true
}

// compile is the child: it reads instrumented code from stdin and leaves what
// it compiled in a folder.
func compile(args []string, stdin io.Reader, stderr io.Writer) int {
	if len(args) == 0 {
		args = []string{""}
	}
	dir := args[0]
	l, ok := parseLimits(args[1:])
	if !ok || dir == "" {
		return usageError(stderr, "compile is what the server calls for itself")
	}
	if err := l.apply(); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	code, err := io.ReadAll(io.LimitReader(stdin, maxCode))
	if err == nil {
		err = plugins.CompileInto(dir, l.pages, code)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return exitOK
}

// head keeps the beginning of what is written to it.
type head struct {
	b   []byte
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.max-len(h.b))]...)
	return len(p), nil
}

func (h *head) firstLine() string {
	line, _, _ := strings.Cut(string(h.b), "\n")
	if line == "" {
		return "the compiler failed and did not say why"
	}
	return line
}
