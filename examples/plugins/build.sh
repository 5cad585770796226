#!/bin/sh
# Builds the example plugins and compares them with the modules in the tree.
#
#   examples/plugins/build.sh           build, and fail if a module differs
#   examples/plugins/build.sh update    build, and replace the modules
#
# The modules in the tree were made by the tools of Debian 12, which are clang 14,
# wabt 1.0.32 and rustc 1.63, by Go 1.26.8, and by the AssemblyScript compiler that npm installs as
# plugins/sdk/assemblyscript/package-lock.json says. Others may give other bytes, and modules that work as well. A missing
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

# skip MODULE WHY: the module cannot be built here.
skip() {
	if [ "${LATCHKEY_CI:-}" = 1 ]; then
		echo "$1: $2" >&2
		failed=1
	else
		echo "$1: skipped, $2"
	fi
}

# have PROGRAM PACKAGE MODULE: whether the module can be built.
have() {
	command -v "$1" >/dev/null && return 0
	skip "$3" "$1 not found: install the Debian package $2"
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
		skip "$1/go/$1.wasm" "it was built by $go_version and this is $version"
		return 0
	fi
	(cd "$1/go" && go run . >"$tmp/manifest.json" &&
		GOOS=wasip1 GOARCH=wasm go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o "$tmp/plain.wasm" .)
	pack "$tmp/plain.wasm" "$tmp/manifest.json"
	finish "$1/go/$1.wasm"
}

# The Go SDK's trial: a plugin that calls what the examples do not. Its unit tests are run as those of any Go module.
go_tests() {
	trial=$root/plugins/sdk/go/trial
	(cd "$trial" && go run . >"$tmp/manifest.json" &&
		GOOS=wasip1 GOARCH=wasm go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o "$tmp/plain.wasm" .)
	pack "$tmp/plain.wasm" "$tmp/manifest.json"
	if XDG_CACHE_HOME=$tmp/cache "$tmp/latchkey" plugin test "$tmp/out.wasm" "$trial/trial.transcript" >"$tmp/said" 2>&1; then
		echo "plugins/sdk/go: its trial passes"
	else
		cat "$tmp/said" >&2
		echo "plugins/sdk/go: its trial fails" >&2
		failed=1
	fi
}

# Debian's rustc, as another may come first in PATH: LATCHKEY_RUSTC names one that is elsewhere.
rustc=${LATCHKEY_RUSTC:-/usr/bin/rustc}
rust_version=1.63.0

# rust_flags: what the SDK and a plugin are compiled with. Nothing of this folder's path remains in a module.
rust_flags="--edition=2021 --target=wasm32-unknown-unknown -O -Cpanic=abort -Ccodegen-units=1 -Cstrip=symbols -Dwarnings"

