#!/bin/sh
# What a plugin command costs over the wire: CPU time of the server per request.
#
#   examples/plugins/wire.sh LATCHKEY [LANGUAGE [ROUNDS [REQUESTS]]]
#
# Runs CAD.WASM (of the language: c, go, rust, assemblyscript) and the built-in
# DELIFEQ on latchkey, and EVALSHA of the unlock script on redis-server, in turn, from
# 50 connections with 16 commands in a pipeline. Each finds a lock of somebody else's at
# one of 10,000 keys. Prints the median over the rounds of user and system time per
# request, from /proc, and of the ratios within a round. Needs redis-server,
# redis-cli, redis-benchmark, and Linux.
set -eu
bin=${1:?usage: $0 LATCHKEY [LANGUAGE [ROUNDS [REQUESTS]]]}
lang=${2:-c}
rounds=${3:-7}
requests=${4:-1000000}
here=$(cd "$(dirname "$0")" && pwd)
ours=${PORT:-7461}
theirs=$((ours + 1))
keys=10000
tmp=$(mktemp -d)
pids=
finish() {
	for p in $pids; do kill "$p" 2>/dev/null || :; done
	wait
	rm -rf "$tmp"
}
trap finish EXIT

"$bin" serve --port "$ours" --dir "$tmp" --plugin-dir "$here/cad" --loadmodule "$here/cad/$lang/cad.wasm" >"$tmp/latchkey.log" 2>&1 &
latchkey=$!
redis-server --port "$theirs" --save '' --appendonly no --dir "$tmp" >"$tmp/redis.log" 2>&1 &
redis=$!
pids="$latchkey $redis"
for port in "$ours" "$theirs"; do
	tries=0
	until [ "$(redis-cli -p "$port" PING 2>/dev/null)" = PONG ]; do
		tries=$((tries + 1))
		if [ $tries -gt 100 ]; then
			echo "$0: nobody answers on port $port" >&2
			cat "$tmp"/*.log >&2
			exit 1
		fi
		sleep 0.1
	done
	redis-benchmark -p "$port" -P 16 -n $((keys * 12)) -r $keys -q SET key:__rand_int__ theirs >/dev/null
done
if [ "$(redis-cli -p "$ours" CAD.WASM no-such-key x)" != -1 ]; then
	echo "$0: CAD.WASM does not run" >&2
	exit 1
fi
sha=$(redis-cli -p "$theirs" SCRIPT LOAD "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end")
hz=$(getconf CLK_TCK)

# cpu PID PORT COMMAND...: microseconds of the server's time per request.
cpu() {
	pid=$1
	port=$2
	shift 2
	before=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	redis-benchmark -p "$port" -c 50 -P 16 -n "$requests" -r $keys -q "$@" >/dev/null
	awk -v b="$before" -v hz="$hz" -v n="$requests" '{printf "%.4f", ($14 + $15 - b) / hz * 1e6 / n}' "/proc/$pid/stat"
}

i=0
while [ $i -lt "$rounds" ]; do
	plugin=$(cpu $latchkey "$ours" CAD.WASM key:__rand_int__ mine)
	builtin=$(cpu $latchkey "$ours" DELIFEQ key:__rand_int__ mine)
	script=$(cpu $redis "$theirs" EVALSHA "$sha" 1 key:__rand_int__ mine)
	echo "$plugin $builtin $script" >>"$tmp/rounds"
	i=$((i + 1))
done

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
echo "CAD.WASM ($lang) $(awk '{print $1}' "$tmp/rounds" | median) us, DELIFEQ $(awk '{print $2}' "$tmp/rounds" | median) us, redis-server's EVALSHA unlock $(awk '{print $3}' "$tmp/rounds" | median) us"
echo "CAD.WASM / DELIFEQ $(awk '{print $1 / $2}' "$tmp/rounds" | median)  (at most 1.35)"
echo "CAD.WASM / EVALSHA $(awk '{print $1 / $3}' "$tmp/rounds" | median)  (at most 0.45)"
