#!/bin/sh
# Proves that the tests of the store see what they are for: built without key
# locks, without undo, without undo at a promotion, when changes or expiry wake
# nobody, and when the gate stays closed for a slow transaction, the suite must
# fail, and by its own words.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
for mutant in mutant_keylock mutant_undo mutant_promote mutant_wake mutant_expiry mutant_gate; do
	out=$(go test -count=1 -tags "$mutant" -run '^TestStore$' ./store -rapid.nofailfile 2>&1)
	if [ $? -eq 0 ]; then
		echo "$mutant: the tests pass, though they must not" >&2
		status=1
	elif ! printf '%s\n' "$out" | grep -q -e '--- FAIL: TestStore/'; then
		printf '%s: no test failed, but:\n%s\n' "$mutant" "$out" >&2
		status=1
	else
		echo "$mutant: caught by" "$(printf '%s\n' "$out" | grep -c -e '--- FAIL: TestStore/.*/')" "tests"
	fi
done
exit $status
