package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// TestCommandsPage keeps docs/COMMANDS.md as the table of all rooms together
// says. LATCHKEY_UPDATE=1 writes it anew.
func TestCommandsPage(t *testing.T) {
	const path = "../../docs/COMMANDS.md"
	table, err := allCommands()
	if err != nil {
		t.Fatal(err)
	}
	want := command.Docs(table)
	if os.Getenv("LATCHKEY_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the command table says; rewrite it with LATCHKEY_UPDATE=1 (-table +page):\n%s", path, diff)
	}
}
