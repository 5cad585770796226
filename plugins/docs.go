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
` + "`_initialize`" + `, a function without parameters, runs before ` + "`lk_abi`" + ` if it is exported: toolchains make it. Host
functions can be called during ` + "`lk_command`" + ` and ` + "`lk_arena`" + ` for a command, and trap at any other time.

## The frame

Before each command latchkey writes the arguments as one block into the arena, 8-aligned:

    offset  0       4       8          12        16    20           16+8i  20+8i
            +-------+-------+----------+---------+-----+-----+-- --+------+------+--------------------
            | argc  | nkeys | first_key| 0       | ptr | len | ... | ptr  | len  | bytes of arguments
            +-------+-------+----------+---------+--|--+-----+-- --+------+------+-^------------------
                                                    |      argument 0, the name    |
                                                    +------------------------------+

` + "`argc`" + ` counts the command's name. ` + "`nkeys`" + ` is how many of the arguments are keys by the manifest, ` + "`first_key`" + ` the
index of the first of them, 0 without any. Every ` + "`ptr`" + ` points into the frame. The frame is the guest's until
` + "`lk_command`" + ` returns: it may write to it. The next command overwrites it.

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
been used.

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
		return "lk_arena(size) -> i32", "For the first command of an instance, and when a frame outgrows the room. Returns the address of size bytes, 8-aligned, that latchkey may overwrite at each command; 0 if there is no room, which traps."
	case "lk_command":
		return "lk_command(id, argc, frame) -> i32", "For each command: the id its manifest gives it, the number of arguments, the address of the frame. Returns 0 or an error."
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
	b.WriteString(docsFrame)
	for _, c := range []struct {
		code          int
		meaning, text string
	}{
		{codeNil, "there is no such key, where a function says so", "`-PLUGINERR`, as any other number"},
		{codeWrongType, "the key holds a value of another type", "`-WRONGTYPE`"},
		{codeDenied, "the command does not declare the key, or the manifest does not grant its prefix", "`-NOPERM`"},
		{codeOOM, "maxmemory is reached", "`-OOM`"},
		{codeInvalid, "an argument is out of range", "`-ERR invalid argument`"},
	} {
		row(fmt.Sprintf("`%d`", c.code), c.meaning, c.text)
	}
	b.WriteString(docsReturn)
	for _, l := range [][3]string{
		{"Time of one call, waiting for keys not counted", "`plugin-max-time`", "trap"},
		{"Fuel of one call, about one instruction a unit", "`limits.fuel` of the manifest", "trap"},
		{"Memory of an instance", "`plugin-max-memory-pages`, `limits.memory_pages`", "`memory.grow` returns -1"},
		{"Instances of a module", "`plugin-max-instances`, `limits.instances`", "callers wait for `plugin-max-time`, then get `-PLUGINERR`"},
		{"Calls within the guest", "nested about 1,000 deep", "trap"},
		{"Values written by one call", fmt.Sprintf("%d MiB", maxWritten>>20), "trap"},
		{"A reply", fmt.Sprintf("%d MiB", maxReplied>>20), "trap"},
		{"Elements of an aggregate reply", fmt.Sprintf("%d; of a map as many pairs", maxReplies), "trap"},
		{"Aggregates within each other", fmt.Sprintf("%d", maxNesting), "trap"},
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
	return b.String()
}

// docsSubjects head the subjects of abiFunctions, in their order.
var docsSubjects = [...]string{
	`## Keys

A command reaches the keys that its manifest declares among its arguments, and of these the ones with a prefix that
` + "`capabilities`" + ` grants, for reading or writing. For any other key every function returns -101, and nothing is read
or written. What was written can be read in the same call; others see it when the command commits.
`,
	`## The reply

Given in order, elements after the aggregate that holds them. Bytes are copied. Too many replies trap.
`,
	`## The call
`,
}
