package upstream

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for _, tc := range []struct {
		url  string
		want Target
		text string // of the error; empty: none
	}{
		{url: "redis://localhost", want: Target{Network: "tcp", Address: "localhost:6379", Host: "localhost"}},
		{url: "redis://localhost/", want: Target{Network: "tcp", Address: "localhost:6379", Host: "localhost"}},
		{url: "REDIS://127.0.0.1:7000/3", want: Target{Network: "tcp", Address: "127.0.0.1:7000", Host: "127.0.0.1", DB: 3}},
		{url: "redis://[::1]:7000/15", want: Target{Network: "tcp", Address: "[::1]:7000", Host: "::1", DB: 15}},
		{url: "redis://:s%40c%2Fret@h", want: Target{Network: "tcp", Address: "h:6379", Host: "h", Password: "s@c/ret"}},
		{url: "rediss://joe:secret@h:1", want: Target{Network: "tcp", Address: "h:1", Host: "h", TLS: true, Username: "joe", Password: "secret"}},
		{url: "unix:///run/redis.sock", want: Target{Network: "unix", Address: "/run/redis.sock"}},
		{url: "unix://joe:secret@/run/redis.sock?db=2", want: Target{Network: "unix", Address: "/run/redis.sock", Username: "joe", Password: "secret", DB: 2}},
		{url: "", text: "has no scheme"},
		{url: "localhost:6379", text: "has no scheme; write redis://"},
		{url: "http://localhost", text: "unknown scheme"},
		{url: "redis://", text: "has no host"},
		{url: "redis://:6379", text: "has no host"},
		{url: "redis://secret@h", text: "a user without a password"},
		{url: "redis://:secret@h:port", text: "is the port a number"},
		{url: "redis://:secret@h:0", text: "the port must be 1 to 65535"},
		{url: "redis://:secret@h:65536", text: "the port must be 1 to 65535"},
		{url: "redis://:se/cret@h", text: "percent-encoded"},
		{url: "redis://:se%zzcret@h", text: "percent-encoded"},
		{url: "redis://:se#cret@h", text: "URL"},
		{url: "redis://:secret@h/#x", text: "a # in the password is written %23"},
		{url: "redis://h/secret", text: "the database must be a number"},
		{url: "redis://h/-1", text: "the database must be a number"},
		{url: "redis://h/1/2", text: "the database must be a number"},
		{url: "redis://h/99999999999", text: "the database must be a number"},
		{url: "redis://h?secret=1", text: "takes no ?options"},
		{url: "unix://run/redis.sock", text: "needs an absolute path"},
		{url: "unix://", text: "needs an absolute path"},
		{url: "unix:///s?db=secret", text: "the database must be a number"},
		{url: "unix:///s?db=1&db=2", text: "only ?db=N is known"},
		{url: "unix:///s?secret=x", text: "only ?db=N is known"},
	} {
		got, err := ParseURL(tc.url)
		switch {
		case tc.text == "" && (err != nil || got != tc.want):
			t.Errorf("ParseURL(%q) = %+v, %v; want %+v", tc.url, got, err, tc.want)
		case tc.text != "" && err == nil:
			t.Errorf("ParseURL(%q) = %+v, want an error that says %q", tc.url, got, tc.text)
		case tc.text != "" && !strings.Contains(err.Error(), tc.text):
			t.Errorf("ParseURL(%q): error %q does not say %q", tc.url, err, tc.text)
		case err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "cret@")):
			t.Errorf("ParseURL(%q): error %q quotes the password", tc.url, err)
		}
	}
}
