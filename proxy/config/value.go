package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	maxInt32  = math.MaxInt32
	minInt32  = math.MinInt32
	maxUint32 = math.MaxUint32
	maxInt64  = math.MaxInt64
)

const (
	maxBindAddresses = 16   // as in redis-server
	maxWords         = 4096 // of one directive, over all its lines
)

// value is a directive's value; it is never changed once it is published.
type value struct {
	text  string // as CONFIG GET prints it
	num   int64  // of numbers; a percentage is negative; a Bool is 0 or 1
	words []string
	lines [][]string

	origins []Origin // of lines that a source gave
}

// equal reports whether two values mean the same. A text may hide a difference: see KeyspaceEvents.
func (v *value) equal(other *value) bool {
	return v.text == other.text && slices.Equal(v.words, other.words)
}

// parse reads args as a value of d. prev is the value they modify or add to: the classes that a buffer limit does
// not name keep theirs. An error's text is Redis's where Redis has one.
func (d *Directive) parse(args []string, prev *value) (*value, error) {
	if !d.Kind.manyArguments() && len(args) != 1 {
		return nil, errors.New("wrong number of arguments")
	}
	switch d.Kind {
	case Bool:
		switch strings.ToLower(args[0]) {
		case "yes":
			return &value{text: "yes", num: 1}, nil
		case "no":
			return &value{text: "no"}, nil
		}
		return nil, errors.New("argument must be 'yes' or 'no'")
	case Int, Octal, Memory, MemoryOrPercent:
		return d.parseNumber(args[0])
	case Enum, Flags:
		return d.parseEnum(args)
	case String:
		return d.checked(&value{text: args[0]}, args)
	case Dir:
		return parseDir(args[0])
	case Words:
		return d.parseWords(args, prev)
	case Lines:
		return d.parseLine(args, prev)
	case SavePoints:
		return parseSave(args)
	case BufferLimits:
		return parseBufferLimits(args, prev)
	case KeyspaceEvents:
		return parseKeyspaceEvents(args[0])
	case Percentiles:
		return parsePercentiles(args)
	case OOMScores:
		return parseOOMScores(args)
	case HostPort:
		return parseHostPort(args)
	}
	panic(fmt.Sprintf("config: directive %s has unknown kind %d", d.Name, d.Kind))
}

// checked lets the directive's own check look at each word.
func (d *Directive) checked(v *value, words []string) (*value, error) {
	if d.check != nil {
		for _, w := range words {
			if bad := d.check(w); bad != "" {
				return nil, errors.New(bad)
			}
		}
	}
	return v, nil
}

func (d *Directive) parseNumber(s string) (*value, error) {
	if d.Huge {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > maxInt64 {
			return &value{text: strconv.FormatUint(n, 10), num: maxInt64}, nil
		}
	}
	n, err := d.number(s)
	if err != nil {
		return nil, err
	}
	if d.Kind == MemoryOrPercent && n < 0 {
		if n < d.Min {
			return nil, fmt.Errorf("percentage argument must be less or equal to %d", -d.Min)
		}
	} else if n < d.Min || n > d.Max {
		return nil, fmt.Errorf("argument must be between %s and %s inclusive", formatNumber(d.Kind, d.Min), formatNumber(d.Kind, d.Max))
	}
	if d.adjust != nil {
		n = d.adjust(n)
	}
	return &value{text: formatNumber(d.Kind, n), num: n}, nil
}

func (d *Directive) number(s string) (int64, error) {
	switch d.Kind {
	case Octal:
		// The C library's strtoll, which Redis uses, takes blanks and a sign before the digits, and nothing at all as 0.
		t := strings.TrimLeft(s, " \t\n\v\f\r")
		if t == "" && s == "" {
			return 0, nil
		}
		if n, err := strconv.ParseInt(t, 8, 64); err == nil {
			return n, nil
		}
		return 0, errors.New("argument couldn't be parsed as an octal number")
	case Memory:
		if n, ok := ParseMemory(s); ok {
			return n, nil
		}
		return 0, errors.New("argument must be a memory value")
	case MemoryOrPercent:
		if n, ok := ParseMemory(s); ok {
			return n, nil
		}
		if digits, found := strings.CutSuffix(s, "%"); found {
			if n, ok := parseInt(digits); ok && n >= 0 {
				return -n, nil
			}
		}
		return 0, errors.New("argument must be a memory or percent value")
	}
	if n, ok := parseInt(s); ok {
		return n, nil
	}
	return 0, errors.New("argument couldn't be parsed into an integer")
}

