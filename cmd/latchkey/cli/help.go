package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/resp"
)

const helpText = `latchkey cli: type a command with its arguments, or
      help COMMAND    what a command does and takes, from the server
      help @GROUP     the commands of a group: help @string
      N COMMAND       run a command N times
      connect H P     talk to the server at host H, port P
      clear           clear the screen
      quit            leave; Ctrl-D does too
Ctrl-C ends a command that waits, and SUBSCRIBE and MONITOR.
`

// commandDoc is what COMMAND DOCS says about a command.
type commandDoc struct {
	name                  string // as written: "CONFIG GET"
	summary, since, group string
	args                  []resp.Value
	subcommands           []commandDoc
}

func isHelp(args []string) bool {
	return strings.EqualFold(args[0], "help") || args[0] == "?"
}

// help prints the help for a command or a group, or the general one.
func (s *session) help(args []string) error {
	if len(args) == 0 {
		s.out.WriteString(helpText)
		return s.out.Flush()
	}
	if err := s.ready(); err != nil {
		return err
	}
	subject := strings.ToUpper(strings.Join(args, " "))
	ask := []string{"COMMAND", "DOCS"}
	group, byGroup := strings.CutPrefix(strings.ToLower(subject), "@")
	if !byGroup {
		ask = append(ask, strings.ToLower(strings.Join(args, "|")))
	}
	stop := s.watch()
	reply, err := s.conn.call(ask...)
	if stop() {
		return errInterrupted
	}
	if err != nil {
		return s.lost(err)
	}
	if text, failed := errorText(reply); failed {
		return fmt.Errorf("no help: the server answered COMMAND DOCS with %s", text)
	}
	docs := parseDocs(reply)
	if byGroup {
		docs = slices.DeleteFunc(docs, func(d commandDoc) bool { return d.group != group })
	}
	if len(docs) == 0 {
		fmt.Fprintf(s.out, "No help for %s: the server knows no such command or group.\n", subject)
	}
	for _, d := range docs {
		s.printDoc(d)
	}
	if len(docs) > 0 {
		s.out.WriteString("\n")
	}
	return s.out.Flush()
}

func (s *session) printDoc(d commandDoc) {
	bold, grey, yellow, plain := "", "", "", ""
	if s.color {
		bold, grey, yellow, plain = "\x1b[1m", "\x1b[90m", "\x1b[33m", "\x1b[0m"
	}
	fmt.Fprintf(s.out, "\n  %s%s%s", bold, d.name, plain)
	if len(d.args) > 0 {
		fmt.Fprintf(s.out, " %s%s%s", grey, syntax(d.args, " "), plain)
	}
	s.out.WriteString("\n")
	for _, field := range [...][2]string{{"summary", d.summary}, {"since", d.since}, {"group", d.group}} {
		if field[1] != "" {
			fmt.Fprintf(s.out, "  %s%s:%s %s\n", yellow, field[0], plain, field[1])
		}
	}
	for _, sub := range d.subcommands {
		s.printDoc(sub)
	}
}

// parseDocs reads a reply of COMMAND DOCS: names and descriptions in turn,
// sorted by name. What it does not understand it leaves out.
func parseDocs(v resp.Value) []commandDoc {
	var docs []commandDoc
	eachPair(v, func(name string, fields resp.Value) {
		d := commandDoc{name: strings.ToUpper(strings.ReplaceAll(name, "|", " "))}
		eachPair(fields, func(field string, value resp.Value) {
			switch field {
			case "summary":
				d.summary = value.String()
			case "since":
				d.since = value.String()
			case "group":
				d.group = value.String()
			case "arguments":
				d.args = value.Array()
			case "subcommands":
				d.subcommands = parseDocs(value)
			}
		})
		docs = append(docs, d)
	})
	slices.SortFunc(docs, func(a, b commandDoc) int { return strings.Compare(a.name, b.name) })
	return docs
}

// eachPair calls f for each name and value of a map as RESP2 writes it.
func eachPair(v resp.Value, f func(name string, value resp.Value)) {
	a := v.Array()
	for i := 0; i+1 < len(a); i += 2 {
		f(a[i].String(), a[i+1])
	}
}

// syntax writes arguments the way Redis's documentation does:
// key [NX | XX] [EX seconds | KEEPTTL] [element ...].
func syntax(args []resp.Value, separator string) string {
	parts := make([]string, len(args))
	for i, arg := range args {
		parts[i] = argumentSyntax(arg)
	}
	return strings.Join(parts, separator)
}

func argumentSyntax(arg resp.Value) string {
	var name, kind, token, text string
	var hasToken, optional, multiple, repeatsToken bool
	var inner []resp.Value
	eachPair(arg, func(field string, value resp.Value) {
		switch field {
		case "name":
			name = value.String()
		case "display_text":
			text = value.String()
		case "type":
			kind = value.String()
		case "token":
			token, hasToken = value.String(), true
		case "arguments":
			inner = value.Array()
		case "flags":
			for _, flag := range value.Array() {
				switch flag.String() {
				case "optional":
					optional = true
				case "multiple":
					multiple = true
				case "multiple_token":
					repeatsToken = true
				}
			}
		}
	})
	if hasToken && token == "" {
		token = `""`
	}
	if text == "" {
		text = name
	}
	switch kind {
	case "pure-token":
		text, hasToken = token, false
	case "oneof":
		text = syntax(inner, " | ")
		if !optional || multiple || hasToken {
			text = "<" + text + ">"
		}
	case "block":
		text = syntax(inner, " ")
	}
	one := text
	if hasToken {
		one = token + " " + text
	}
	again := text
	if repeatsToken {
		again = one
	}
	if multiple {
		one += " [" + again + " ...]"
	}
	if optional {
		one = "[" + one + "]"
	}
	return one
}
