// Package lib has the libraries that Redis gives to scripts beside Lua's own:
// cjson, cmsgpack, struct and bit. They work on data, [value.Value] and
// [value.Table], and know no machine: each engine calls them in its own way.
//
// [Libraries] lists what a script sees. A [Func] takes a [Call] with the
// arguments, the account of the run and room for the results, and returns an
// [*Error] or nil. It panics with budget.Ended when the account says that the run
// must end. [Settings] are those of one cjson table, for one run.
//
// Guaranteed: nothing is allocated from a length that the input merely claims;
// what nests is bounded, where Redis runs out of Lua stack; every loop pays from
// the account; all texts, limits and positions are those of redis-server 7.0.15,
// which the corpus in testdata is replayed on.
package lib
