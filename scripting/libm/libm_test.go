package libm

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

var (
	unary = map[string]func(float64) float64{
		"acos": Acos, "asin": Asin, "atan": Atan, "cos": Cos, "cosh": Cosh, "exp": Exp, "log": Log, "log10": Log10,
		"sin": Sin, "sinh": Sinh, "sqrt": Sqrt, "tan": Tan, "tanh": Tanh,
	}
	binary = map[string]func(x, y float64) float64{"atan2": Atan2, "fmod": Fmod, "pow": Pow, "^": Pow}
)

// TestRecorded compares with what redis-server gave for some two thousand random
// arguments. TestMathRedis in package scripting records them, and asks it for
// a hundred thousand more.
func TestRecorded(t *testing.T) {
	f, err := os.Open("testdata/recorded.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, equal := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		if words[0] == "#" {
			continue
		}
		var v []float64
		for _, w := range words[1:] {
			b, err := strconv.ParseUint(w, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			v = append(v, math.Float64frombits(b))
		}
		var got float64
		if len(v) == 2 {
			got = unary[words[0]](v[0])
		} else {
			got = binary[words[0]](v[0], v[1])
		}
		want := v[len(v)-1]
		total++
		switch a, b := math.Float64bits(got), math.Float64bits(want); {
		case a == b || math.IsNaN(got) && math.IsNaN(want): // the sign of a NaN is the machine's
			equal++
		case max(a, b)-min(a, b) > 1:
			t.Errorf("%s of %x: %x, redis-server: %x", words[0], v[:len(v)-1], got, want)
		}
	}
	if total < 2000 || equal < total-total/300 {
		t.Errorf("%d of %d results are equal", equal, total)
	}
	t.Logf("%d of %d results are equal, %.2f %%", equal, total, 100*float64(equal)/float64(total))
}

// TestExact: powers that are whole numbers below 2^53 are exact, and other powers of ten are
// at most the last bit off.
func TestExact(t *testing.T) {
	for base := 2; base <= 100; base++ {
		for y, want := 0, 1.; want < 1<<53; y++ {
			if got := Pow(float64(base), float64(y)); got != want {
				t.Errorf("%d^%d is %v, want %v", base, y, got, want)
			}
			want *= float64(base)
		}
	}
	for y := -1074; y < 1024; y++ {
		if got, want := Pow(2, float64(y)), math.Ldexp(1, y); got != want {
			t.Errorf("2^%d is %x", y, got)
		}
	}
	for y := -323; y <= 308; y++ {
		want, _ := strconv.ParseFloat("1e"+strconv.Itoa(y), 64)
		// The C library's 10^23 is one that is not nearest.
		if got := Pow(10, float64(y)); got != want && (y >= 0 && y <= 22 || math.Float64bits(got)+1 != math.Float64bits(want) && math.Float64bits(got)-1 != math.Float64bits(want)) {
			t.Errorf("10^%d is %x, want %x", y, got, want)
		}
	}
	for i := -100; i <= 100; i++ {
		x := float64(i) / 7
		if got := Pow(x, 2); got != x*x {
			t.Errorf("%v^2 is %x, want %x", x, got, x*x)
		}
	}
}

func BenchmarkLibm(b *testing.B) {
	var sink float64
	for _, name := range []string{"exp", "log", "sin", "atan"} {
		b.Run(name, func(b *testing.B) {
			f, x := unary[name], 0.5
			for b.Loop() {
				sink += f(x)
				x += 0.01
			}
		})
	}
	b.Run("pow", func(b *testing.B) {
		x := 0.5
		for b.Loop() {
			sink += Pow(x, 1.5)
			x += 0.01
		}
	})
	_ = sink
}
