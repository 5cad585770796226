// Package plugin is `latchkey plugin`: what authors of modules need between
// writing one and loading it, and the process that compiles modules for the
// server.
package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Usage:
  latchkey plugin new --lang LANGUAGE NAME [FOLDER]
      Makes a project that builds and has a test; the languages are those of the SDKs.
  latchkey plugin pack MODULE.wasm MANIFEST.json [OUT.wasm]
      Puts the manifest into the module, in place unless OUT.wasm is given.
  latchkey plugin inspect FILE.wasm
      What the module is, which commands it brings, what it asks for, and whether it would load.
  latchkey plugin test FILE.wasm [--update] TRANSCRIPT ...
      Replays commands on an in-memory server that has loaded the module, in RESP2 and RESP3,
      and compares the replies. --update writes the replies into the transcripts.
  latchkey plugin bench FILE.wasm [-n CALLS] [--setup "COMMAND ..."] COMMAND [ARG ...]
      Runs one command again and again in this process: time, allocations and memory per call.

docs/PLUGINS.md begins at nothing.
`

// Program is what the sub-commands need of the program around them.
type Program struct {
	// Serve runs a server in this process with the given directives, as after
	// `latchkey serve`, and returns its address and how to end it.
	Serve func(directives []string, log io.Writer) (addr string, stop func(), err error)
	// Commands is a table of all commands that a server has without modules.
	Commands func() (*command.Table, error)
}

// Run is the sub-command; args are the words behind `latchkey plugin`. It returns the exit
// code.
func (p Program) Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch name, rest := args[0], args[1:]; name {
	case "pack":
		return pack(rest, stdout, stderr)
	case "inspect":
		return p.inspect(rest, stdout, stderr)
	case "test":
		return p.test(rest, stdout, stderr)
	case "bench":
		return bench(rest, stdout, stderr)
	case "new":
		return newProject(rest, stdout, stderr)
	case "compile":
		return compile(rest, stdin, stderr)
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return exitOK
	default:
		return usageError(stderr, fmt.Sprintf("unknown sub-command %q of plugin", name))
	}
}

func usageError(stderr io.Writer, text string) int {
	fmt.Fprintf(stderr, "latchkey: error: %s\n", text)
	fmt.Fprintln(stderr, "latchkey: hint: latchkey plugin help shows the usage")
	return exitUsage
}

// failed says what went wrong with a file.
func failed(stderr io.Writer, err error) int {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	fmt.Fprintf(stderr, "latchkey: error: %v\n", err)
	return exitFailed
}

// options takes flags out of args: those of values have a value, which goes to
// where they point, once; those of switches have none. What begins with a dash and is
// neither is an error. Flags end at the first other word if first is set.
func options(args []string, first bool, values map[string]func(string) error, switches map[string]*bool) ([]string, error) {
	var words []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch set, value := values[a], switches[a]; {
		case value != nil:
			*value = true
		case set != nil && i+1 < len(args):
			i++
			if err := set(args[i]); err != nil {
				return nil, fmt.Errorf("%s %s: %w", a, args[i], err)
			}
		case set != nil:
			return nil, fmt.Errorf("%s wants a value", a)
		case strings.HasPrefix(a, "-") && a != "-":
			return nil, fmt.Errorf("unknown option %s", a)
		case first && len(words) > 0:
			return append(words, args[i:]...), nil
		default:
			words = append(words, a)
		}
	}
	return words, nil
}
