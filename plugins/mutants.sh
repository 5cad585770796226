#!/bin/sh
# Proves that the tests of foreseen answers see what they are for: built so that what
# a foreseen answer does comes too late, or not at all, they must fail.
set -u
cd "$(dirname "$0")/.." || exit 1
. store/mutant.sh
for tag in mutant_settle mutant_answered; do
	mutant $tag ./plugins '^TestForeseen$' '--- FAIL: TestForeseen' -short
done
exit $status
