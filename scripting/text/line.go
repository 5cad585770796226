package text

import "strings"

// CString is s as C sees it, up to a NUL. Redis and Lua put names and messages
// together as C strings.
func CString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// OneLine is s with blanks for its ends of lines, so that it does not break a
// reply of one line.
func OneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// StatusLine is s as a status reply.
func StatusLine(s string) string { return OneLine(CString(s)) }

// ErrorLine is s as an error reply, which loses the ends of lines at its end, as
// Redis has it.
func ErrorLine(s string) string { return OneLine(strings.TrimRight(CString(s), "\r\n")) }
