package text

// Lower is string.lower. It writes into dst, which is as long as src, as do the
// others; only ASCII letters have a case.
func Lower(dst []byte, src string) {
	for i := range dst {
		c := src[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		dst[i] = c
	}
}

// Upper is string.upper.
func Upper(dst []byte, src string) {
	for i := range dst {
		c := src[i]
		if c-'a' < 26 {
			c &^= 0x20
		}
		dst[i] = c
	}
}

// Reverse is string.reverse.
func Reverse(dst []byte, src string) {
	for i := range dst {
		dst[len(dst)-1-i] = src[i]
	}
}
