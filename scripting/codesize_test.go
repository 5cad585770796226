package scripting

import (
	"math/rand/v2"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// lowered is a source as the virtual machine's compiler gets it.
func lowered(t *testing.T, e *Engine, src string) chunkTree {
	t.Helper()
	tree, err := e.parseSource(src, scriptChunk)
	if err != nil {
		t.Fatal(err)
	}
	lo := &lowering{kinds: tree.kinds, consts: tree.consts, token: e.token, script: true}
	lo.stmts(tree.stmts)
	lo.plan()
	return tree
}

func sizeOf(t *testing.T, e *Engine, src string) codeSize {
	tree := lowered(t, e, src)
	size := codeSize{kinds: tree.kinds}
	size.stmts(tree.stmts, 0)
	return size
}

// TestLongFunctionsAreRefused: a function that is too long is refused by its tree,
// before it is compiled, whatever it consists of.
func TestLongFunctionsAreRefused(t *testing.T) {
	e := newEngine(t, Options{VMOnly: true})
	for _, one := range underrace.Sample([]string{
		"x=1 ", "f()", "a.b=c ", "if a then end ", "x=a and b or c ", "x={} ", "x={a,b} ", "x=a+b ", "while a do end ",
		"x=a==b ", "f(a==b)", "f{} ", "x=-a ", "f(1<2)", "x=#a ", "x=a..b ", "repeat until a ", "x=a;", "a:b()",
		"for i=1,2 do end ", "for k in a do end ", "if a then b() elseif c then d() else f() end ", "x=a%b ", "repeat until true ",
		"l=m and n ", "x={[a]=b} ", "x={b=c} ", "t[#t+1]=1 ",
	}, 8) {
		const before = "local l,m,n,t\n"
		empty, unit := sizeOf(t, e, before), sizeOf(t, e, before+one)
		times := maxFunctionCode/max(unit.code-empty.code, unit.labels) + 1
		src := before + strings.Repeat(one, times)
		if len(src) > 1<<20 {
			t.Errorf("a megabyte of %q is not refused", one)
			continue
		}
		want := "user_script:1: main function is too long (limit is 131071 instructions)"
		if one == "f()" {
			src = before + "local function g() " + strings.Repeat(one, times) + " end"
			want = "user_script:2: function at line 2 is too long (limit is 131071 instructions)"
			if _, err := e.Compile([]byte(src)); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("compiling %d times %q: %v, want %s", times, one, err, want)
			}
		}
		tree := lowered(t, e, src)
		size := codeSize{kinds: tree.kinds}
		if err := size.check(tree.stmts, scriptChunk); err == nil || err.Error() != want {
			t.Errorf("%d times %q: %v, want %s", times, one, err, want)
		}
	}
}

// TestCodeSizeIsNoMore: what is refused before it is compiled would have been refused
// after it.
func TestCodeSizeIsNoMore(t *testing.T) {
	e := newEngine(t, Options{VMOnly: true})
	var sources []string
	for _, f := range readCorpus(t) {
		for _, s := range f.snippets {
			if !strings.HasPrefix(s.source, "#!") {
				sources = append(sources, s.source)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		choices := make([]byte, 400)
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		sources = append(sources, generate(choices, ""))
	}
	compared := 0
	for _, src := range sources {
		if _, err := e.parseSource(src, scriptChunk); err != nil {
			continue
		}
		tree := lowered(t, e, src)
		size := codeSize{kinds: tree.kinds, code: 1}
		size.stmts(tree.stmts, 0)
		proto, err := lua.Compile(tree.stmts, scriptChunk)
		if err != nil {
			continue
		}
		compared++
		if size.code > len(proto.Code) {
			t.Errorf("%s\nis counted with %d instructions and has %d", src, size.code, len(proto.Code))
		}
	}
	if compared < 2000 {
		t.Errorf("compared %d sources, want 2,000", compared)
	}
}

// TestManyLabels: the compiler cuts off the numbers of labels past 131,071, and jumps
// go anywhere. What it takes works.
func TestManyLabels(t *testing.T) {
	e := newEngine(t, Options{VMOnly: true})
	for n, want := range map[int]string{
		30_000: ":7\r\n",
		58_000: "-ERR Error compiling script (new function): user_script:1: main function is too long (limit is 131071 instructions)\r\n",
	} {
		src := strings.Repeat("repeat until true ", n) + " local x = ARGV[100] == nil if x then x = 7 end return x"
		if got := eval(e, newFakeStore(), src, Limits{Instructions: 1_000_000}); got != want {
			t.Errorf("after %d labels: %q, want %q", n, got, want)
		}
	}
}

// TestLongConstructors: a constructor of more items than the compiler can number
// batches of has them at their places.
func TestLongConstructors(t *testing.T) { onBoth(t, longConstructors) }

func longConstructors(t *testing.T, e *Engine) {
	ones := func(n int) string { return strings.Repeat("1,", n) }
	for src, want := range map[string]string{
		"local a = 5 local t = {" + ones(25_550) + strings.Repeat("a,", 100) + "} return {#t, t[25550], t[25551], t[25600], t[25601], t[25650]}": "*6 :25650 :1 :5 :5 :5 :5 ",
		"local a = 5 local t = {" + ones(25_550) + "{" + ones(50) + "a,a},a,a,a} return {#t, t[25550], t[25552], #t[25551]}":                     "*4 :25554 :1 :5 :52 ",
		"local t = {" + ones(25_550) + "k=2," + ones(50) + "l=3,4} return {#t, t[25600], t[25601], t.k, t.l}":                                    "*5 :25601 :1 :4 :2 :3 ",
		"local t = {" + ones(25_600) + "k=2} return {#t, t[1], t[25600], t.k}":                                                                   "*4 :25600 :1 :1 :2 ",
		"local t = {" + ones(25_550) + "unpack({5, 6})} return {#t, t[1], t[25550], t[25551], t[25552]}":                                         "*5 :25552 :1 :1 :5 :6 ",
		"local t = {" + ones(25_575) + "unpack({5, 6})} return {#t, t[1], t[25575], t[25576], t[25577]}":                                         "*5 :25577 :1 :1 :5 :6 ",
	} {
		got := strings.ReplaceAll(eval(e, newFakeStore(), src, Limits{}), "\r\n", " ")
		if got != want {
			t.Errorf("%s\n%.60s ... %.100s\n got %s\nwant %s", clipText(src), src, src[len(src)-90:], got, want)
		}
	}
}
