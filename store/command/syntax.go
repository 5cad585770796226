package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Argument is one argument of a command, as COMMAND DOCS describes it.
type Argument struct {
	Name string
	// Type is one of Redis's: string, integer, double, key, pattern, unix-time,
	// pure-token, oneof, block.
	Type string
	// Token is the word that stands before the value, or that is the argument.
	Token string
	// Key is the index of the key spec that a key belongs to, -1 for others.
	Key      int
	Optional bool
	Multiple bool
	// TokenEach: when repeated, the token is too.
	TokenEach bool
	// Args are the parts of a block, or the choices of a oneof.
	Args []Argument
}

// Arguments parses Spec.Syntax. The notation is that of Redis's reference:
//
//	key value            arguments, in this order
//	EX seconds           a word that is sent as it stands, and its values
//	[GET]                may be left out
//	[NX | XX]            one of these, or none
//	<AND | OR> destkey   one of these; without <> a bar divides all there is
//	key [key ...]        once or more
//	[key [key ...]]      any number
func (s *Spec) Arguments() ([]Argument, error) {
	p := syntaxParser{words: syntaxWords(s.Syntax), specs: len(s.Keys)}
	for _, k := range s.Keys {
		if k.Flags&KeyNotKey != 0 {
			p.specs = 0
		}
	}
	if len(p.words) == 0 {
		return nil, nil
	}
	args, err := p.group(0)
	if err == nil && p.at != len(p.words) {
		err = fmt.Errorf("unexpected %s", p.peek())
	}
	if err != nil {
		return nil, fmt.Errorf("command %q: syntax %q: %w", s.Name, s.Syntax, err)
	}
	return args, nil
}

// maxSyntaxDepth bounds what a module's manifest can nest.
const maxSyntaxDepth = 16

type syntaxParser struct {
	words []string
	at    int
	specs int // key specs
	keys  int // keys met so far
}

// syntaxWords splits at blanks, and takes brackets and bars for words.
func syntaxWords(s string) []string {
	return strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "<", " < ", ">", " > ", "|", " | ").Replace(s))
}

// peek is the next word, "" at the end.
func (p *syntaxParser) peek() string {
	if p.at < len(p.words) {
		return p.words[p.at]
	}
	return ""
}

// group parses sequences with bars between them, up to a closing bracket or the
// end. Several sequences are one argument.
func (p *syntaxParser) group(depth int) ([]Argument, error) {
	if depth > maxSyntaxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxSyntaxDepth)
	}
	var choices []Argument
	for {
		args, err := p.sequence(depth)
		if err != nil {
			return nil, err
		}
		if p.peek() != "|" && choices == nil {
			return args, nil
		}
		choices = append(choices, together(args))
		if p.peek() != "|" {
			return []Argument{{Name: choices[0].Name, Type: "oneof", Key: -1, Args: choices}}, nil
		}
		p.at++
	}
}

// together makes one argument of a sequence.
func together(args []Argument) Argument {
	if len(args) == 1 {
		return args[0]
	}
	return Argument{Name: args[0].Name, Type: "block", Key: -1, Args: args}
}

// sequence parses arguments up to a bar, a closing bracket or the end.
func (p *syntaxParser) sequence(depth int) ([]Argument, error) {
	var args []Argument
	var starts []int // the first word of each
	for {
		start := p.at
		var a Argument
		var err error
		switch w := p.peek(); {
		case w == "" || w == "|" || w == "]" || w == ">":
			if len(args) == 0 {
				return nil, fmt.Errorf("an argument is missing before %q", w)
			}
			return args, nil
		case w == "...":
			if len(args) == 0 {
				return nil, errors.New("... without what is repeated")
			}
			p.at++
			all := together(args)
			all.Multiple = true
			args, starts = []Argument{all}, starts[:1]
			continue
		case w == "[":
			if n := p.repetition(starts); n > 0 {
				rest := together(args[len(args)-n:])
				rest.Multiple = true
				rest.TokenEach = isToken(p.words[starts[len(args)-n]])
				args, starts = append(args[:len(args)-n:len(args)-n], rest), starts[:len(args)-n+1]
				continue
			}
			if a, err = p.enclosed("]", depth); err == nil {
				a.Optional = true
			}
		case w == "<":
			a, err = p.enclosed(">", depth)
		case isToken(w):
			a, err = p.token(depth)
		default:
			p.at++
			a = p.value(w)
		}
		if err != nil {
			return nil, err
		}
		args, starts = append(args, a), append(starts, start)
	}
}

// repetition consumes "[... ...]" if it repeats the last arguments of a
// sequence, and returns how many of them.
func (p *syntaxParser) repetition(starts []int) int {
	for n := 1; n <= len(starts); n++ {
		said := p.words[starts[len(starts)-n]:p.at]
		rest := p.words[p.at+1:]
		if len(rest) >= len(said)+2 && slices.Equal(rest[:len(said)], said) && rest[len(said)] == "..." && rest[len(said)+1] == "]" {
			p.at += len(said) + 3
			return n
		}
	}
	return 0
}

// enclosed parses a group between brackets.
func (p *syntaxParser) enclosed(closing string, depth int) (Argument, error) {
	p.at++
	args, err := p.group(depth + 1)
	if err != nil {
		return Argument{}, err
	}
	if p.peek() != closing {
		return Argument{}, fmt.Errorf("%s is missing", closing)
	}
	p.at++
	return together(args), nil
}

// token parses a word that is sent as it stands, with the values behind it.
func (p *syntaxParser) token(depth int) (Argument, error) {
	word := p.peek()
	p.at++
	if p.peek() == "<" {
		a, err := p.enclosed(">", depth)
		a.Token = word
		return a, err
	}
	var values []Argument
	for isValue(p.peek()) {
		start := p.at
		p.at++
		a := p.value(p.words[start])
		a.Multiple = p.peek() == "[" && p.repetition([]int{start}) > 0
		values = append(values, a)
	}
	if len(values) == 0 {
		return Argument{Name: strings.ToLower(word), Type: "pure-token", Token: word, Key: -1}, nil
	}
	a := together(values)
	if a.Type == "block" {
		a.Name = strings.ToLower(word)
	}
	a.Token = word
	return a, nil
}

func (p *syntaxParser) value(name string) Argument {
	a := Argument{Name: name, Type: valueType(name), Key: -1}
	if a.Type == "key" {
		if p.specs == 0 {
			a.Type = "string"
		} else {
			a.Key = min(p.keys, p.specs-1)
			p.keys++
		}
	}
	return a
}

// isToken tells words that are sent as they stand, which are written in upper
// case, from names of values.
func isToken(w string) bool { return strings.ToUpper(w) == w && strings.ToLower(w) != w }

func isValue(w string) bool {
	switch w {
	case "", "[", "]", "<", ">", "|", "...":
		return false
	}
	return !isToken(w)
}

// valueType tells a value's type by its name.
func valueType(name string) string {
	switch strings.TrimRight(name, "0123456789") {
	case "key", "newkey", "destkey", "source", "destination":
		return "key"
	case "seconds", "milliseconds", "ttl", "db", "index", "offset", "start", "end", "stop", "count", "numkeys",
		"increment", "decrement", "timeout", "id", "client-id", "protover", "numreplicas", "numlocal", "bit", "value-len",
		"len", "cursor", "maxage", "numslaves", "version", "port":
		return "integer"
	case "unix-time-seconds", "unix-time-milliseconds":
		return "unix-time"
	case "pattern":
		return "pattern"
	}
	return "string"
}
