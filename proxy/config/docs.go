package config

import (
	"fmt"
	"strings"
)

const docsHead = `# Configuration

For whoever runs latchkey. Generated from the directive table in ` + "`proxy/config`" + `; do not edit it by hand.

latchkey is configured with the directives of redis.conf under their Redis names, and some of its own. They are read
from a file, from standard input and from the command line, in this order; what is read later wins:

    latchkey serve lk.conf --port 7000 --own 'lock:*' --own 'db3/session:*'
    latchkey serve - < lk.conf

A line of the file is a directive and its values, separated by blanks; "double" and 'single' quotes keep blanks
together; a line that begins with # is a comment. On the command line a directive begins with ` + "`--`" + ` and its values reach
to the next one. Memory sizes may be written with a unit: 1k is 1,000 bytes, 1kb 1,024, and so on with m, mb, g, gb.

A directive that is not known, or a value it does not take, ends the start with its file and line. A file may have 1 MiB,
a line 64 KiB.

CONFIG GET shows the values, CONFIG SET changes those marked "yes" below for as long as the program runs, all of its
parameters or none, and CONFIG REWRITE writes them to the file. "Protected" ones need enable-protected-configs.
`

const docsNoEffect = `
Tools, libraries and configuration files set these because Redis has them. They are accepted, kept and shown, and can be
changed where Redis allows it. Nothing in latchkey depends on them.
`

const docsTail = `
Files may also have ` + "`list-max-ziplist-entries`, `list-max-ziplist-value` and `lua-replicate-commands`" + `, which Redis, too, reads and
forgets, and ` + "`module.parameter value`" + ` lines, which are kept for the module of that name.
`

// Docs returns docs/CONFIG.md: the table as a page of Markdown.
func Docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	group := ""
	table := directives()
	for i := range table {
		d := &table[i]
		if d.Group != group {
			group = d.Group
			fmt.Fprintf(&b, "\n## %s\n", group)
			if d.Ignored {
				b.WriteString(docsNoEffect)
			}
			b.WriteString("\n| Directive | Takes | Default | CONFIG SET | Meaning |\n|---|---|---|---|---|\n")
		}
		name := "`" + d.Name + "`"
		for _, alias := range d.Aliases {
			name += ", `" + alias + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, cell(d.Takes()), docsDefault(d), docsMutable(d), cell(d.Summary))
	}
	b.WriteString(docsTail)
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func docsDefault(d *Directive) string {
	switch {
	case d.Kind == Lines:
		return "none"
	case d.Kind == Dir:
		return "where it was started"
	case d.Default == "":
		return "`\"\"`"
	case d.Kind == Memory && d.Default != "0":
		v, err := d.parse([]string{d.Default}, nil)
		if err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", d.Name, err))
		}
		return "`" + shortMemory(v.num) + "`"
	}
	return "`" + d.Default + "`"
}

func docsMutable(d *Directive) string {
	switch {
	case d.Kind == Lines:
		return "not shown"
	case d.Unsupported != "":
		return "default only"
	case d.Protected:
		return "protected"
	case d.Mutable:
		return "yes"
	}
	return "no"
}
