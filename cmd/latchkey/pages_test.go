package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// TestPages runs the sessions of the pages that readers paste from, word for
// word, with `latchkey cli` and with redis-cli. A session is what stands in the
// page's blocks marked console:
//
//	$ go run ./cmd/latchkey serve ...    starts the server, or another in its place
//	$ go run ./cmd/latchkey cli ...      the client
//	$ latchkey serve ...                 the same, for readers who have installed it
//	$ anything else                      runs in a shell, "> " continues it
//	127.0.0.1:6380> SET a b              is typed into the client
//
// What stands below is what they print. The server takes a port of its own, and
// its process id is not compared.
func TestPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"README.md", "docs/TUTORIAL.md", "docs/SCRIPTING.md"}
	if !underrace.On { // under which compiling a plugin in Go takes longer than it may
		pages = append(pages, "docs/PLUGINS.md")
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, page))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := parseSteps(page, string(text))
			if err != nil {
				t.Fatal(err)
			}
			t.Run("latchkey-cli", func(t *testing.T) { playPage(t, root, steps, "latchkey cli") })
			t.Run("redis-cli", func(t *testing.T) {
				playPage(t, root, steps, need(t, redisCLI, "redis-cli", "redis-tools"))
			})
		})
	}
}

// need returns the path of a program that was looked for at start. Without one
// the test is skipped, with LATCHKEY_CI=1 it fails.
func need(t *testing.T, path, program, debian string) string {
	t.Helper()
	if path == "" {
		text := fmt.Sprintf("%s is not installed; on Debian: apt install %s", program, debian)
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal(text)
		}
		// It may: the README promises that Go is all that is needed.
		t.Skip(text)
	}
	return path
}

const (
	prompt       = "127.0.0.1:6380> "
	serveCommand = "go run ./cmd/latchkey serve"
	cliCommand   = "go run ./cmd/latchkey cli"
)

// installed are the commands for a reader who has the program in the PATH.
var installed = regexp.MustCompile(`^latchkey (serve|cli)\b`)

// step is one thing that the reader does, and what it prints.
type step struct {
	at    string // page:line
	shell string // a line for the shell, or empty
	typed string // a line for the client's prompt
	want  string
}

// parseSteps takes the sessions out of a page.
func parseSteps(page, text string) ([]step, error) {
	var steps []step
	inside := false
	for i, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", page, i+1)
		last := len(steps) - 1
		switch {
		case !inside:
			inside = line == "```console"
			if inside {
				steps = append(steps, step{}) // what a block begins with is not the last one's output
			}
		case line == "```":
			inside = false
		case strings.HasPrefix(line, "$ "):
			shell, _, _ := strings.Cut(line[2:], "  # ") // a remark for the reader
			if installed.MatchString(shell) {
				shell = "go run ./cmd/" + shell
			}
			steps = append(steps, step{at: at, shell: strings.TrimSpace(shell)})
		case strings.HasPrefix(line, prompt):
			steps = append(steps, step{at: at, typed: line[len(prompt):]})
		case strings.HasPrefix(line, "> ") && steps[last].shell != "" && steps[last].want == "":
			steps[last].shell += "\n" + line[2:]
		case steps[last].at == "":
			return nil, fmt.Errorf("%s: a session begins with \"$ \" or the prompt, have %q", at, line)
		default:
			steps[last].want += line + "\n"
		}
	}
	var kept []step
	for _, s := range steps {
		if s.at != "" {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%s: no session: blocks that begin with ```console", page)
	}
	return kept, nil
}

// playPage does what the page says with a client of the reader's choice.
func playPage(t *testing.T, root string, steps []step, client string) {
	port := mustFreePort(t)
	dir := t.TempDir()
	client = fmt.Sprintf("%s -p %d --no-raw", client, port)
	var server *process
	defer func() {
		if server != nil {
			server.stop()
		}
	}()
	run := func(s step, stdin, command string) string {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s: %v", s.at, command, err)
		}
		return string(out)
	}
	compare := func(s step, what, want, got string) {
		t.Helper()
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s: %s\nprints otherwise than the page says (-page +now):\n%s", s.at, what, diff)
		}
	}
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		switch {
		case strings.HasPrefix(s.shell, serveCommand):
			if server != nil {
				server.stop()
			}
			args := strings.Fields(strings.TrimSuffix(s.shell[len(serveCommand):], "&"))
			for j := range args {
				args[j] = strings.Trim(args[j], "'")
				if j > 0 && args[j-1] == "--dir" {
					args[j] = filepath.Join(dir, args[j]) // which the reader's shell has made
				}
			}
			var err error
			server, err = startServer(root, "", "latchkey", append([]string{"serve", "--port", fmt.Sprint(port)}, args...)...)
			if err != nil {
				t.Fatalf("%s: %v", s.at, err)
			}
			if s.want != "" {
				compare(s, s.shell, asOnPage(s.want, 6380), asOnPage(server.stdout.String(), port))
			}
		case s.shell == cliCommand:
			// What is typed follows.
		case s.shell != "":
			compare(s, s.shell, s.want, run(s, "", strings.ReplaceAll(s.shell, cliCommand, client)))
		default:
			// Lines typed one after the other belong to one connection.
			typed, want := s.typed+"\n", s.want
			for i+1 < len(steps) && steps[i+1].shell == "" {
				i++
				typed += steps[i].typed + "\n"
				want += steps[i].want
			}
			compare(s, "what is typed from here", want, took.ReplaceAllString(run(s, typed, client), ""))
		}
	}
}

// took is how long a slow command has taken, which both clients add to its reply.
var took = regexp.MustCompile(`(?m)^\(\d+\.\d+s\)\n`)

var pid = regexp.MustCompile(`\bpid \d+`)

// asOnPage makes a greeting what it is on the default port.
func asOnPage(greeting string, port int) string {
	greeting = pid.ReplaceAllString(greeting, "pid 4242")
	greeting = strings.ReplaceAll(greeting, fmt.Sprintf(" -p %d", port), "")
	greeting = strings.ReplaceAll(greeting, fmt.Sprintf(":%d", port), ":6380")
	return strings.ReplaceAll(greeting, ", [::1]:6380", "") // not every machine has IPv6
}
