package histories

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMutantsAreCaught shows that the tests of this package can fail: each runs
// against a store that lacks a guarantee, left out by a build tag, and must find
// a history that no lock could have had, or somebody who starves. It compiles the
// server several times, so it runs when LATCHKEY_MUTANTS=1 asks for it: make
// mutants, which CI calls.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("LATCHKEY_MUTANTS") != "1" {
		t.Skip("runs with LATCHKEY_MUTANTS=1: it builds the server with each mutant")
	}
	const history = "is not linearizable"
	tests := []struct{ tag, what, run, says string }{
		{"mutant_keylock", "key locks are not taken", "TestReleaseByScript", history},
		{"mutant_keylock", "key locks are not taken", "TestCounterByScript", history},
		{"mutant_keylock", "key locks are not taken", "TestManyKeysAsOne", history},
		{"mutant_undo", "rollback restores nothing", "TestReleaseByScript", history},
		{"mutant_undo", "rollback restores nothing", "TestRefusedByLog", history},
		{"mutant_gate", "the gate stays closed until a slow script has ended", "TestNobodyStarvesBesideFlush", "a sender was answered -BUSY"},
	}
	for _, tt := range tests {
		t.Run(tt.tag+"/"+tt.run, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-tags", tt.tag, "-run", "^"+tt.run+"$", ".").CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("%s passes although %s", tt.run, tt.what)
			case !bytes.Contains(out, []byte(tt.says)):
				t.Errorf("%s with -tags %s failed for another reason than %q: %v\n%s", tt.run, tt.tag, tt.says, err, out)
			default:
				t.Logf("caught: %s", bytes.TrimSpace(out))
			}
		})
	}
}
