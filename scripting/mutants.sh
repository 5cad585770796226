#!/bin/sh
# Proves that the hostile corpus sees what it is for: built with libraries that
# can be written to it must fail, and by its own words.
set -u
cd "$(dirname "$0")/.." || exit 1
out=$(go test -count=1 -tags mutant_library -run '^TestHostileCorpus$/^vm$/^poison$' ./scripting 2>&1)
if [ $? -eq 0 ]; then
	echo "mutant_library: the tests pass, though they must not" >&2
	exit 1
elif ! printf '%s\n' "$out" | grep -q -e 'another world' -e 'a fresh world shows'; then
	printf 'mutant_library: no script left another world, but:\n%s\n' "$out" >&2
	exit 1
fi
echo "mutant_library: caught"
