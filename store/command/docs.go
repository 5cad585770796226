package command

import (
	"fmt"
	"slices"
	"strings"
)

// docGroups are the groups in the order in which docs/COMMANDS.md has them,
// with their headings. Groups that stand not here follow.
var docGroups = []struct{ name, heading string }{
	{"string", "Strings"},
	{"bitmap", "Bits"},
	{"list", "Lists"},
	{"set", "Sets"},
	{"generic", "Keys and databases"},
	{"transactions", "Transactions"},
	{"scripting", "Scripts"},
	{"pubsub", "Publish and subscribe"},
	{"connection", "Connections"},
	{"server", "Server"},
	{"cluster", "Cluster"},
}

// Docs is docs/COMMANDS.md: every command of the table by its group, with how it
// differs from Redis's.
func Docs(t *Table) string {
	groups := make(map[string][]*Spec)
	for _, s := range t.All() {
		groups[s.Group] = append(groups[s.Group], s)
	}
	var b strings.Builder
	b.WriteString("# Commands\n\n" +
		"For whoever writes a client of latchkey. This page is generated from the command table.\n\n" +
		"Commands behave as in Redis 7.2 except where a line says *Differs*. Within a\n" +
		"transaction or a script a command that fails changes nothing.\n")
	section := func(heading string, specs []*Spec) {
		fmt.Fprintf(&b, "\n## %s\n", heading)
		for _, s := range specs {
			s.doc(&b)
		}
	}
	for _, g := range docGroups {
		if specs := groups[g.name]; len(specs) != 0 {
			section(g.heading, specs)
			delete(groups, g.name)
		}
	}
	var rest []string
	for name := range groups {
		rest = append(rest, name)
	}
	slices.Sort(rest)
	for _, name := range rest {
		section(strings.ToUpper(name[:min(1, len(name))])+name[min(1, len(name)):], groups[name])
	}
	return b.String()
}

// doc writes the entry of a command, and those of its sub-commands below it.
func (s *Spec) doc(b *strings.Builder) {
	name := strings.ToUpper(strings.ReplaceAll(s.fullName, "|", " "))
	if s.parent == nil {
		fmt.Fprintf(b, "\n### %s\n\n", name)
	} else {
		fmt.Fprintf(b, "\n#### %s\n\n", name)
	}
	if len(s.Sub) == 0 || s.Handler != nil {
		fmt.Fprintf(b, "    %s\n\n", strings.TrimSpace(name+" "+s.Syntax))
	}
	b.WriteString(s.Summary)
	if s.Since != "" {
		fmt.Fprintf(b, " Since %s.", s.Since)
	}
	if s.Complexity != "" && len(s.Sub) == 0 {
		fmt.Fprintf(b, " %s.", strings.TrimSuffix(s.Complexity, "."))
	}
	b.WriteString("\n")
	if c := s.categories().Names(); len(s.Sub) == 0 && len(c) != 0 {
		fmt.Fprintf(b, "\nACL categories: @%s.\n", strings.Join(c, ", @"))
	}
	if s.Differs != "" {
		fmt.Fprintf(b, "\n*Differs:* %s\n", s.Differs)
	}
	for _, sub := range s.Sub {
		sub.doc(b)
	}
}
