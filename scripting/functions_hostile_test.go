package scripting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/rdb"
	"github.com/latchkey-proxy/latchkey/store/underload"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// TestHostileLibraries: what a body does ends within the time that FUNCTION LOAD
// has, other clients are served meanwhile, and nothing of it is there after.
func TestHostileLibraries(t *testing.T) { onBothEngines(t, testHostileLibraries) }

func testHostileLibraries(t *testing.T, o Options) {
	const limit = 8 << 20
	many := underrace.Fewer(10_000, 10)
	bomb := func(body string) string { return libSource("bomb", body) }
	for name, tt := range map[string]struct{ source, want string }{
		"loop":              {bomb("while true do end"), "FUNCTION LOAD timeout"},
		"loop in a pattern": {bomb("('a'):rep(100000):find('.-b')  local s = ('a?'):rep(28) .. ('a'):rep(28) ('a'):rep(28):find(s)"), ""},
		"loop of functions": {bomb("local function f() return f() end f()"), "FUNCTION LOAD timeout"},
		"recursion":         {bomb("local function f() return 1 + f() end f()"), "stack overflow"},
		"memory":            {bomb("local s = ('x'):rep(1000000) local t = {} for i = 1, 1000000 do t[i] = s .. i end"), "memory limit"},
		"a huge string":     {bomb("local s = ('x'):rep(1000000000)"), "memory limit"},
		"a huge table":      {bomb("local t = {} t[67108863] = 1"), ""}, // which closures keep sparse, as Redis does
		"many functions":    {bomb("for i = 1, 100000 do redis.register_function('f' .. i, function() end) end"), "a library may have 1024 functions (function-max-functions)"},
		"a huge name":       {bomb("redis.register_function(('x'):rep(5000000), function() end)"), "the library takes more than 1048576 bytes (function-max-bytes)"},
		"a huge text": {
			bomb("redis.register_function{function_name = 'f', callback = function() end, description = ('x'):rep(5000000)}"),
			"the library takes more than 1048576 bytes (function-max-bytes)",
		},
		"flags without end": {bomb(fmt.Sprintf("local t = {} for i = 1, %d do t[i] = 'no-writes' end redis.register_function{function_name = 'f', callback = function() end, flags = t}", many)), "1 library"},
		"arguments without end": {
			bomb(fmt.Sprintf("local t = {} for i = 1, %d do t['x' .. i] = 1 end redis.register_function(t)", many)),
			"unknown argument given",
		},
		"a huge source":         {bomb("--" + strings.Repeat("x", 2<<20)), "longer than 1048576 bytes (lua-max-script-bytes)"},
		"a deep source":         {bomb("local x = " + strings.Repeat("(", 100_000)), "Error compiling function"},
		"a long source":         {bomb("local a = 1 local x = a" + strings.Repeat("+a", 100_000)), "Error compiling function"},
		"a huge first line":     {"#!lua " + strings.Repeat("name=x ", 100_000) + "\n", "name argument was given multiple times"},
		"bytecode":              {bomb("\x1bLua"), "Error compiling function"},
		"an error without text": {bomb("redis.register_function(setmetatable)"), "Error registering functions"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoomOn(t, Settings{Limits: Limits{Memory: limit}, Libraries: LibraryBounds{Bytes: 1 << 20}}, store.Options{}, o)
			c := r.client()
			c.expect("+OK", "SET", "k", "v")
			done := make(chan string)
			go func() {
				load := r.client()
				for try := 0; ; try++ {
					before, begin := underload.Now(), time.Now()
					got := load.do("FUNCTION", "LOAD", tt.source)
					if took := time.Since(begin); took > before.Stretch(underrace.Slow*4*loadTime) {
						t.Errorf("it took %v", took)
					}
					// The time of a body is wall time, of which a loaded machine takes its part,
					// and the race detector so much that it may end before its memory does.
					late := strings.Contains(got, "FUNCTION LOAD timeout")
					if late && tt.want == "memory limit" && underrace.On {
						got = "-" + tt.want
					} else if late && try < 5 && tt.want != "" && !strings.Contains(got, tt.want) {
						continue
					}
					done <- got
					return
				}
			}()
			for running := true; running; {
				select {
				case got := <-done:
					running = false
					if tt.want == "1 library" {
						if got != "$4\r\nbomb\r\n" {
							t.Errorf("FUNCTION LOAD answered %q", clipText(got))
						}
					} else if !strings.HasPrefix(got, "-") || !strings.Contains(got, tt.want) {
						t.Errorf("FUNCTION LOAD answered %q, want an error with %q", clipText(got), tt.want)
					}
				default:
					before, asked := underload.Now(), time.Now()
					c.expect("$1 v", "GET", "k")
					if took, most := time.Since(asked), before.Stretch(underrace.Slow*400*time.Millisecond); took > most {
						t.Errorf("a GET took %v meanwhile, want at most %v", took, most)
					}
					time.Sleep(time.Millisecond)
				}
			}
			if tt.want != "1 library" {
				c.expect("*0", "FUNCTION", "LIST")
			}
			c.load("good", "redis.register_function('ok', function() return 'fine' end)")
			c.expect("$4 fine", "FCALL", "ok", "0")
		})
	}
}

