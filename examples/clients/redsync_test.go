package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-redsync/redsync/v4" // pins the version whose tests run here
	_ "github.com/stvp/tempredis"        // and what they start servers with
)

const (
	redsync        = "github.com/go-redsync/redsync/v4"
	redsyncServers = 48
)

// TestRedsync runs redsync's own tests, which start 48 servers by the name of redis-server: here a link to the
// program under test. It takes a minute, so -short skips it, but not with LATCHKEY_CI=1.
func TestRedsync(t *testing.T) {
	if testing.Short() && os.Getenv("LATCHKEY_CI") != "1" {
		// It may: -short is asked for by hand only, to be done within seconds.
		t.Skip("starts 48 servers and waits for locks to expire: a minute")
	}
	dir := t.TempDir()
	if err := os.Symlink(program.Path, filepath.Join(dir, "redis-server")); err != nil {
		t.Fatal(err)
	}
	// The system gives redsync's ports to whoever connects to something, and then they are taken.
	changes := map[string]string{"51200": strconv.Itoa(freePorts(t, redsyncServers))}
	var out, errOut bytes.Buffer
	test := exec.Command("go", "test", "-count=1", "-timeout=120s", "-json", "-modfile="+changed(t, dir, changes), redsync)
	test.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	test.Stdout, test.Stderr = &out, &errOut
	// A panic in there leaves servers behind; being one process group, they can be ended together.
	test.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	test.WaitDelay = 10 * time.Second
	must(t, test.Start())
	err := test.Wait()
	if kill := syscall.Kill(-test.Process.Pid, syscall.SIGKILL); kill != nil && !errors.Is(kill, syscall.ESRCH) {
		t.Error(kill)
	}

	passed := map[string]int{}
	var printed strings.Builder
	for dec := json.NewDecoder(&out); ; {
		var event struct{ Action, Test, Output string }
		if dec.Decode(&event) != nil {
			break
		}
		printed.WriteString(event.Output)
		if event.Action == "pass" {
			family, _, sub := strings.Cut(event.Test, "/")
			if sub {
				passed[family]++
			}
		}
	}
	if err != nil {
		t.Fatalf("redsync's tests: %v\n%s%s", err, &printed, &errOut)
	}
	// What passed is counted, lest a version which renames its tests passes for doing nothing.
	for name, clients := range map[string]int{
		"TestRedsync": 6, "TestMutex": 6, "TestTryLock": 6, "TestMutexAlreadyLocked": 6, "TestMutexExtend": 6,
		"TestMutexExtendExpired": 6, "TestMutexUnlockExpired": 6, "TestMutexQuorum": 6, "TestValid": 6,
		"TestMutexLockUnlockSplit": 6, "TestSetNXOnExtendAcquiresLockWhenKeyIsExpired": 6,
		"TestSetNXOnExtendFailsToAcquireLockWhenKeyIsTaken": 6, "TestScripts_Hash": 3,
	} {
		if passed[name] < clients {
			t.Errorf("redsync's %s passed %d times, want %d; it printed:\n%s", name, passed[name], clients, &printed)
		}
	}
}

// freePorts returns the first of n ports in a row that nobody listens on, below those that the system gives away.
func freePorts(t *testing.T, n int) int {
	t.Helper()
next:
	for first := 21200; first < 30000; first += n {
		for port := first; port < first+n; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
			if err != nil {
				continue next
			}
			must(t, l.Close())
		}
		return first
	}
	t.Fatalf("no %d free ports in a row between 21200 and 30000", n)
	return 0
}

// changed copies redsync into dir, makes the changes in redsync_test.go, and returns a go.mod that points there.
func changed(t *testing.T, dir string, changes map[string]string) string {
	t.Helper()
	source, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", redsync).Output()
	must(t, err)
	module := filepath.Join(dir, "redsync")
	must(t, os.CopyFS(module, os.DirFS(strings.TrimSpace(string(source)))))
	file := filepath.Join(module, "redsync_test.go")
	read, err := os.ReadFile(file)
	must(t, err)
	text := string(read)
	for from, to := range changes {
		if !strings.Contains(text, from) {
			t.Fatalf("redsync_test.go does not contain %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	must(t, os.Remove(file)) // the module cache is read-only, and so is its copy
	must(t, os.WriteFile(file, []byte(text), 0o644))

	root, err := os.Getwd()
	must(t, err)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	mod := filepath.Join(dir, "go.mod")
	edit := exec.Command("go", "mod", "edit", "-replace="+redsync+"="+module,
		"-replace=github.com/stvp/tempredis="+filepath.Join(root, "tempredis"), mod)
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", edit.Args, err, out)
	}
	return mod
}
