// Command goguest is a guest as Go builds them, with the parts of the library
// that make large functions: fmt, sort, regexp.
package main

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
)

var number = regexp.MustCompile(`[0-9]+-([a-f]*)`)

//go:wasmexport work
func work(n int32) int32 {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("%d-%x", i%97, i*i))
	}
	sort.Strings(lines)
	return int32(len(number.ReplaceAllString(strings.Join(lines, ","), "$1")))
}

//go:wasmexport descend
func descend(n int32) int32 {
	if n <= 0 {
		return 0
	}
	return 1 + descend(n-1)
}

//go:wasmexport spin
func spin() {
	for {
	}
}

func main() {}