// TestHostilePayloads: what FUNCTION RESTORE cannot read it refuses, and all is
// as it was.
func TestHostilePayloads(t *testing.T) { onBothEngines(t, testHostilePayloads) }

func testHostilePayloads(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{Libraries: LibraryBounds{Libraries: 8, Bytes: 1 << 20}}, store.Options{}, o)
	c := r.client()
	c.load("kept", "redis.register_function('f', function() return 'kept' end)")
	good := bulk(c.do("FUNCTION", "DUMP"))
	before := c.do("FUNCTION", "LIST", "WITHCODE")
	seal := func(parts ...string) string { return string(rdb.Seal([]byte(strings.Join(parts, "")))) }
	packed := func(src string) string { return string(rdb.AppendString([]byte{opFunction}, []byte(src))) }
	ok := packed(libSource("new", "redis.register_function('new', function() end)"))
	many, clash := "", ""
	for i := range 9 {
		many += packed(libSource(fmt.Sprint("l", i), fmt.Sprintf("redis.register_function('f%d', function() end)", i)))
		clash += packed(libSource(fmt.Sprint("l", i), "redis.register_function('same', function() end)"))
	}
	const footer = "ERR DUMP payload version or checksum are wrong"
	for name, tt := range map[string]struct{ payload, want string }{
		"empty":                {"", footer},
		"garbage":              {"payload", footer},
		"a flipped bit":        {good[:20] + string(good[20]^1) + good[21:], footer},
		"cut":                  {good[:len(good)-1], footer},
		"a later version":      {strings.Replace(good, "\x0a\x00", "\xff\x00", 1), footer},
		"a string":             {seal("\x00\x01x"), "ERR given type is not a function"},
		"a release candidate":  {seal("\xf6\x01x"), "ERR Pre-GA function format not supported"},
		"no text":              {seal("\xf5"), "ERR Failed loading library payload"},
		"a length that lies":   {seal("\xf5\x80\xff\xff\xff\xff"), "ERR Failed loading library payload"},
		"a packed length":      {seal("\xf5\xc3\x05\x80\xff\xff\xff\xff\x1f"), "ERR Failed loading library payload"},
		"a number":             {seal("\xf5\xc0\x07"), "ERR Missing library metadata"},
		"junk behind":          {seal(ok, "\x00"), "ERR given type is not a function"},
		"a bad library":        {seal(ok, packed(libSource("bad", "x ="))), "ERR Error compiling function"},
		"a body that fails":    {seal(ok, packed(libSource("bad", "x()"))), "ERR Error registering functions"},
		"nothing registered":   {seal(ok, packed(libSource("bad", ""))), "ERR No functions registered"},
		"the same twice":       {seal(ok, ok), "ERR Library 'new' already exists"},
		"functions that clash": {seal(clash[:len(clash)/9*2]), "ERR Function same already exists"},
		"too many":             {seal(many), "ERR the payload has 9 function libraries, more than 8 are not allowed (function-max-libraries)"},
		"too many with ours":   {seal(many[:len(many)/9*8]), "ERR there are 1 function libraries already, more are not allowed (function-max-libraries)"},
		"too much":             {seal(packed(libSource("big", "--"+strings.Repeat("x", 60_000)))), "ERR Failed loading library payload"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []string{"APPEND", "REPLACE"} {
				if got := c.do("FUNCTION", "RESTORE", tt.payload, policy); !strings.HasPrefix(got, "-"+tt.want) {
					t.Errorf("FUNCTION RESTORE %s answered %q, want %q", policy, got, tt.want)
				}
			}
			if name != "too many with ours" { // without ours they are not too many
				if got := c.do("FUNCTION", "RESTORE", tt.payload, "FLUSH"); !strings.HasPrefix(got, "-"+tt.want) {
					t.Errorf("FUNCTION RESTORE FLUSH answered %q, want %q", got, tt.want)
				}
			}
			if got := c.do("FUNCTION", "LIST", "WITHCODE"); got != before {
				t.Errorf("after it the libraries are %q", got)
			}
			c.expect("$4 kept", "FCALL", "f", "0")
		})
	}
}

// TestLibraryBounds: the libraries that there are stay when the bounds are lowered.
func TestLibraryBounds(t *testing.T) { onBothEngines(t, testLibraryBounds) }

