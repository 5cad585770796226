//go:build !race

package underrace

const slow = 1
