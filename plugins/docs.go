package plugins

import (
	"fmt"
	"strings"
)

const docsHead = `# The plugin ABI

For whoever writes a plugin in a language without an SDK here, or an SDK. Generated from the host functions in
` + "`plugins/abi_*.go`" + `; do not edit it by hand. [Plugins](PLUGINS.md) says how to write, load and think of one;
` + "`plugins/sdk/c/latchkey.h`" + ` has all of this for C.

This is version %d. Pointers and lengths are 32 bits wide, and count bytes from the start of the guest's memory; numbers in
memory are little-endian. latchkey allocates nothing in the guest and keeps no pointer into its memory when a function
has returned. The import module of all host functions is ` + "`%s`" + `; a module that imports another, or a function that
is not here, is refused when it is loaded.

## What a guest exports

| Export | Type | When, and what for |
|---|---|---|
`

const docsFrame = `
The last four may be missing; a manifest that asks for ` + "`timers`, `events` or `clients`" + ` needs the one that goes with it.
` + "`_initialize`" + `, a function without parameters, runs before ` + "`lk_abi`" + ` if it is exported: toolchains make it. Host
functions can be called while latchkey waits for one of these to return, ` + "`lk_abi` and `lk_init`" + ` excepted, and trap at any
other time: whatever a guest runs beside (a goroutine, say) must end with the call that began it.

` + "`lk_timer`, `lk_event` and `lk_closed`" + ` run in transactions of their own, each after the commit that led to it, on any
instance, without a client and without a reply: one trapped there by a reply function is undone. They reach every key that
the manifest grants, without having declared it; when another transaction holds such a key they are undone and run again.
Whatever they return but 0 undoes them. Timers and clients are told of in the order of their times, events in that of the
commits; of events at most 10,000 wait, those beyond are dropped and counted. No event is told to a module that has caused
it, directly or through what another did because of it. ` + "`lk_closed`" + ` that fails is tried three times.

## The frame

Before each command latchkey writes the arguments as one block into the arena, 8-aligned:

    offset  0       4       8          12        16    20           16+8i  20+8i
            +-------+-------+----------+---------+-----+-----+-- --+------+------+--------------------
            | argc  | nkeys | first_key| db      | ptr | len | ... | ptr  | len  | bytes of arguments
            +-------+-------+----------+---------+--|--+-----+-- --+------+------+-^------------------
                                                    |      argument 0, the name    |
                                                    +------------------------------+

` + "`argc`" + ` counts the command's name. ` + "`nkeys`" + ` is how many of the arguments are keys by the manifest, ` + "`first_key`" + ` the
index of the first of them, 0 without any, ` + "`db`" + ` the database that the call is in. Every ` + "`ptr`" + ` points into the frame. The frame is the guest's until
the function returns: it may write to it. The next call overwrites it. For ` + "`lk_wake`" + ` the frame is again that of the command
that waits; for ` + "`lk_event`" + ` it is the event's name and the key, for ` + "`lk_closed`" + ` the key.

## What comes back

Results of 0 and more, and those named with a function, are its own. Errors are the same in all of them:

| Code | Meaning | As the return of ` + "`lk_command`" + ` |
|---|---|---|
`

const docsReturn = `
` + "`lk_command`" + ` gives exactly one reply and returns 0. If it returns anything else, or has called ` + "`reply_error`" + `, what
the command wrote is undone and the client gets an error; the instance is kept. A reply that is missing or not complete
is an error, too.

A **trap** ends the call at once: everything is undone, the client gets ` + "`-PLUGINERR name: reason`" + `, the instance is
replaced. A pointer and length that reach outside of memory trap in every function, also when the bytes would not have
been used; so do a handle that is none, and a frame that is not aligned. A module whose calls trap too often within a while
(` + "`plugin-max-failures`" + `) is disabled: ` + "`-PLUGINDISABLED`" + `.

## Limits

| What | Limit | Beyond it |
|---|---|---|
`

