package transcript

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

// Quote writes s between double quotes, with the escapes that [SplitWords]
// reads. Whatever is not printable ASCII becomes \xHH, so that a transcript
// shows bytes and not what an editor makes of them.
func Quote(s string) string { return quoting.Quote(s) }

// unquote reads what Quote wrote; nothing may follow the closing quote.
func unquote(s string) (string, error) {
	words, err := SplitWords(s)
	if err != nil {
		return "", err
	}
	if len(words) != 1 || s == "" || s[0] != '"' {
		return "", fmt.Errorf("want one string in double quotes, have %s", s)
	}
	return words[0], nil
}

// SplitWords splits a line into arguments as redis-cli does.
func SplitWords(line string) ([]string, error) { return quoting.Split(line) }
