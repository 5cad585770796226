package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// expand makes a command of a template, whose words are
//
//	SET           itself, in upper, lower or mixed case
//	GET|STRLEN    one of them
//	$key          a word of the pool of that name
//	$key...       up to three of them
//	{NX|EX $int}  up to three of the choices, which may repeat or contradict each other
func expand(rnd *rand.Rand, template string) []string {
	var words []string
	for rest := template; rest != ""; {
		rest = strings.TrimLeft(rest, " ")
		if inner, ok := strings.CutPrefix(rest, "{"); ok {
			choices, after, _ := strings.Cut(inner, "}")
			rest = after
			all := strings.Split(choices, "|")
			for range []int{0, 0, 1, 1, 1, 2, 2, 3}[rnd.IntN(8)] {
				words = append(words, expand(rnd, all[rnd.IntN(len(all))])...)
			}
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		rest = after
		name, isPool := strings.CutPrefix(word, "$")
		if !isPool {
			choices := strings.Split(word, "|")
			words = append(words, inSomeCase(rnd, choices[rnd.IntN(len(choices))]))
			continue
		}
		n := 1
		if more, ok := strings.CutSuffix(name, "..."); ok {
			name, n = more, rnd.IntN(4)
		}
		for range n {
			words = append(words, draw(rnd, name))
		}
	}
	return words
}

// draw takes a word from a pool, mostly one of the first, which are the usual ones.
func draw(rnd *rand.Rand, name string) string {
	pool, ok := pools[name]
	if !ok {
		panic(fmt.Sprintf("no pool is named %q", name))
	}
	if rnd.IntN(2) == 0 {
		return pool[rnd.IntN(min(6, len(pool)))]
	}
	return pool[rnd.IntN(len(pool))]
}

func inSomeCase(rnd *rand.Rand, word string) string {
	switch rnd.IntN(8) {
	case 0:
		return strings.ToLower(word)
	case 1:
		return word[:len(word)/2] + strings.ToLower(word[len(word)/2:])
	}
	return word
}

// disturb makes, now and then, what no template has: a wrong number of arguments,
// or arguments where others belong.
func disturb(rnd *rand.Rand, words []string) []string {
	if len(words) < 2 {
		return words
	}
	i := 1 + rnd.IntN(len(words)-1)
	odd := draw(rnd, []string{"key", "int", "value", "float"}[rnd.IntN(4)])
	switch rnd.IntN(24) {
	case 0:
		return append(words[:i:i], words[i+1:]...)
	case 1:
		return append(append(words[:i:i], odd), words[i:]...)
	case 2:
		words[i] = odd
	case 3:
		j := 1 + rnd.IntN(len(words)-1)
		words[i], words[j] = words[j], words[i]
	}
	return words
}
