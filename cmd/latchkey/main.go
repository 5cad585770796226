// Command latchkey is a Redis-protocol proxy with an atomic store of its own.
//
//	latchkey serve [FILE.conf | -] [--directive value ...]
//	latchkey cli [-h HOST] [-p PORT] [COMMAND ...]
//	latchkey plugin new|pack|inspect|test|bench ...
//	latchkey script check FILE [--keys KEY ...] [--args ARG ...]
//
// Called without a sub-command it takes the arguments of redis-server, so that
// a link of that name can stand in for it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/latchkey-proxy/latchkey/cmd/latchkey/cli"
	"github.com/latchkey-proxy/latchkey/cmd/latchkey/plugin"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// version is latchkey's own; INFO's redis_version says which Redis it answers as.
const version = "0.1.0"

const usage = `Usage:
  latchkey serve [FILE.conf | -] [--directive value ...]   run the server
  latchkey cli [OPTIONS] [COMMAND [ARG ...]]               talk to a server
  latchkey plugin SUB-COMMAND ...                          begin, pack, inspect, test and measure modules
  latchkey script check FILE [--keys K ...] [--args A ...] try a Lua script and say what it does
  latchkey version                                         print the version

Without a sub-command the arguments are those of redis-server:
  latchkey [FILE.conf | -] [--directive value ...]

Directives are redis.conf's, and latchkey's own; docs/CONFIG.md lists them.
  latchkey serve --port 7000 --requirepass secret
  latchkey serve --upstream redis://127.0.0.1:6379 --own 'lock:*'
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "serve":
			return serve(args[1:], stdin, stdout, stderr)
		case "cli":
			return cli.Run(args[1:], stdin, stdout, stderr)
		case "plugin":
			return plugin.Program{Serve: serveInside, Commands: allCommands}.Run(args[1:], stdin, stdout, stderr)
		case "script":
			return scriptCommand(args[1:], stdin, stdout, stderr)
		}
		if inform(args[0], stdout) {
			return exitOK
		}
	}
	return serve(args, stdin, stdout, stderr)
}

// inform answers those who ask for the version or the usage, and tells whether
// word does.
func inform(word string, stdout io.Writer) bool {
	switch word {
	case "version", "--version", "-v":
		fmt.Fprintf(stdout, "latchkey v=%s answers as redis %s, go %s\n", version, redisVersion, goVersion())
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
	default:
		return false
	}
	return true
}

// fail prints what went wrong and, if there is one, what to do about it.
func fail(stderr io.Writer, err error, hint string) {
	fmt.Fprintf(stderr, "latchkey: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(stderr, "latchkey: hint: %s\n", hint)
	}
}