# have_rust MODULE: whether the module can be built.
have_rust() {
	if ! command -v "$rustc" >/dev/null || ! [ -d "$("$rustc" --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then
		missing="rustc and its wasm32 library not found: install the Debian packages rustc and libstd-rust-dev-wasm32"
	elif version=$("$rustc" --version | cut -d' ' -f2) && [ "$version" != $rust_version ]; then
		missing="it was built by rustc $rust_version, $rustc is $version: LATCHKEY_RUSTC names another"
	else
		have wasm-ld lld "$1"
		return
	fi
	skip "$1" "$missing"
	return 1
}

# rustc_wasm ARGUMENTS: rustc for wasm32. The flags have no blanks.
rustc_wasm() {
	# shellcheck disable=SC2086
	"$rustc" $rust_flags --remap-path-prefix="$root=" "$@"
}

# rust_link SDK ARGUMENTS: a plugin with the SDK's library that is in $tmp/rust/SDK.
rust_link() {
	sdk=$1
	shift
	rustc_wasm --crate-type=cdylib -Clinker=wasm-ld -Clinker-flavor=wasm-ld -Clink-arg=-zstack-size=16384 \
		--extern=latchkey="$tmp/rust/$sdk/liblatchkey.rlib" "$@"
}

# rust_sdk: the SDK's libraries, without and with its feature std.
rust_sdk() {
	[ -d "$tmp/rust" ] && return 0
	mkdir -p "$tmp/rust/core" "$tmp/rust/std"
	lib=$root/plugins/sdk/rust/src/lib.rs
	rustc_wasm --crate-name=latchkey --crate-type=rlib "$lib" -o "$tmp/rust/core/liblatchkey.rlib"
	rustc_wasm --crate-name=latchkey --crate-type=rlib --cfg='feature="std"' "$lib" -o "$tmp/rust/std/liblatchkey.rlib"
}

# rust NAME core|std: the plugin in Rust.
rust() {
	have_rust "$1/rust/$1.wasm" || return 0
	rust_sdk
	rust_link "$2" "$1/rust/$1.rs" -o "$tmp/out.wasm"
	finish "$1/rust/$1.wasm"
}

# have_asc MODULE: whether the module can be built; installs the AssemblyScript compiler if that was not yet done, and tries
# the SDK with the guest in its folder test.
ascript=$root/plugins/sdk/assemblyscript
asc=
have_asc() {
	have npm npm "$1" || return
	if [ "$(node -p 'parseInt(process.versions.node)' 2>/dev/null || echo 0)" -lt 20 ]; then
		skip "$1" "the AssemblyScript compiler needs Node.js 20, found $(node --version 2>/dev/null || echo none); Debian 12 has 18"
		return 1
	fi
	if [ -z "$asc" ]; then
		asc=none
		if { [ "$ascript/node_modules/.package-lock.json" -nt "$ascript/package-lock.json" ] ||
			npm ci --silent --ignore-scripts --prefix "$ascript" >&2; } &&
			"$ascript/node_modules/.bin/asc" --version >/dev/null; then
			asc=works
			ascript_sdk
		fi
	fi
	[ $asc = works ] && return
	skip "$1" "npm could not install a compiler that runs: it needs the registry"
	return 1
}

ascript_sdk() {
	if ascript_build "$ascript/test" sdk manifest.json ../asconfig.json &&
		XDG_CACHE_HOME=$tmp/cache "$tmp/latchkey" plugin test "$tmp/out.wasm" "$ascript/test/sdk.transcript" >"$tmp/said" 2>&1; then
		echo "plugins/sdk/assemblyscript: its tests pass"
	else
		[ ! -e "$tmp/said" ] || cat "$tmp/said" >&2
		echo "plugins/sdk/assemblyscript: its tests fail" >&2
		failed=1
	fi
}

# ascript_build FOLDER NAME MANIFEST OPTIONS: builds $tmp/out.wasm. In the sources' folder, because failed assertions name a file
# as the compiler was given it.
ascript_build() {
	(cd "$1" && "$ascript/node_modules/.bin/asc" "$2.ts" --config "$4" --outFile "$tmp/plain.wasm") &&
		pack "$tmp/plain.wasm" "$1/$3"
}

# assemblyscript NAME: the plugin in AssemblyScript.
assemblyscript() {
	have_asc "$1/assemblyscript/$1.wasm" || return 0
	ascript_build "$1/assemblyscript" "$1" ../manifest.json ../../../../plugins/sdk/assemblyscript/asconfig.json
	finish "$1/assemblyscript/$1.wasm"
}

# The Rust SDK's own tests: units, for which the C compiler links, and a plugin that calls what the examples do not.
rust_tests() {
	have_rust plugins/sdk/rust && have cc gcc plugins/sdk/rust || return 0
	rust_sdk
	trial=../../plugins/sdk/rust/trial
	rust_link core "$trial/trial.rs" -o "$tmp/rust/core.wasm"
	rust_link std --cfg='feature="std"' "$trial/trial.rs" -o "$tmp/rust/std.wasm"
	"$rustc" --edition=2021 -Dwarnings --test "$lib" -o "$tmp/rust/units"
	built_latchkey
	for trying in "$tmp/rust/units --quiet" "$tmp/latchkey plugin test $tmp/rust/core.wasm $trial/trial.transcript" \
		"$tmp/latchkey plugin test $tmp/rust/std.wasm $trial/trial.transcript"; do
		# shellcheck disable=SC2086
		if ! XDG_CACHE_HOME=$tmp/cache $trying >"$tmp/said" 2>&1; then
			cat "$tmp/said" >&2
			echo "plugins/sdk/rust: its tests fail" >&2
			failed=1
			return 0
		fi
	done
	echo "plugins/sdk/rust: its tests pass"
}

wat() {
	have wat2wasm wabt "$1/wat/$1.wasm" || return 0
	wat2wasm "$1/wat/$1.wat" -o "$tmp/plain.wasm"
	pack "$tmp/plain.wasm" "$1/wat/manifest.json"
	finish "$1/wat/$1.wasm"
}

built_latchkey() {
	[ -x "$tmp/latchkey" ] || (cd "$root" && go build -o "$tmp/latchkey" ./cmd/latchkey)
}

# pack MODULE MANIFEST: puts the manifest into the module, as $tmp/out.wasm.
pack() {
	built_latchkey
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
	library=core
	[ "$name" = bloom ] && memory=2097152 && library=std
	c "$name" "$memory"
	go_plugin "$name"
	rust "$name" "$library"
	assemblyscript "$name"
done
rust_tests
go_tests
exit $failed