// parseInt reads a decimal integer as Redis's string2ll: exactly as it would be printed.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// ParseMemory reads a size in bytes as redis.conf writes it: digits and one of the units b, k (1000), kb (1024),
// m, mb, g, gb in either case. As in Redis a missing number counts as 0. Unlike Redis, which wraps around or
// stops at the top, a size above the largest int64 is no size.
func ParseMemory(s string) (bytes int64, ok bool) {
	end := 0
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	var unit int64
	switch strings.ToLower(s[end:]) {
	case "", "b":
		unit = 1
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	default:
		return 0, false
	}
	if end == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil || n > maxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

func formatNumber(k Kind, n int64) string {
	switch {
	case k == Octal:
		return strconv.FormatInt(n, 8)
	case k == MemoryOrPercent && n < 0:
		return strconv.FormatInt(-n, 10) + "%"
	}
	return strconv.FormatInt(n, 10)
}

func (d *Directive) parseEnum(args []string) (*value, error) {
	if len(args) == 0 || len(args) > 1 && d.Kind == Enum {
		return nil, d.enumError()
	}
	given := make(map[string]bool, len(d.Enum))
	for _, a := range args {
		i := 0
		for ; i < len(d.Enum) && !strings.EqualFold(a, d.Enum[i]); i++ {
		}
		if i == len(d.Enum) {
			return nil, d.enumError()
		}
		given[d.Enum[i]] = true
	}
	if d.Kind == Enum {
		for name := range given {
			if same := d.same[name]; same != "" {
				name = same
			}
			return &value{text: name}, nil
		}
	}
	if given["save"] && given["nosave"] {
		return nil, errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
	}
	var words []string
	for _, name := range d.Enum[1:] {
		if given[name] {
			words = append(words, name)
		}
	}
	if words == nil {
		words = d.Enum[:1]
	}
	return &value{text: strings.Join(words, " "), words: words}, nil
}

func (d *Directive) enumError() error {
	return errors.New("argument(s) must be one of the following: " + strings.Join(d.Enum, ", "))
}

// parseDir wants a directory that is there, as Redis's chdir does, but leaves the process where it is.
func parseDir(s string) (*value, error) {
	path, err := filepath.Abs(s)
	if s == "" {
		return nil, errors.New(systemText(syscall.ENOENT))
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
	}
	switch {
	case err != nil && s == ".":
		return &value{text: s}, nil // where one stands is gone; that matters only to who opens a file there
	case err != nil:
		return nil, errors.New(systemText(err))
	}
	return &value{text: path}, nil
}

// systemText words a system call's error as strerror does: without the path, capitalised.
func systemText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}

func (d *Directive) parseWords(args []string, prev *value) (*value, error) {
	if len(args) == 1 && args[0] == "" {
		args = nil
	}
	if d.Name == "bind" && len(args) > maxBindAddresses {
		return nil, errors.New("Too many bind addresses specified.")
	}
	if d.Repeatable && prev != nil {
		args = append(prev.words[:len(prev.words):len(prev.words)], args...)
	}
	if len(args) > maxWords {
		return nil, fmt.Errorf("more than %d values", maxWords)
	}
	return d.checked(&value{text: strings.Join(args, " "), words: args}, args)
}

func (d *Directive) parseLine(args []string, prev *value) (*value, error) {
	if int64(len(args)) < d.Min || int64(len(args)) > d.Max {
		return nil, errors.New("wrong number of arguments")
	}
	v := &value{}
	if prev != nil {
		v.lines = prev.lines[:len(prev.lines):len(prev.lines)]
	}
	if len(v.lines) >= maxWords {
		return nil, fmt.Errorf("repeated more than %d times", maxWords)
	}
	v.lines = append(v.lines, args)
	if d.line != nil {
		if reason := d.line(args); reason != "" {
			return nil, errors.New(reason)
		}
	}
	return d.checked(v, args[:1])
}

func parseSave(args []string) (*value, error) {
	if len(args) == 1 && args[0] == "" {
		return &value{}, nil
	}
	if len(args)%2 != 0 || len(args) > maxWords {
		return nil, errors.New("Invalid save parameters")
	}
	words := make([]string, len(args))
	for i, a := range args {
		n, ok := parseC(a, maxInt64)
		if least := int64(1 - i%2); !ok || n < least || i%2 == 1 && n > maxInt32 {
			return nil, errors.New("Invalid save parameters")
		}
		words[i] = strconv.FormatInt(n, 10)
	}
	return &value{text: strings.Join(words, " "), words: words}, nil
}

// parseC reads an integer as strtoll: blanks and a sign before it are allowed, and nothing at all is 0.
func parseC(s string, most int64) (int64, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(strings.TrimLeft(s, " \t\n\v\f\r"), 10, 64)
	return n, err == nil && n <= most
}

