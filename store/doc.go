// Package store is the keyspace: entries with their expiry, and the
// transactions through which all access goes.
//
// The names that matter are Store, Tx and Key. A Tx is begun, acquires keys,
// reads and writes through Key handles, and ends by Commit or Rollback.
//
// # How atomicity is won
//
// Every key belongs to one of 256 shards. A shard has a latch, a mutex held for
// one data access and never across a long script, and a table of key locks. A
// short transaction (Tx.AcquireFast) takes the latches of its keys, sees that none
// of the keys is locked, runs, commits and lets go. One that turns out to be too
// long for that is promoted: undone, and run again with key locks. Everything
// longer (Tx.Acquire) locks its keys in the order (shard, database, key) and runs
// without latches; who wants a locked key stands in that key's
// first-come-first-served queue and waits on a channel that a deadline, a kill or
// a shutdown can end. A locked transaction works on copies of the entries it
// changes and installs them at commit, so whoever visits a shard by its latch
// (SCAN, KEYS, the expiry cycle) sees committed values only; lists and sets are
// changed in place and undone from a journal, so a visitor looks into none whose
// key is locked. Transactions that concern the whole keyspace close the gate
// (Tx.AcquireAll): they wait for all others to end and run alone. For those that do
// not end within a few milliseconds they wait with the gate open.
//
// # Order of locks
//
//	gate, then key locks by (shard, database, key), then Store.swapping (by
//	SWAPDB's commit and WATCH only), then latches by shard,
//	then the outbox mutex, then the effect log's own mutex.
//
// No key lock is waited for while a latch is held, and no latch is held across
// anything that can block but the effect log's Append.
//
// # What is guaranteed
//
// A transaction happens whole or not at all. Its effects are appended to the
// effect log before its keys are released, so the log's order is the order of
// execution. What it publishes leaves after commit, once, in the log's order.
//
// Not guaranteed: that KEYS or SCAN see several shards at the same moment.
//
// The store reads no clock, no random source and no network by itself; all of
// them are handed in through Options.
package store
