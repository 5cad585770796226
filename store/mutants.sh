#!/bin/sh
# Proves that the tests of the store see what they are for: built without key
# locks, without undo, without undo at a promotion, when changes or expiry wake
# nobody, and when the gate stays closed for a slow transaction, the suite must
# fail, and by its own words.
set -u
cd "$(dirname "$0")/.." || exit 1
. store/mutant.sh
for tag in mutant_keylock mutant_undo mutant_promote mutant_wake mutant_expiry mutant_gate; do
	mutant $tag ./store '^TestStore$' '--- FAIL: TestStore/.*/' -rapid.nofailfile
done
exit $status