// bufferClasses are the classes of client-output-buffer-limit, with the name CONFIG GET has for each.
var bufferClasses = [...]string{"normal", "slave", "pubsub"}

// BufferLimit is one class's part of client-output-buffer-limit.
type BufferLimit struct {
	Hard        int64 // bytes; 0 is no limit
	Soft        int64 // bytes; 0 is no limit
	SoftSeconds int64 // how long a client may stay above Soft
}

func parseBufferLimits(args []string, prev *value) (*value, error) {
	if len(args)%4 != 0 || len(args) > maxWords {
		return nil, errors.New("Wrong number of arguments in buffer limit configuration.")
	}
	words := make([]string, 0, 4*len(bufferClasses))
	if prev != nil {
		words = append(words, prev.words...)
	} else {
		for _, class := range bufferClasses {
			words = append(words, class, "0", "0", "0")
		}
	}
	for i := 0; i < len(args); i += 4 {
		at := -1
		switch strings.ToLower(args[i]) {
		case "normal":
			at = 0
		case "slave", "replica":
			at = 4
		case "pubsub":
			at = 8
		default:
			return nil, errors.New("Invalid client class specified in buffer limit configuration.")
		}
		hard, ok1 := ParseMemory(args[i+1])
		soft, ok2 := ParseMemory(args[i+2])
		seconds, ok3 := parseC(args[i+3], maxInt32)
		if !ok1 || !ok2 || !ok3 || seconds < 0 {
			return nil, errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		for j, n := range [...]int64{hard, soft, seconds} {
			words[at+1+j] = strconv.FormatInt(n, 10)
		}
	}
	return &value{text: strings.Join(words, " "), words: words}, nil
}

// eventClasses are the letters that A stands for, in the order in which Redis prints them.
const eventClasses = "g$lshzxetdn"

// allEvents are those of eventClasses that A includes: n (new key) is not one of them.
const allEvents = "g$lshzxetd"

func parseKeyspaceEvents(s string) (*value, error) {
	var set [256]bool
	for i := 0; i < len(s); i++ {
		if s[i] != 'A' && s[i] != 'K' && s[i] != 'E' && s[i] != 'm' && strings.IndexByte(eventClasses, s[i]) < 0 {
			return nil, errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
		set[s[i]] = true
	}
	all := true
	for _, c := range []byte(allEvents) {
		set[c] = set[c] || set['A']
		all = all && set[c]
	}
	var text []byte
	if all {
		// As in Redis: n is lost beside A.
		text = append(text, 'A')
	} else {
		for _, c := range []byte(eventClasses) {
			if set[c] {
				text = append(text, c)
			}
		}
	}
	for _, c := range []byte("KEm") {
		if set[c] {
			text = append(text, c)
		}
	}
	var letters []byte
	for _, c := range []byte(eventClasses + "KEm") {
		if set[c] {
			letters = append(letters, c)
		}
	}
	return &value{text: string(text), words: []string{string(letters)}}, nil
}

func parsePercentiles(args []string) (*value, error) {
	if len(args) == 1 && args[0] == "" {
		return &value{}, nil
	}
	if len(args) > maxWords {
		return nil, errors.New("Invalid latency-tracking-info-percentiles parameters")
	}
	words := make([]string, len(args))
	for i, a := range args {
		f, err := strconv.ParseFloat(a, 64)
		if err != nil || math.IsNaN(f) {
			return nil, errors.New("Invalid latency-tracking-info-percentiles parameters")
		}
		if f < 0 || f > 100 {
			return nil, errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
		}
		words[i] = strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 6, 64), "0"), ".")
	}
	return &value{text: strings.Join(words, " "), words: words}, nil
}

func parseOOMScores(args []string) (*value, error) {
	if len(args) != 3 {
		return nil, errors.New("wrong number of arguments")
	}
	words := make([]string, len(args))
	for i, a := range args {
		n, ok := parseC(a, 2000)
		if !ok || n < -2000 {
			return nil, errors.New("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
		}
		words[i] = strconv.FormatInt(n, 10)
	}
	return &value{text: strings.Join(words, " "), words: words}, nil
}

func parseHostPort(args []string) (*value, error) {
	if len(args) == 1 && args[0] == "" {
		return &value{}, nil
	}
	if len(args) != 2 {
		return nil, errors.New("wrong number of arguments")
	}
	if strings.EqualFold(args[0], "no") && strings.EqualFold(args[1], "one") {
		return &value{}, nil
	}
	port, ok := parseC(args[1], 65535)
	if !ok || port < 0 {
		return nil, errors.New("Invalid master port")
	}
	words := []string{args[0], strconv.FormatInt(port, 10)}
	return &value{text: strings.Join(words, " "), words: words}, nil
}