// guestDocs says of each export when it is called and what for.
func guestDocs(name string) (usage, doc string) {
	switch name {
	case "lk_abi":
		return "lk_abi() -> i32", "Once an instance, first. Returns the ABI's version, which must be 1."
	case "lk_init":
		return "lk_init() -> i32", "Once an instance. Returns 0; anything else refuses the module, or the call that needed the instance."
	case "lk_arena":
		return "lk_arena(size) -> i32", "For the first frame of an instance, and when a frame outgrows the room. Returns the address of size bytes, 8-aligned, that latchkey may overwrite at each command; 0 if there is no room: the client gets `-PLUGINERR`, and the instance is kept. Any other address that does not do traps."
	case "lk_command":
		return "lk_command(id, argc, frame) -> i32", "For each command: the id its manifest gives it, the number of arguments, the address of the frame. Returns 0 or an error."
	case "lk_wake":
		return "lk_wake(token, reason, argc, frame) -> i32", "For a client that waits since `block`, with the token given there. Reason `0`: one of the keys was changed, deleted or has expired, and is held now; `1`: the time is up. Gives the reply and returns 0; or returns `1`, without a reply, to go on waiting without losing its place, which at reason 1 gives the client a null; or an error. May be missing: then `lk_command` is called again, and may `block` again."
	case "lk_timer":
		return "lk_timer(token) -> i32", "For a timer that is due, in the database that it was set in."
	case "lk_event":
		return "lk_event(class, argc, frame) -> i32", "For a keyspace event of a class that the manifest subscribes to, about a key that the manifest lets it read or write. The classes are `0` generic, `1` string, `2` list, `3` set, `4` hash, `5` zset, `6` stream, `7` expired, `8` evicted, `9` new, `10` module."
	case "lk_closed":
		return "lk_closed(token, argc, frame) -> i32", "For a key bound by `bind_client`, when the connection of its client has ended."
	}
	return "", ""
}

// Docs is docs/PLUGIN-ABI.md.
func Docs() string {
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	fmt.Fprintf(&b, docsHead, abiVersion, abiModule)
	row("`memory`", "memory", "The guest's own linear memory. It cannot be imported.")
	for _, e := range guestExports {
		usage, doc := guestDocs(e.name)
		row("`"+usage+"`", "`"+signature(e.params, e.results)+"`", doc)
	}
	for _, e := range optionalExports {
		usage, doc := guestDocs(e.name)
		row("`"+usage+"`", "`"+signature(e.params, e.results)+"`", doc)
	}
	b.WriteString(docsFrame)
	for _, c := range []struct {
		code          int
		meaning, text string
	}{
		{codeNil, "there is no such key, where a function says so", "`-PLUGINERR`, as any other number"},
		{codeWrongType, "the key holds a value of another type", "`-WRONGTYPE`"},
		{codeDenied, "the command does not declare the key, or the manifest does not ask for what was tried, or the administrator withholds it", "`-NOPERM`"},
		{codeOOM, "maxmemory is reached", "`-OOM`"},
		{codeInvalid, "an argument is out of range", "`-ERR invalid argument`"},
		{codeNotInt, "the value is no integer, or the result would be none", "`-ERR value is not an integer or out of range`"},
		{codeLimit, "there are as many as there may be", "`-ERR`"},
		{codeContext, "not possible where the command is called from", "`-ERR`"},
	} {
		row(fmt.Sprintf("`%d`", c.code), c.meaning, c.text)
	}
	b.WriteString(docsReturn)
	for _, l := range [][3]string{
		{"Time of one call, waiting for keys not counted", "`plugin-max-time`", "trap"},
		{"Compiling a module, in a process of its own", "`plugin-max-compile-time`", "refused"},
		{"Fuel of one call, about one instruction a unit", "`limits.fuel` of the manifest", "trap"},
		{"Memory of an instance", "`plugin-max-memory-pages`, `limits.memory_pages`", "`memory.grow` returns -1"},
		{"Instances of a module", "`plugin-max-instances`, `limits.instances`", "callers wait for `plugin-max-time`, then get `-PLUGINERR`"},
		{"Calls within the guest", "nested about 1,000 deep", "trap"},
		{"Values written by one call", fmt.Sprintf("%d MiB", maxWritten>>20), "trap"},
		{"A reply", fmt.Sprintf("%d MiB", maxReplied>>20), "trap"},
		{"Elements of an aggregate reply", fmt.Sprintf("%d; of a map as many pairs", maxReplies), "trap"},
		{"Aggregates within each other", fmt.Sprintf("%d", maxNesting), "trap"},
		{"Replies of called commands that are open", fmt.Sprintf("%d, %d MiB together", maxCalled, maxCallBytes>>20), "`-105`; the called command fails"},
		{"Plugin commands within each other", fmt.Sprintf("%d", maxDepth), "`-106`"},
		{"Timers of a module, those due and not yet delivered included", fmt.Sprintf("%d", maxTimers), "`-105`"},
		{"Keys bound to clients by a module", fmt.Sprintf("%d", maxBound), "`-105`"},
		{"Events that wait for a module", fmt.Sprintf("%d", maxQueued), "dropped and counted"},
		{"Lines in the log", fmt.Sprintf("%d a call, of %d bytes", maxLogLines, maxLogLine), "dropped"},
	} {
		row(l[0], l[1], l[2])
	}
	for i, subject := range abiFunctions() {
		b.WriteString("\n" + docsSubjects[i])
		for _, f := range subject {
			fmt.Fprintf(&b, "\n### %s\n\n    %s\n    wasm type %s\n\n%s\n", f.name, f.usage, signature(f.params, f.results), f.doc)
			if f.memory != "" {
				b.WriteString("\n    " + strings.ReplaceAll(strings.Trim(f.memory, "\n"), "\n", "\n    ") + "\n")
			}
		}
	}
	b.WriteString(docsWASI)
	return b.String()
}

