# For those who build and change latchkey. `make help` lists the targets.

GO          ?= go
BIN         := bin/latchkey

# Tools, pinned, and outside go.mod so that nobody who imports latchkey carries them.
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := $(GO) run mvdan.cc/gofumpt@v0.12.0

# Modules of their own: their dependencies are not latchkey's, or they have none.
NESTED      := $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod plugins/sdk/go/go.mod))

# All folders of ours with Go code.
GODIRS      := cmd examples plugins proxy scripting store

# What make check builds for beside the system at hand. FreeBSD builds too; Windows does not: the prompt and the sockets are Unix's.
BUILDS      := linux/arm64 darwin/arm64

# What make race runs whole, with -short. Outside are the examples, which ask the same rooms again, and plugins/fuel and
# plugins/manifest: they start no goroutine and keep nothing between calls, and instrumenting large modules takes minutes.
RACE        ?= ./store/... ./proxy/... ./scripting/... ./plugins ./cmd/...

FUZZTIME    ?= 5m
SEED        ?= 1
CASES       ?= 2000
BENCH       ?= .
REDIS       ?= redis-server
COMPARE     ?= ../shared/bench/compare.py
SCORE       ?= ../shared/conformance/score.sh
UNITS       ?= locks

# The program is built with a profile (cmd/latchkey/default.pgo, which go build and go install take by themselves).
# Tests and checks do without, or all packages would be compiled twice.
export GOFLAGS := $(strip $(GOFLAGS) -pgo=off)

# With LATCHKEY_CI=1 nothing may be skipped: what is missing fails the target.
CI          := $(LATCHKEY_CI)

.PHONY: build help test test-main test-nested race check fmt diff diff-random fuzz fuzz-short bench profile compare examples million mutants conformance clean needs

build: ## build bin/latchkey (the default)
	$(GO) build -trimpath -pgo=auto -o $(BIN) ./cmd/latchkey

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: needs test-main test-nested race ## run all tests; what needs a program that is missing is skipped, with LATCHKEY_CI=1 it fails

test-main:
	$(GO) test ./...
	@# Clients are served by event loops where there are any; once more, by goroutines.
	LATCHKEY_EVENT_LOOPS=0 $(GO) test -count 1 ./proxy ./proxy/histories

test-nested:
	@set -e; for m in $(NESTED); do \
		if (cd $$m && $(GO) mod download) >/dev/null 2>&1 || [ "$(CI)" = 1 ]; then \
			echo "cd $$m && $(GO) test ./..."; (cd $$m && $(GO) test ./...); \
		else \
			echo "skipped $$m: the modules it needs cannot be downloaded"; \
		fi; \
	done

race: ## run the tests of all that is concurrent under the race detector
	@if command -v gcc >/dev/null || command -v clang >/dev/null; then \
		echo "$(GO) test -race -short $(RACE)"; CGO_ENABLED=1 $(GO) test -race -short $(RACE); \
	elif [ "$(CI)" = 1 ]; then \
		echo "make race: no C compiler: install the Debian package gcc"; exit 1; \
	else \
		echo "skipped make race: no C compiler: install the Debian package gcc"; \
	fi

# go test is silent about tests that skip, so this says it before they do.
needs:
	@missing() { echo "note: $$1 is missing, so tests that need it are skipped: install the Debian package $$2"; }; \
	command -v redis-server >/dev/null || missing redis-server redis-server; \
	command -v redis-cli    >/dev/null || missing redis-cli redis-tools; \
	command -v clang        >/dev/null || missing clang "clang and lld"; \
	command -v wat2wasm     >/dev/null || missing wat2wasm wabt; \
	command -v npm          >/dev/null || missing npm npm; \
	[ -d /usr/lib/rustlib/wasm32-unknown-unknown ] || missing "Rust for wasm32" "rustc and libstd-rust-dev-wasm32"; \
	command -v gcc          >/dev/null || missing gcc "gcc (for go test -race)"

