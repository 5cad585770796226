//go:build !race

package store

// raceDetector tells whether the race detector watches.
const raceDetector = false
