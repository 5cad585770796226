package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// inMemory are sources whose files are a map; nothing else can be opened.
func inMemory(files map[string]string, file string, options ...string) Sources {
	s := ParseArgs(options, nil)
	s.File = file
	s.open = func(path string) (io.ReadCloser, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
	s.glob = func(pattern string) ([]string, error) {
		var found []string
		for path := range files {
			ok, err := filepath.Match(pattern, path)
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, path)
			}
		}
		slices.Sort(found)
		return found, nil
	}
	return s
}

func TestLoadErrors(t *testing.T) {
	include := make(map[string]string)
	for i := range 12 {
		include[fmt.Sprintf("deep%d", i)] = fmt.Sprintf("include deep%d\n", i+1)
	}
	wide := map[string]string{"lk.conf": "include a*\n"}
	for i := range 300 {
		wide[fmt.Sprintf("a%03d", i)] = "\n"
	}
	for _, test := range []struct {
		name  string
		files map[string]string // lk.conf is loaded; a single text may be given in conf
		conf  string
		args  []string
		want  string
		hint  string
	}{
		{name: "unknown", conf: "# lk\n\nmxaclients 5\n", want: "lk.conf:3: unknown directive 'mxaclients'", hint: "did you mean 'maxclients'?"},
		{name: "unknown, nothing near", conf: "frobnicate yes", want: "lk.conf:1: unknown directive 'frobnicate'", hint: "docs/CONFIG.md lists the directives"},
		{name: "unknown, upper case", conf: "MAXMEMROY 1", want: "lk.conf:1: unknown directive 'maxmemroy'", hint: "did you mean 'maxmemory'?"},
		{name: "unknown flag", args: []string{"--prot", "1"}, want: "command line: unknown directive 'prot'", hint: "did you mean 'port'?"},
		{name: "bare word", args: []string{"-x"}, want: "command line: unknown directive '-x'", hint: "directives on the command line begin with --, such as --port 6380; docs/CONFIG.md lists them"},
		{name: "unknown, long and unprintable", conf: "\x01" + strings.Repeat("x", 500), want: "lk.conf:1: unknown directive '?" + strings.Repeat("x", 127) + "...'", hint: "docs/CONFIG.md lists the directives"},
		{name: "value", conf: "port abc", want: "lk.conf:1: 'port abc': argument couldn't be parsed into an integer", hint: "port takes an integer from 0 to 65535"},
		{name: "range", args: []string{"--port", "70000"}, want: "command line: 'port 70000': argument must be between 0 and 65535 inclusive", hint: "port takes an integer from 0 to 65535"},
		{name: "octal", conf: "unixsocketperm 999", want: "lk.conf:1: 'unixsocketperm 999': argument couldn't be parsed as an octal number", hint: "unixsocketperm takes an octal integer from 0 to 777"},
		{name: "octal range", conf: "unixsocketperm 1000", want: "lk.conf:1: 'unixsocketperm 1000': argument must be between 0 and 777 inclusive", hint: "unixsocketperm takes an octal integer from 0 to 777"},
		{name: "memory", conf: "maxmemory 1tb", want: "lk.conf:1: 'maxmemory 1tb': argument must be a memory value", hint: "maxmemory takes a memory size such as 512kb, 64mb or 1gb"},
		{name: "memory below its bound", conf: "lua-max-memory 512kb", want: "lk.conf:1: 'lua-max-memory 512kb': argument must be between 1048576 and 9223372036854775807 inclusive", hint: "lua-max-memory takes a memory size such as 512kb, 64mb or 1gb, at least 1mb"},
		{name: "memory above its bound", conf: "lua-max-script-bytes 2gb", want: "lk.conf:1: 'lua-max-script-bytes 2gb': argument must be between 1024 and 1073741824 inclusive", hint: "lua-max-script-bytes takes a memory size such as 512kb, 64mb or 1gb, at least 1kb, at most 1gb"},
		{name: "memory overflow", conf: "maxmemory 9999999999gb", want: "lk.conf:1: 'maxmemory 9999999999gb': argument must be a memory value", hint: "maxmemory takes a memory size such as 512kb, 64mb or 1gb"},
		{name: "boolean", conf: "appendonly perhaps", want: "lk.conf:1: 'appendonly perhaps': argument must be 'yes' or 'no'", hint: "appendonly takes yes or no"},
		{name: "choice", conf: "enable-debug-command perhaps", want: "lk.conf:1: 'enable-debug-command perhaps': argument(s) must be one of the following: no, yes, local", hint: "enable-debug-command takes one of no, yes, local"},
		{name: "too many", conf: "port 1 2", want: "lk.conf:1: 'port 1 2': wrong number of arguments", hint: "port takes an integer from 0 to 65535"},
		{name: "flag without value", args: []string{"--port"}, want: "command line: 'port': wrong number of arguments", hint: "port takes an integer from 0 to 65535"},
		{name: "flag takes the next flag", args: []string{"--logfile", "--port", "1"}, want: "command line: 'logfile --port 1': wrong number of arguments", hint: "logfile takes one word, in quotes if it has spaces"},
		{name: "secret", conf: "requirepass one two", want: "lk.conf:1: 'requirepass': wrong number of arguments", hint: "requirepass takes one word, in quotes if it has spaces"},
		{name: "secret in a URL", conf: "upstream redis://u:secret@h x", want: "lk.conf:1: 'upstream': wrong number of arguments", hint: "upstream takes one word, in quotes if it has spaces"},
		{name: "quotes", conf: "port 1\nlogfile \"a", want: "lk.conf:2: unbalanced quotes", hint: "a closing quote must be followed by a blank or the end of the line"},
		{name: "quotes inside", conf: "bind \"'a\"", want: "lk.conf:1: 'bind 'a': unbalanced quotes", hint: "bind takes one or more words"},
		{name: "NUL", conf: "port 1\x00", want: "lk.conf:1: the line has a NUL byte", hint: "is this a text file?"},
		{name: "long line", conf: "logfile " + strings.Repeat("a", maxLineBytes), want: "lk.conf:1: the line is longer than 64 KiB"},
		{name: "long file", conf: strings.Repeat("#\n", maxFileBytes), want: "lk.conf: cannot read the configuration file: longer than 1 MiB, which no configuration is"},
		{name: "no file", files: map[string]string{}, want: "lk.conf: cannot read the configuration file: No such file or directory", hint: "directives on the command line begin with --, such as --port 6380; `latchkey help` lists the sub-commands"},
		{name: "no included file", conf: "\ninclude other", want: "lk.conf:2: 'include other': cannot read the file: No such file or directory"},
		{name: "include pattern", conf: "include [", want: "lk.conf:1: 'include [': syntax error in pattern"},
		{name: "include count", conf: "include", want: "lk.conf:1: 'include': wrong number of arguments", hint: "include takes one path"},
		{name: "includes itself", conf: "include lk.conf", want: "lk.conf:1: 'include lk.conf': more than 8 files deep", hint: "does a file include itself?"},
		{name: "include depth", files: include, args: []string{"--include", "deep0"}, want: "deep7:1: 'include deep8': more than 8 files deep", hint: "does a file include itself?"},
		{name: "include count", files: wide, want: "lk.conf:1: 'include a255': more than 256 files"},
		{name: "error in an included file", files: map[string]string{"lk.conf": "include b\n", "b": "\nport x"}, want: "b:2: 'port x': argument couldn't be parsed into an integer", hint: "port takes an integer from 0 to 65535"},
		{name: "sentinel", conf: "sentinel monitor a", want: "lk.conf:1: 'sentinel': latchkey is not a Sentinel", hint: "run redis-sentinel for that"},
		{name: "module setting", conf: "cad.max", want: "lk.conf:1: 'cad.max': a module's setting needs a value"},
		{name: "ACL file", conf: "aclfile users.acl", want: "lk.conf:1: 'aclfile users.acl': latchkey does not read ACL files; it has one user, default, whose password is requirepass"},
		{name: "TLS port", conf: "tls-port 6381", want: "lk.conf:1: 'tls-port 6381': latchkey does not speak TLS to clients; put a TLS terminator in front of it"},
		{name: "empty own", conf: "own db1/", want: "lk.conf:1: 'own db1/': the pattern is empty: write own * to own every key", hint: "own takes one or more words"},
		{name: "loadmodule", conf: "loadmodule", want: "lk.conf:1: 'loadmodule': wrong number of arguments", hint: "loadmodule takes one or more words"},
		{name: "rename-command", conf: "rename-command a", want: "lk.conf:1: 'rename-command a': wrong number of arguments", hint: `rename-command takes a command and its new name, or "" to take it away`},
		{name: "user", conf: "user alice on", want: "lk.conf:1: 'user': latchkey has one user, default, who may do everything once the password of requirepass is given", hint: "user takes default on nopass ~* &* +@all"},
		{name: "default user off", conf: "user default off nopass ~* &* +@all", want: "lk.conf:1: 'user': latchkey has one user, default, who may do everything once the password of requirepass is given", hint: "user takes default on nopass ~* &* +@all"},
		{name: "default user without keys", conf: "user default on nopass &* +@all", want: "lk.conf:1: 'user': latchkey has one user, default, who may do everything once the password of requirepass is given", hint: "user takes default on nopass ~* &* +@all"},
		{name: "binds", conf: "bind " + strings.Repeat("a ", 17), want: "lk.conf:1: 'bind" + strings.Repeat(" a", 17) + "': Too many bind addresses specified.", hint: "bind takes one or more words"},
		{name: "repeated", conf: strings.Repeat("own a\n", maxWords+1), want: "lk.conf:4097: 'own a': more than 4096 values", hint: "own takes one or more words"},
		{name: "saves", conf: strings.Repeat("save 1 2\n", maxWords/2+1), want: "lk.conf:2049: 'save 1 2': more than 4096 values", hint: `save takes pairs of seconds and changes such as "3600 1 300 100", or ""`},
		{name: "directory", conf: "dir /no/such/place", want: "lk.conf:1: 'dir /no/such/place': No such file or directory", hint: "dir takes an existing directory"},
		{name: "file name", conf: "appendfilename a/b", want: "lk.conf:1: 'appendfilename a/b': appendfilename can't be a path, just a filename", hint: "appendfilename takes one word, in quotes if it has spaces"},
		{name: "save", conf: "save 1", want: "lk.conf:1: 'save 1': Invalid save parameters", hint: `save takes pairs of seconds and changes such as "3600 1 300 100", or ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			files, file := test.files, ""
			if test.conf != "" {
				files = map[string]string{"lk.conf": test.conf}
			}
			if files != nil && test.args == nil {
				file = "lk.conf"
			}
			_, err := Load(inMemory(files, file, test.args...))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error: %s", err, test.want)
			}
			if e.Error() != test.want || e.Hint() != test.hint {
				t.Errorf("got\n%s\nhint %q, want\n%s\nhint %q", e, e.Hint(), test.want, test.hint)
			}
		})
	}
}

// TestLoadOpens checks what only the real file system can show.
func TestLoadOpens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lk.conf")
	for name, text := range map[string]string{"lk.conf": "include " + dir + "/conf.d/*.conf\nport 1\n", "conf.d/b.conf": "timeout 2\n", "conf.d/a.conf": "timeout 1\nport 9\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(ParseArgs([]string{path}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.Int("timeout") != 2 || c.Int("port") != 1 || c.Path() != path {
		t.Errorf("timeout %d, port %d, path %s; want 2, 1, %s", c.Int("timeout"), c.Int("port"), c.Path(), path)
	}
	for _, bad := range []string{dir, "/dev/zero"} {
		if _, err := Load(Sources{File: bad}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("loading %s: got %v, want it refused as not a regular file", bad, err)
		}
	}
	if _, err := Load(Sources{File: dir + "/none"}); !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "No such file or directory") {
		t.Errorf("a missing file: got %v", err)
	}
}

func TestParseArgs(t *testing.T) {
	stdin := strings.NewReader("")
	for _, test := range []struct {
		args    []string
		file    string
		stdin   bool
		options string
	}{
		{},
		{args: []string{"lk.conf"}, file: "lk.conf"},
		{args: []string{"-"}, stdin: true},
		{args: []string{"lk.conf", "-"}, file: "lk.conf", stdin: true},
		{args: []string{"lk.conf", "--port", "1", "-"}, file: "lk.conf", stdin: true, options: `port "1" `},
		{args: []string{"-", "--port", "1"}, stdin: true, options: `port "1" `},
		{args: []string{"lk.conf", "-", "--port", "1"}, file: "lk.conf", options: "\"-\" \nport \"1\" "},
		{args: []string{"--port", "7000", "--save", "", "--own", "a", "--own", "b"}, options: "port \"7000\" \nsave \"\" \nown \"a\" \nown \"b\" "},
		{args: []string{"--save", "--port", "1"}, options: "save \"\"\nport \"1\" "},
		{args: []string{"--save"}, options: `save ""`},
		{args: []string{"--SAVE", "900", "1"}, options: `SAVE "900" "1" `},
		{args: []string{"--logfile", "--port"}, options: `logfile "--port" `},
		{args: []string{"--port 1", "--timeout 2"}, options: "port 1 \ntimeout 2 "},
		{args: []string{"--loadmodule", "p.wasm", "a", "b c"}, options: `loadmodule "p.wasm" "a" "b c" `},
		{args: []string{"--requirepass", "a\"b\n"}, options: `requirepass "a\"b\n" `},
	} {
		got := ParseArgs(test.args, stdin)
		if got.File != test.file || (got.Stdin != nil) != test.stdin || strings.TrimRight(got.Options, "") != test.options {
			t.Errorf("ParseArgs(%q) is file %q, stdin %v, options %q; want %q, %v, %q", test.args, got.File, got.Stdin != nil, got.Options, test.file, test.stdin, test.options)
		}
	}
}

func TestLoadValues(t *testing.T) {
	files := map[string]string{"lk.conf": `# comment
  PORT 7001
maxmemory 1gb
save 3600 1
save 300 100
own a:* "db3/b c"
own x
user default on nopass sanitize-payload ~* &* +@all
user default allcommands allkeys allchannels nopass on
loadmodule cad.wasm 1 2
rename-command FLUSHALL ""
cad.limit 10 20
list-max-ziplist-entries 5
bind "127.0.0.1 -::1"
maxmemory-policy allkeys-lru
appendonly yes
daemonize yes
notify-keyspace-events AKn
logfile '' # not a comment, but more words in Redis: so it stands on a line of its own below
`}
	files["lk.conf"] = strings.Replace(files["lk.conf"], " # not a comment, but more words in Redis: so it stands on a line of its own below", "", 1)
	s := inMemory(files, "lk.conf", "--own", "y", "--save", "60", "5", "--upstream", "redis://u:p%40@h/2")
	s.Stdin = strings.NewReader("timeout 7\nport 7002\n")
	c, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"port": "7002", "timeout": "7", "maxmemory": "1073741824", "save": "3600 1 300 100 60 5", "bind": "127.0.0.1 -::1",
		"maxmemory-policy": "noeviction", "appendonly": "no", "daemonize": "yes", "logfile": "",
	} {
		if got := c.String(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, want := c.Strings("own"), []string{"a:*", "db3/b c", "x", "y"}; !slices.Equal(got, want) {
		t.Errorf("own is %q, want %q", got, want)
	}
	if got, want := c.Lines("user"), [][]string{{"default", "on", "nopass", "sanitize-payload", "~*", "&*", "+@all"}, {"default", "allcommands", "allkeys", "allchannels", "nopass", "on"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("user lines are %q, want %q", got, want)
	}
	if got, want := c.Lines("loadmodule"), [][]string{{"cad.wasm", "1", "2"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("loadmodule lines are %q, want %q", got, want)
	}
	if got := c.String("upstream"); got != "redis://u:p%40@h/2" {
		t.Errorf("upstream is %q", got)
	}
	if got := c.KeyspaceEvents(); got != "g$lshzxetdnK" {
		t.Errorf("keyspace events are %q", got)
	}
	var warned []string
	for _, w := range c.Warnings() {
		warned = append(warned, w.Origin.String()+" "+w.Directive)
	}
	want := []string{"lk.conf:4 save", "lk.conf:5 save", "lk.conf:15 maxmemory-policy", "lk.conf:16 appendonly", "lk.conf:17 daemonize", "command line save"}
	if !slices.Equal(warned, want) {
		t.Errorf("warnings %q, want %q", warned, want)
	}
	if w := c.Warnings()[2].String(); w != "lk.conf:15: maxmemory-policy: latchkey never evicts: evicting a lock gives it to two holders; only noeviction is supported" {
		t.Errorf("the warning reads %q", w)
	}
	if n := len(c.Ignored()); n != 5 {
		t.Errorf("%d settings without effect %v, want 5: three saves, daemonize, list-max-ziplist-entries", n, c.Ignored())
	}
}

func TestCheckUpstream(t *testing.T) {
	files := map[string]string{"lk.conf": "port 1\nupstream unix://u:secret@/s\n"}
	for _, tc := range []struct {
		judge error
		want  string
	}{{nil, "<nil>"}, {errors.New("no such thing"), "lk.conf:2: 'upstream': no such thing"}} {
		s, asked := inMemory(files, "lk.conf"), ""
		s.CheckUpstream = func(url string) error {
			asked = url
			return tc.judge
		}
		if _, err := Load(s); fmt.Sprint(err) != tc.want {
			t.Errorf("Load with an upstream that is judged %v: %v, want %s", tc.judge, err, tc.want)
		}
		if asked != "unix://u:secret@/s" {
			t.Errorf("the URL to judge is %q", asked)
		}
	}
}

// FuzzLoad reads any text as a file. What loads must survive a rewrite: the values after reading the rewritten file
// are the same, and rewriting that changes nothing.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"port 1\nmaxmemory 1gb\n", "save 1 2\nsave 3 4\n", "own a \"db1/b c\"\nown x\n", "include lk.conf\n", "include *\n", "include [a\n",
		"client-output-buffer-limit normal 1 2 3 pubsub 4mb 5kb 6\n", "notify-keyspace-events AKEn\n", "rename-command a \"\"\nuser default on nopass ~* &* +@all\nloadmodule a b\n",
		"a.b c\nlatency-tracking-info-percentiles 1 2.5\n", "oom-score-adj relative\nshutdown-on-sigterm now force\n", "requirepass \"\\xff\\\"\"\n", "maxmemory-clients 5%\nbind \"a b\"\n",
		"replicaof no one\nslaveof h 1\nunixsocketperm 700\nmaxmemory-policy allkeys-lru\n", "PORT '1'\nhash-max-ziplist-entries 3\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range strings.Split(text, "\n") {
			if len(line) > maxLineBytes {
				return
			}
		}
		c, err := Load(inMemory(map[string]string{"lk.conf": text}, "lk.conf"))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.ContainsAny(e.Error(), "\n\x00") {
				t.Errorf("loading %q: error %q is no *Error in one line", text, err)
			}
			return
		}
		once := c.rewritten(text)
		if len(once) > 2*maxFileBytes {
			return
		}
		again, err := Load(inMemory(map[string]string{"lk.conf": once}, "lk.conf"))
		if err != nil {
			t.Fatalf("rewriting %q gives %q, which does not load: %v", text, once, err)
		}
		if got, want := again.Get("*"), c.Get("*"); !slices.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("rewriting %q gives %q: %s is %q, was %q", text, once, got[i].Name, got[i].Value, want[i].Value)
				}
			}
		}
		if twice := again.rewritten(once); twice != once {
			t.Errorf("rewriting %q gives %q, and again %q", text, once, twice)
		}
	})
}

func TestParseOwn(t *testing.T) {
	for word, want := range map[string]OwnRule{
		"lock:*":            {-1, "lock:*"},
		"db3/lock:*":        {3, "lock:*"},
		"db0/*":             {0, "*"},
		"db3":               {-1, "db3"},
		"db03/a":            {-1, "db03/a"},
		"db+3/a":            {-1, "db+3/a"},
		"db-1/a":            {-1, "db-1/a"},
		"db/a":              {-1, "db/a"},
		"db1/":              {1, ""},
		"db99999999999/a":   {-1, "db99999999999/a"},
		"database/3/lock:*": {-1, "database/3/lock:*"},
	} {
		if got := ParseOwn(word); got != want {
			t.Errorf("ParseOwn(%q) = %+v, want %+v", word, got, want)
		}
	}
}

// TestStartFolderIsGone: a program may be started in a folder that has been removed.
func TestStartFolderIsGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Skipf("the folder one stands in cannot be removed here: %v", err)
	}
	if got := New().String("dir"); got != "." {
		t.Errorf("dir is %q, want \".\"", got)
	}
}
