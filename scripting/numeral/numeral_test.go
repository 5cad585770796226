package numeral

import (
	"math"
	"strings"
	"testing"
)

// What C's strtod takes of each text, as redis-server 7.0.15's cjson.decode and
// tonumber show it.
func TestPrefix(t *testing.T) {
	for _, tc := range []struct {
		text string
		want float64
		n    int
	}{
		{"", 0, 0},
		{"x", 0, 0},
		{"-", 0, 0},
		{".", 0, 0},
		{"-.e1", 0, 0},
		{"0", 0, 1},
		{"007", 7, 3},
		{"12abc", 12, 2},
		{"1.", 1, 2},
		{".5", .5, 2},
		{"-.5x", -.5, 3},
		{"1e", 1, 1},
		{"1e+", 1, 1},
		{"1e+2", 100, 4},
		{"1E-2x", .01, 4},
		{"1_0", 1, 1},
		{"999999999999999", 999999999999999, 15},
		{"9999999999999999", 1e16, 16},
		{"1e999", math.Inf(1), 5},
		{"-1e999", math.Inf(-1), 6},
		{"1e-999", 0, 6},
		{"0x", 0, 1},
		{"0xg", 0, 1},
		{"0x.p1", 0, 1},
		{"0x10", 16, 4},
		{"-0X1F", -31, 5},
		{"0x1.8", 1.5, 5},
		{"0x.8p1", 1, 6},
		{"0x1p", 1, 3},
		{"0x1p-1z", .5, 6},
		{"inf", math.Inf(1), 3},
		{"-Infinite", math.Inf(-1), 4},
		{"INFINITY", math.Inf(1), 8},
		{"in", 0, 0},
		{"na", 0, 0},
		{" \t+5 ", 5, 4},
	} {
		if f, n := Prefix(tc.text); f != tc.want || n != tc.n {
			t.Errorf("Prefix(%q) is %v of %d bytes, want %v of %d", tc.text, f, n, tc.want, tc.n)
		}
	}
	for text, want := range map[string]int{"nan": 3, "-NaN": 4, "nan(12_a)": 9, "nan(": 3, "nan(-)": 3} {
		if f, n := Prefix(text); !math.IsNaN(f) || n != want {
			t.Errorf("Prefix(%q) is %v of %d bytes, want NaN of %d", text, f, n, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{
		" 12 ": 12, "0x10\n": 16, "1e2": 100, "5\x00junk": 5, "-0x1": -1, "\v\f1.5\r": 1.5,
	} {
		if f, ok := Parse(text); !ok || f != want {
			t.Errorf("Parse(%q) is %v, %v, want %v", text, f, ok, want)
		}
	}
	for _, text := range []string{"", " ", "1x", "1 2", "0x", "--1", "1e", "\x001", "1_0", strings.Repeat("1", 1<<16+1)} {
		if f, ok := Parse(text); ok {
			t.Errorf("Parse(%q) is %v, want none", text[:min(len(text), 20)], f)
		}
	}
}

func TestText(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "-0", 1e14: "1e+14", 99999999999999: "99999999999999", 0.1 + 0.2: "0.3",
		-1.5: "-1.5", 1e-5: "1e-05", math.Inf(1): "inf", math.Inf(-1): "-inf", 1e100: "1e+100",
	} {
		if got := Text(f); got != want {
			t.Errorf("Text(%v) is %q, want %q", f, got, want)
		}
	}
}

func TestAppendG(t *testing.T) {
	for _, tc := range []struct {
		f         float64
		prec      int
		want, alt string
	}{
		{574514.3, 5, "5.7451e+05", "5.7451e+05"},
		{65535, 1, "7e+04", "7.e+04"},
		{283405.9, 6, "283406", "283406."},
		{1.5, 3, "1.5", "1.50"},
		{0, 0, "0", "0."},
		{100, 6, "100", "100.000"},
		{1e-5, 2, "1e-05", "1.0e-05"},
	} {
		if got := string(AppendG(nil, tc.f, tc.prec, false)); got != tc.want {
			t.Errorf("%%.%dg of %v is %q, want %q", tc.prec, tc.f, got, tc.want)
		}
		if got := string(AppendG(nil, tc.f, tc.prec, true)); got != tc.alt {
			t.Errorf("%%#.%dg of %v is %q, want %q", tc.prec, tc.f, got, tc.alt)
		}
	}
}
