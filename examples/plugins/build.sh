#!/bin/sh
# Builds the example plugins and compares them with the modules in the tree.
#
#   examples/plugins/build.sh           build, and fail if a module differs
#   examples/plugins/build.sh update    build, and replace the modules
#
# The modules in the tree were made by the tools of Debian 12, which are clang 14 and
# wabt 1.0.32, and by Go 1.26.8. Others may give other bytes, and modules that work as well. A missing
# tool skips what it would build, except with LATCHKEY_CI=1.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
mode=${1:-check}
case $mode in
check | update) ;;
*)
	echo "usage: $0 [check|update]" >&2
	exit 2
	;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
go_version=go1.26.8

# have PROGRAM PACKAGE MODULE: whether the module can be built.
have() {
	command -v "$1" >/dev/null && return 0
	if [ "${LATCHKEY_CI:-}" = 1 ]; then
		echo "$3: $1 not found: install the Debian package $2" >&2
		failed=1
	else
		echo "$3: skipped, $1 not found: install the Debian package $2"
	fi
	return 1
}

# finish MODULE: compares $tmp/out.wasm with the module, or replaces it.
finish() {
	if [ "$mode" = update ]; then
		cat "$tmp/out.wasm" >"$1"
		echo "$1: written"
	elif cmp -s "$tmp/out.wasm" "$1"; then
		echo "$1: as built"
	else
		echo "$1: differs from what its source builds to; run examples/plugins/build.sh update" >&2
		failed=1
	fi
}

# c NAME BYTES: the plugin in C, with that much memory to begin with.
c() {
	have clang clang "$1/c/$1.wasm" && have wasm-ld lld "$1/c/$1.wasm" || return 0
	(cd "$1" && clang --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib \
		-mcpu=mvp -mbulk-memory -Wl,--no-entry -Wl,-z,stack-size=16384 \
		-Wl,--initial-memory="$2" -Wl,--strip-all \
		-I "$root/plugins/sdk/c" "c/$1.c" -o "$tmp/out.wasm")
	finish "$1/c/$1.wasm"
}

# go_plugin NAME: the plugin in Go, with the manifest that it prints.
go_plugin() {
	version=$(go env GOVERSION)
	if [ "$version" != "$go_version" ]; then
		if [ "${LATCHKEY_CI:-}" = 1 ]; then
			echo "$1/go/$1.wasm: built by $go_version, this is $version" >&2
			failed=1
		else
			echo "$1/go/$1.wasm: skipped, it was built by $go_version and this is $version"
		fi
		return 0
	fi
	(cd "$1/go" && go run . >"$tmp/manifest.json" &&
		GOOS=wasip1 GOARCH=wasm go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o "$tmp/plain.wasm" .)
	pack "$tmp/plain.wasm" "$tmp/manifest.json"
	finish "$1/go/$1.wasm"
}

wat() {
	have wat2wasm wabt "$1/wat/$1.wasm" || return 0
	wat2wasm "$1/wat/$1.wat" -o "$tmp/plain.wasm"
	pack "$tmp/plain.wasm" "$1/wat/manifest.json"
	finish "$1/wat/$1.wasm"
}

# pack MODULE MANIFEST: puts the manifest into the module, as $tmp/out.wasm.
pack() {
	[ -x "$tmp/latchkey" ] || (cd "$root" && go build -o "$tmp/latchkey" ./cmd/latchkey)
	"$tmp/latchkey" plugin pack "$1" "$2" "$tmp/out.wasm" >/dev/null
}

# The conformance guest, which pins the ABI.
abitest() {
	dir=$root/plugins/abitest
	have wat2wasm wabt plugins/abitest/abitest.wasm || return 0
	wat2wasm "$dir/abitest.wat" -o "$tmp/plain.wasm"
	pack "$tmp/plain.wasm" "$dir/manifest.json"
	finish "$dir/abitest.wasm"
}

abitest
wat cad
for name in cad fairlock ratelimit bloom; do
	memory=131072
	[ "$name" = bloom ] && memory=2097152
	c "$name" "$memory"
	go_plugin "$name"
done
exit $failed
