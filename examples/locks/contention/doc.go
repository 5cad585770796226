// Package contention makes clients fight over a lock and counts how many of them were in the critical section
// at once. The counting does not trust the lock: it happens in this process, under a mutex.
//
// [Section] is the critical section. [Round] is one race that can be arranged: in order, so that the same
// commands come in the same order each time, or with all contenders at once. [Load] is plain use of a lock.
// [Paused] is a client that is stopped between two of its commands. Nothing here sleeps: rounds go on when
// something has happened, and [Lapse] makes a lock's time pass.
package contention
