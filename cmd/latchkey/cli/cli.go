package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2

	defaultHost = "127.0.0.1"
	defaultPort = 6380
)

const usage = `Usage: latchkey cli [OPTIONS] [COMMAND [ARG ...]]

Sends one command and prints its reply. Without a command: a prompt, or, when
standard input is not a terminal, one command per line of it.

Server:
  -h HOST            host name or address (default 127.0.0.1)
  -p PORT            port (default 6380)
  -s PATH            unix socket, instead of host and port
  -u URL             redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]; rediss:// for TLS
  -n DB              database (default 0)
  -a, --pass PASS    password; better in the environment as LATCHKEY_AUTH (or
                     REDISCLI_AUTH), where other users cannot read it
  --user NAME        user to log in as, with a password
  --askpass          ask for the password
  --no-auth-warning  no hint about passwords on the command line

TLS:
  --tls              connect with TLS
  --cacert FILE      certificates to trust (default: the system's)
  --cert FILE        our certificate, with --key
  --key FILE         its key
  --sni NAME         server name to ask for and to verify
  --insecure         do not verify the server's certificate

Commands:
  -r N               run the command N times (negative: for ever)
  -i SECONDS         wait between them; may be a fraction
  -x                 standard input is the last argument
  -X TAG             standard input stands for the argument TAG
  --quoted-input     arguments are quoted as at the prompt, "\x00" and all
  --eval FILE        run the Lua script in FILE ("-": standard input); the
                     arguments are KEYS, then a comma alone, then ARGV
  -e                 exit with 1 when the reply is an error

Output:
  --no-raw           replies with types and quotes (default on a terminal)
  --raw              the bytes only (default otherwise)
  --csv, --json      as CSV, as JSON
  -d TEXT            between the elements of an array, with --raw (default \n)
  -D TEXT            after each reply, with --raw (default \n)

  -2, -c             accepted and without effect: this client speaks RESP2, and
                     follows no redirections
  --help             this text

Exit status: 0 done, 1 failed, 2 wrong usage. An error reply counts as done
unless -e is given.

Examples:
  latchkey cli set lock:7 my-token nx px 30000
  latchkey cli --eval unlock.lua lock:7 , my-token
  latchkey cli -x set page < page.html
  latchkey cli help set
`

// options are the command line, parsed.
type options struct {
	address address

	user, password string
	passwordShown  bool // it stood on the command line
	askPassword    bool
	noAuthWarning  bool
	db             int

	repeat      int // negative: for ever
	interval    time.Duration
	stdinLast   bool
	stdinTag    string // "" for none
	quotedInput bool
	eval        string // "" for none
	failOnError bool

	layout layout
	help   bool
}

// Run is `latchkey cli` with the arguments that follow that name. It returns
// the exit status: 0 done, 1 failed, 2 wrong usage. It talks to one server over
// one connection, which is closed when Run returns.
//
// stdin and stdout are treated as terminals only if they are files that are.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	opt, command, err := parse(args, os.Getenv)
	if err != nil {
		complain(stderr, err, "`latchkey cli --help` lists the options")
		return exitUsage
	}
	if opt.help {
		io.WriteString(stdout, usage)
		return exitOK
	}
	if opt.layout.format == formatAuto {
		opt.layout.format = formatRaw
		if _, ok := terminal(stdout); ok {
			opt.layout.format = formatTTY
		}
	}
	if opt.passwordShown && !opt.noAuthWarning {
		fmt.Fprintln(stderr, "latchkey: hint: other users can see a password on the command line; LATCHKEY_AUTH or --askpass hides it")
	}
	if opt.askPassword {
		if opt.password, err = askPassword(stdin, stderr); err != nil {
			complain(stderr, fmt.Errorf("cannot read the password: %w", err), "")
			return exitFailed
		}
	}
	s := &session{opt: opt, wantDB: opt.db, out: bufio.NewWriter(stdout), err: stderr}
	_, s.color = terminal(stdout)
	defer s.drop()

	switch {
	case opt.eval != "":
		command, err = evalCommand(opt.eval, command, stdin)
	case len(command) == 0 && (opt.stdinLast || opt.stdinTag != ""):
		complain(stderr, errors.New("-x and -X need a command"), "`latchkey cli -x set KEY < FILE` stores a file")
		return exitUsage
	case len(command) == 0:
		return s.interact(stdin)
	default:
		command, err = opt.expand(command, stdin)
	}
	if err == nil {
		err = s.run(command, opt.repeat)
	}
	return s.report(err)
}

// report prints an error as the last thing a run does and turns it into the
// exit status.
func (s *session) report(err error) int {
	if err == nil {
		return exitOK
	}
	s.complain(err)
	return exitFailed
}

// complain prints an error and, if there is one, what could be done about it.
func complain(w io.Writer, err error, hint string) {
	fmt.Fprintf(w, "latchkey: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(w, "latchkey: hint: %s\n", hint)
	}
}

