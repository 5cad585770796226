#!/bin/sh
# Proves that the tests of foreseen answers see what they are for: built so that what
# a foreseen answer does comes too late, or not at all, they must fail.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
for mutant in mutant_settle mutant_answered; do
	out=$(go test -count=1 -short -tags "$mutant" -run '^TestForeseen$' ./plugins 2>&1)
	if [ $? -eq 0 ]; then
		echo "$mutant: the tests pass, though they must not" >&2
		status=1
	elif ! printf '%s\n' "$out" | grep -q -e '--- FAIL: TestForeseen'; then
		printf '%s: no test failed, but:\n%s\n' "$mutant" "$out" >&2
		status=1
	else
		echo "$mutant: caught"
	fi
done
exit $status
