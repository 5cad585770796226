// Package text is what both engines know of Lua's strings: the conversions of
// string.format, and patterns. It is byte-wise, as Lua 5.1 in the C locale.
package text