check: ## format, vet, lint, import directions, generated files, words of unfinished work
	@echo gofumpt; out=$$($(GOFUMPT) -l $(GODIRS)) || exit 1; \
		[ -z "$$out" ] || { echo "not formatted as gofumpt does; run make fmt:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	@# Where it is not tried it builds at least.
	@set -e; for system in $(BUILDS); do echo "$(GO) build ./... for $$system"; \
		GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 $(GO) build ./...; done
	@set -e; for m in $(NESTED); do echo "cd $$m && $(GO) vet ./..."; (cd $$m && $(GO) vet ./...); done
	@# ST1005 asks for error texts without capitals and full stops; replies have Redis's texts.
	$(STATICCHECK) -checks inherit,-ST1005 ./...
	@# Import directions, docs/CONFIG.md, docs/COMMANDS.md. The sessions in the pages are make test's.
	$(GO) test -count 1 -run '^Test(Imports|Docs|TableIsDocumented)' ./...
	@if grep -rnE '\b(TODO|FIXME|XXX)\b' --include='*.go' --include='*.c' --include='*.h' --include='*.wat' --include='*.sh' . ; then \
		echo "words of unfinished work; finish it, or open an issue"; exit 1; fi
	@if find . -path ./.git -prune -o -iname '*todo*' -print | grep .; then \
		echo "files named for unfinished work"; exit 1; fi

fmt: ## format all Go files
	$(GOFUMPT) -w $(GODIRS)

diff: build ## replay the transcripts on redis-server and on latchkey
	$(GO) run ./store/command/transcript/diff -redis $(REDIS) -latchkey $(BIN)

# Before Go 1.27 a timed run that ends while a worker is busy may fail with "context deadline exceeded" though nothing was
# found (https://go.dev/issue/75804): that is told from a failing input, which Go writes down.
diff-random: build ## send CASES (2000) random cases, drawn from SEED (1), to redis-server and to latchkey
	$(GO) run ./store/command/transcript/random -redis $(REDIS) -latchkey $(BIN) -seed $(SEED) -cases $(CASES)

fuzz: ## run every fuzz target for FUZZTIME (5m); PKG=./proxy/resp for one package
	@set -e; \
	$(GO) list -f '{{range .TestGoFiles}}{{$$.ImportPath}} {{$$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$.ImportPath}} {{$$.Dir}}/{{.}}{{"\n"}}{{end}}' $(or $(PKG),./...) | \
	while read -r pkg file; do \
		[ -n "$$pkg" ] || continue; \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' $$file); do \
			echo "$(GO) test -run ^$$ -fuzz ^$$target\$$ -fuzztime $(FUZZTIME) $$pkg"; \
			said=$$(mktemp); \
			{ $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg </dev/null 2>&1 || echo FAILED; } | tee $$said; \
			if ! grep -q '^FAILED$$' $$said; then :; \
			elif grep -q '^    context deadline exceeded$$' $$said && ! grep -q 'Failing input' $$said; then \
				echo "time was up, and nothing was found: https://go.dev/issue/75804"; \
			else rm -f $$said; exit 1; fi; \
			rm -f $$said; \
		done; \
	done

# Counted, not timed: it tries as much on a slow machine as on a fast one.
fuzz-short: ## try every fuzz target 1000 times
	@$(MAKE) --no-print-directory fuzz FUZZTIME=1000x

bench: ## run the Go benchmarks, compiled as the program is; BENCH=regexp PKG=./store/... for some
	$(GO) test -pgo=$(CURDIR)/cmd/latchkey/default.pgo -run '^$$' -bench '$(BENCH)' -benchmem $(or $(PKG),./...)

profile: ## record the profile that the program is built with, cmd/latchkey/default.pgo, from the benchmarks of the hot paths
	@set -e; d=$$(mktemp -d); trap 'rm -rf '$$d EXIT; \
	record() { $(GO) test -trimpath ./$$1 -run '^$$' -bench "$$2" -benchtime $$3 -cpuprofile $$d/$$4.prof -o $$d/$$4.test; }; \
	record proxy Pipeline 3s pipeline; \
	record store/command 'HotCommands|LockUnlock' 1s commands; \
	record scripting 'Unlock$$|Command/' 2s scripts; \
	record plugins Command 1s plugins; \
	record plugins 'Command$$/other$$/(c|go|rust|assemblyscript)$$' 1500ms guests; \
	$(GO) tool pprof -proto $$d/*.prof >cmd/latchkey/default.pgo

compare: build ## measure bin/latchkey beside redis-server; COMPARE=path of compare.py
	@[ -f "$(COMPARE)" ] || { echo "make compare: no $(COMPARE); COMPARE=path names it"; exit 1; }
	python3 $(COMPARE) --base redis \
		--server redis='$(REDIS) --port {port} --save "" --appendonly no' \
		--server latchkey='$(BIN) serve --port {port}' $(COMPARE_ARGS)

examples: ## build the example plugins again and compare them with the committed ones
	examples/plugins/build.sh

million: ## a million calls of each example plugin, in each language, with flat memory
	LATCHKEY_MILLION=1 $(GO) test -count 1 -run '^TestFlatMemory$$' ./examples/plugins

mutants: ## leave the key lock and the undo out on purpose: the tests must fail
	sh store/mutants.sh
	sh scripting/mutants.sh
	sh plugins/mutants.sh
	LATCHKEY_MUTANTS=1 $(GO) test -count 1 -run '^TestMutantsAreCaught$$' ./proxy/histories

conformance: build ## score latchkey with Redis's own tests: LK_SUITE=checkout of Redis 7.2.6, UNITS="locks core unit/type/string ..."
	@[ -n "$$LK_SUITE" ] || { echo "make conformance: LK_SUITE must name a checkout of Redis's source at tag 7.2.6"; exit 1; }
	@[ -f "$(SCORE)" ] || { echo "make conformance: no $(SCORE); SCORE=path names it"; exit 1; }
	$(SCORE) 127.0.0.1 $(or $(PORT),6399) $(UNITS) --force --spawn "$(abspath $(BIN)) serve --port {port} --dir {dir}" \
		--baseline $(dir $(SCORE))ref-redis-7.2.6.json

clean: ## remove bin
	rm -rf bin