// expand applies --quoted-input, -x and -X to the arguments.
func (o *options) expand(args []string, stdin io.Reader) ([]string, error) {
	if o.quotedInput {
		for i, arg := range args {
			parts, err := quoting.Split(arg)
			if err != nil || len(parts) != 1 {
				return nil, fmt.Errorf("--quoted-input: %q is not one quoted argument", arg)
			}
			args[i] = parts[0]
		}
	}
	if !o.stdinLast && o.stdinTag == "" {
		return args, nil
	}
	at := len(args)
	if o.stdinLast {
		args = append(args, "")
	} else {
		for at = 0; at < len(args) && args[at] != o.stdinTag; at++ {
		}
		if at == len(args) {
			return nil, fmt.Errorf("-X: no argument is %q", o.stdinTag)
		}
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxBulk+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	if len(b) > maxBulk {
		return nil, fmt.Errorf("standard input is longer than %d bytes, the most an argument can have", maxBulk)
	}
	args[at] = string(b)
	return args, nil
}

// parse reads the options up to the first argument that is none, and returns
// what follows them. getenv is asked for passwords.
func parse(args []string, getenv func(string) string) (options, []string, error) {
	o := options{
		address: address{host: defaultHost, port: defaultPort},
		repeat:  1,
		layout:  layout{elements: "\n", replies: "\n"},
	}
	flags := map[string]func(){
		"-x":                func() { o.stdinLast = true },
		"-e":                func() { o.failOnError = true },
		"-c":                func() {},
		"-2":                func() {},
		"--askpass":         func() { o.askPassword = true },
		"--no-auth-warning": func() { o.noAuthWarning = true },
		"--raw":             func() { o.layout.format = formatRaw },
		"--no-raw":          func() { o.layout.format = formatTTY },
		"--csv":             func() { o.layout.format = formatCSV },
		"--json":            func() { o.layout.format = formatJSON },
		"--quoted-input":    func() { o.quotedInput = true },
		"--tls":             func() { o.address.tls = true },
		"--insecure":        func() { o.address.insecure = true },
		"--help":            func() { o.help = true },
	}
	text := func(p *string) func(string) error {
		return func(s string) error { *p = s; return nil }
	}
	password := func(s string) error {
		o.password, o.passwordShown = s, true
		return nil
	}
	valued := map[string]func(string) error{
		"-h":       text(&o.address.host),
		"-s":       text(&o.address.socket),
		"-a":       password,
		"--pass":   password,
		"--user":   text(&o.user),
		"-X":       text(&o.stdinTag),
		"-d":       text(&o.layout.elements),
		"-D":       text(&o.layout.replies),
		"--eval":   text(&o.eval),
		"--cacert": text(&o.address.cacert),
		"--cert":   text(&o.address.cert),
		"--key":    text(&o.address.key),
		"--sni":    text(&o.address.sni),
		"-p":       func(s string) (err error) { o.address.port, err = parsePort(s); return },
		"-n":       func(s string) (err error) { o.db, err = parseDB(s); return },
		"-u":       func(s string) error { return o.parseURL(s) },
		"-r": func(s string) (err error) {
			if o.repeat, err = strconv.Atoi(s); err != nil {
				err = fmt.Errorf("%q is not a number of repetitions", s)
			}
			return
		},
		"-i": func(s string) error {
			seconds, err := strconv.ParseFloat(s, 64)
			if err != nil || !(seconds >= 0 && seconds <= 1e9) {
				return fmt.Errorf("%q is not a number of seconds", s)
			}
			o.interval = time.Duration(seconds * float64(time.Second))
			return nil
		},
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := args[0]
		args = args[1:]
		if set, ok := flags[name]; ok {
			set()
			continue
		}
		set, ok := valued[name]
		switch {
		case !ok && name == "-3":
			return o, nil, errors.New("-3: this client speaks RESP2 only")
		case !ok:
			return o, nil, fmt.Errorf("unknown option %s", name)
		case len(args) == 0 && name == "-h": // redis-cli -h
			o.help = true
			continue
		case len(args) == 0:
			return o, nil, fmt.Errorf("%s needs a value", name)
		}
		if err := set(args[0]); err != nil {
			return o, nil, fmt.Errorf("%s: %w", name, err)
		}
		args = args[1:]
	}
	switch {
	case (o.address.cert == "") != (o.address.key == ""):
		return o, nil, errors.New("--cert and --key need each other")
	case o.stdinLast && o.stdinTag != "":
		return o, nil, errors.New("-x and -X exclude each other: there is one standard input")
	case o.eval != "" && (o.stdinLast || o.stdinTag != ""):
		return o, nil, errors.New("--eval takes neither -x nor -X")
	}
	for _, name := range []string{"LATCHKEY_AUTH", "REDISCLI_AUTH"} {
		if o.password == "" && !o.askPassword {
			o.password = getenv(name)
		}
	}
	return o, args, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is not a port: 1 to 65535", s)
	}
	return n, nil
}

func parseDB(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a database: 0, 1, 2 ...", s)
	}
	return n, nil
}

// parseURL takes from the URL what it says and leaves the rest as it was. Its
// errors do not repeat it, because it may hold a password.
func (o *options) parseURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return errors.New("not a URL of the form redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]")
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		o.address.tls = true
	default:
		return fmt.Errorf("scheme %q is neither redis nor rediss", u.Scheme)
	}
	if host := u.Hostname(); host != "" {
		o.address.host = host
	}
	if port := u.Port(); port != "" {
		if o.address.port, err = parsePort(port); err != nil {
			return err
		}
	}
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		if o.db, err = parseDB(db); err != nil {
			return err
		}
	}
	if u.User != nil {
		password, both := u.User.Password()
		if !both { // redis://secret@host, as redis-cli has it
			password = u.User.Username()
		} else {
			o.user = u.User.Username() // may be empty: the default user
		}
		o.password, o.passwordShown = password, true
	}
	return nil
}
