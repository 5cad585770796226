package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestNode installs the packages of node/package-lock.json into a folder of its own and runs node/smoke.mjs there,
// against three servers.
func TestNode(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil {
		message := "npm is not installed (Debian package npm): ioredis, node-redis and redlock are not tried"
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal(message)
		}
		// It may: who tries the Go clients need not have Node.
		t.Skip(message)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for _, name := range []string{".npmrc", "package.json", "package-lock.json", "smoke.mjs"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	install := exec.CommandContext(ctx, npm, "ci", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci, which needs the registry or npm's cache: %v\n%s", err, out)
	}
	smoke := exec.CommandContext(ctx, "node", "smoke.mjs", start(t).Addr, start(t).Addr, start(t).Addr)
	smoke.Dir = dir
	out, err := smoke.CombinedOutput()
	if err != nil {
		t.Fatalf("node smoke.mjs: %v\n%s", err, out)
	}
	t.Logf("node smoke.mjs:\n%s", out)
}
