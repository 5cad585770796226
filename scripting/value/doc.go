// Package value has the values and tables of the second engine, and of the
// libraries that work on data rather than on a machine: cjson, cmsgpack, struct.
//
// A [Value] is sixteen bytes; numbers, booleans, nil and strings that exist take
// no allocation. A [Table] is Lua 5.1's own: an array part and a hash part that
// grow by the same rules, so that the length operator on a table with holes and
// the order of pairs are those of Redis, for keys that are strings, numbers and
// booleans. Tables charge what they take to the account they were made with.
package value
