# Sourced by the mutants.sh of each room.
#
# mutant TAG PACKAGE TEST WORDS [FLAG...]: built with the tag, the test must fail, and
# say the words. Sets status to 1 if it does not.
status=0
mutant() {
	tag=$1 package=$2 test=$3 words=$4
	shift 4
	if out=$(go test -count=1 -tags "$tag" -run "$test" "$package" "$@" 2>&1); then
		echo "$tag: the tests pass, though they must not" >&2
		status=1
	elif ! printf '%s\n' "$out" | grep -q -e "$words"; then
		printf '%s: no test says "%s", but:\n%s\n' "$tag" "$words" "$out" >&2
		status=1
	else
		echo "$tag: caught, $(printf '%s\n' "$out" | grep -c -e "$words") times"
	fi
}
