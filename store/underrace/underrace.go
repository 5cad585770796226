// Package underrace is for tests that also run under the race detector, where
// code takes five to twenty times as long. What a test looks at stays: On says
// that the detector is there, Slow is what bounds of time are multiplied by, and
// Sample leaves of a long corpus what there is time for. The whole corpus runs
// without the detector.
package underrace

// Slow is what a bound of time is multiplied by: 1 without the detector.
const Slow = slow

// On is true in programs built with -race.
const On = slow > 1

// Sample returns the list, under the detector only each nth of it, beginning with
// the first: the same ones every time.
func Sample[T any](list []T, n int) []T {
	if !On {
		return list
	}
	part := make([]T, 0, len(list)/n+1)
	for i := 0; i < len(list); i += n {
		part = append(part, list[i])
	}
	return part
}

// Fewer returns count, under the detector the nth part of it, at least 1.
func Fewer(count, n int) int {
	if !On {
		return count
	}
	return max(1, count/n)
}