const docsWASI = `
## WASI

Toolchains such as Go's import ` + "`wasi_snapshot_preview1`" + `. latchkey has all of its functions, and gives nothing away: there are no
files, no network, no environment and no arguments, and what asks for them fails with an error. Standard output and error go
to the server's log, line by line, within the bounds of ` + "`log`" + `. ` + "`random_get`" + ` is ` + "`random`" + `. The wall clock is ` + "`now_ms`" + ` during a call;
the monotonic clock is the instance's own: it moves on by a nanosecond each time it is read, and by every sleep, which takes
no time at all, since others wait for the keys of the call. ` + "`proc_exit`" + ` traps. These may be called at any time, in
` + "`_initialize`" + ` too.
`

// docsSubjects head the subjects of abiFunctions, in their order.
var docsSubjects = [...]string{
	`## Keys

A command reaches the keys that its manifest declares among its arguments, and of these the ones with a prefix that
` + "`capabilities`" + ` grants, for reading or writing. For any other key every function returns -101, and nothing is read
or written. What was written can be read in the same call; others see it when the command commits.
`,
	`## The state of a key

A key may hold a value that only the module can read: bytes, and a number that says how they are encoded. It has a time
to live and is deleted, renamed and copied as any other; its type is called as the module. The functions below work on keys
that the command declares and the manifest grants.
`,
	`## The state of the module

What a module must remember beside its keys: bytes, and the number of their encoding, in one key of a name that is reserved,
` + "`latchkey:module:NAME`" + ` in database 0. The manifest asks for it with ` + "`\"state\": \"read\"` or `\"write\"`" + ` in its capabilities, and
says less for single commands; what is not flagged ` + "`write`" + ` reads at most. Commands that use the state hold it from begin to end,
as a key that they declare, and so run one after the other: keep in keys what can be kept there.
`,
	`## Calling commands

A module calls the commands that ` + "`capabilities.commands`" + ` names, on keys that it declares and that are granted, for writing unless
the command only reads them. Scripts (EVAL) and commands of other plugins can be called; what a script calls is judged in the
same way. ` + "`block`" + ` is not possible within.
`,
	`## The reply

Given in order, elements after the aggregate that holds them. Bytes are copied. Too many replies trap. There are
all kinds of RESP3 but the push, which is no reply: PUBLISH, called, is how a plugin sends one.
`,
	`## Waiting, and clients that go
`,
	`## Timers and events
`,
	`## The call
`,
}
