#!/bin/sh
# Proves that the tests see what they are for: built with libraries that can be
# written to, the hostile corpus must fail, and built with states that are used
# again after an abnormal end, TestSpoiledStates must; each by its own words.
set -u
cd "$(dirname "$0")/.." || exit 1
. store/mutant.sh
mutant mutant_library ./scripting '^TestHostileCorpus$/^vm$/^poison$' 'another world\|a fresh world shows'
for engine in vm closures; do
	mutant mutant_spoiled ./scripting "^TestSpoiledStates\$/^$engine\$" 'runs on the state of one that ended so'
done
exit $status
