package command

import "strings"

// HelpSpec is the HELP sub-command of a container: it prints the container's
// Help lines in Redis's frame.
func HelpSpec(container, since string) *Spec {
	return &Spec{
		Name: "help", Arity: 2, Flags: Loading | Stale, Access: Free, Handler: help,
		Group: "generic", Since: since, Complexity: "O(1)",
		Summary: "Prints the sub-commands of " + strings.ToUpper(container) + ".",
	}
}

func help(c *Call) {
	container := c.Spec.parent
	lines := container.Help
	c.Reply.Array(len(lines) + 3)
	c.Reply.Status(strings.ToUpper(container.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, l := range lines {
		c.Reply.Status(l)
	}
	c.Reply.Status("HELP")
	c.Reply.Status("    Print this help.")
}