func testLibraryBounds(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{Libraries: LibraryBounds{Libraries: 2}}, store.Options{}, o)
	c := r.client()
	for _, name := range []string{"a", "b"} {
		c.load(name, "redis.register_function('"+name+"', function() return 1 end)")
	}
	more := libSource("c", "redis.register_function('c', function() end)")
	c.expect("-ERR there are 2 function libraries already, more are not allowed (function-max-libraries)", "FUNCTION", "LOAD", more)
	r.runner.Set(Settings{Libraries: LibraryBounds{Libraries: 1}})
	c.load("a", "redis.register_function('a', function() return 2 end)") // one for another
	c.expect(":2", "FCALL", "a", "0")
	r.runner.Set(Settings{Libraries: LibraryBounds{Bytes: 4096}})
	big := libSource("c", "redis.register_function('c', function() end) --"+strings.Repeat("x", 200))
	if got := c.do("FUNCTION", "LOAD", big); !strings.HasPrefix(got, "-ERR Error registering functions: ERR the library takes more than 4096 bytes") {
		t.Errorf("a library that is too large answered %q", got)
	}
	r.runner.Set(Settings{Libraries: LibraryBounds{Bytes: 8192}})
	if got := c.do("FUNCTION", "LOAD", big); !strings.HasPrefix(got, "-ERR the function libraries would take") {
		t.Errorf("a library too many answered %q", got)
	}
	if s := r.runner.LibraryStats(); s.Libraries != 2 || s.Functions != 2 || s.Bytes < 2000 {
		t.Errorf("there are %+v", s)
	}
}

// TestPayloadsOfRedis: libraries go from redis-server to latchkey and back.
func TestPayloadsOfRedis(t *testing.T) { onBothEngines(t, testPayloadsOfRedis) }

func testPayloadsOfRedis(t *testing.T, o Options) {
	redis := startRedis(t)
	c := newRoomOn(t, Settings{}, store.Options{}, o).client()
	for i, body := range []string{
		"redis.register_function('short', function() return 1 end)",
		"redis.register_function('long', function() return 2 end) --" + strings.Repeat(" as a string that LZF makes shorter", 100),
	} {
		if got, err := redis.do("FUNCTION", "LOAD", libSource(fmt.Sprint("l", i), body)); err != nil || got[0] != '$' {
			t.Fatalf("FUNCTION LOAD: %q, %v", got, err)
		}
	}
	payload, err := redis.do("FUNCTION", "DUMP")
	if err != nil {
		t.Fatal(err)
	}
	if len(bulk(payload)) > 2000 {
		t.Fatalf("redis-server's payload has %d bytes, it did not compress", len(bulk(payload)))
	}
	c.expect("+OK", "FUNCTION", "RESTORE", bulk(payload))
	c.expect(":2", "FCALL", "long", "0")
	if got, err := redis.do("FUNCTION", "FLUSH"); err != nil || got != "+OK\r\n" {
		t.Fatalf("FUNCTION FLUSH: %q, %v", got, err)
	}
	if got, err := redis.do("FUNCTION", "RESTORE", bulk(c.do("FUNCTION", "DUMP"))); err != nil || got != "+OK\r\n" {
		t.Fatalf("redis-server on our payload: %q, %v", got, err)
	}
	if got, err := redis.do("FCALL", "short", "0"); err != nil || got != ":1\r\n" {
		t.Errorf("FCALL of what was restored: %q, %v", got, err)
	}
}

// FuzzRestore: payloads of any origin are read or refused, and what is refused
// changes nothing.
func FuzzRestore(f *testing.F) {
	source := libSource("lib", "redis.register_function('f', function() return 1 end)")
	good := rdb.AppendString([]byte{opFunction}, []byte(source))
	f.Add(good, true)
	f.Add(append(good, good...), true)
	f.Add([]byte{}, true)
	f.Add(rdb.Seal(good), false)
	for _, s := range []string{"\xf5\xc3\x05\x20#!lua", "\xf5\x80\x00\x00\x00\x05#!lua", "\xf6\x01x", "\xf5\xc0\x01", "\xf5\x81", "\x00\x01x"} {
		f.Add([]byte(s), true)
	}
	r := newRoom(f, Settings{Limits: Limits{Instructions: 10_000, Memory: 4 << 20}, Libraries: LibraryBounds{Libraries: 4, Functions: 8, Bytes: 1 << 20}})
	f.Fuzz(func(t *testing.T, payload []byte, sealed bool) {
		r := &room{t, r.runner, r.engine}
		c := r.client()
		c.expect("+OK", "FUNCTION", "FLUSH")
		c.load("kept", "redis.register_function('kept', function() return 'kept' end)")
		before := c.do("FUNCTION", "LIST", "WITHCODE")
		if sealed {
			payload = rdb.Seal(payload[:len(payload):len(payload)])
		}
		got := c.do("FUNCTION", "RESTORE", string(payload))
		after := c.do("FUNCTION", "LIST", "WITHCODE")
		switch {
		case strings.HasPrefix(got, "-ERR internal error"), !strings.HasPrefix(got, "-ERR ") && got != "+OK\r\n":
			t.Errorf("FUNCTION RESTORE answered %q", got)
		case got != "+OK\r\n" && after != before:
			t.Errorf("refused with %q, but the libraries are %q", got, after)
		case got == "+OK\r\n":
			c.expect("+OK", "FUNCTION", "RESTORE", bulk(c.do("FUNCTION", "DUMP")), "FLUSH")
			if again := c.do("FUNCTION", "LIST", "WITHCODE"); again != after {
				t.Errorf("dumped and restored, %q became %q", after, again)
			}
		}
		c.expect("$4 kept", "FCALL", "kept", "0")
	})
}
