#!/bin/sh
# Proves that the tests see what they are for: built with libraries that can be
# written to, the hostile corpus must fail, and built with states that are used
# again after an abnormal end, TestSpoiledStates must; each by its own words.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
mutant() { # mutant TAG TEST WORDS
	out=$(go test -count=1 -tags "$1" -run "$2" ./scripting 2>&1)
	if [ $? -eq 0 ]; then
		echo "$1: the tests pass, though they must not" >&2
		status=1
	elif ! printf '%s\n' "$out" | grep -q -e "$3"; then
		printf '%s: no test says "%s", but:\n%s\n' "$1" "$3" "$out" >&2
		status=1
	else
		echo "$1: caught"
	fi
}
mutant mutant_library '^TestHostileCorpus$/^vm$/^poison$' 'another world\|a fresh world shows'
for engine in vm closures; do
	mutant mutant_spoiled "^TestSpoiledStates\$/^$engine\$" 'runs on the state of one that ended so'
done
exit $status
