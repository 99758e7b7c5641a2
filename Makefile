# The words of this file are the words the build server uses. `make help` lists them.

CARGO ?= cargo
SEED ?= 1
STEPS ?= 10000
FRAMES ?= 1000000
KILLS ?= 40
STORE ?= sqlite
PROFILE ?= release

# The crates that have fuzz targets.
FUZZED := -p wharf-fuzz -p wharf-sdk -p wharf-egress -p wharf-graphql -p wharf-http

# Where tests that this machine cannot make are written down, to be counted at the end.
SKIPPED := $(CURDIR)/target/skipped-tests

.DEFAULT_GOAL := help
.PHONY: help up docs console console-check console-e2e console-full console-bench console-pictures build release dist test check fmt-check clippy tidy specs unit skipped bench bench-peers peers-check sim fuzz torture security-page

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: console-if-node build ## set up, build and start the core with its built-in tools and example agents
	@echo "==> starting the core (Ctrl-C stops it)"
	@exec target/quick/wharf up --demo $(ARGS)

console: ## build the console's page, which the next build of wharf embeds: needs Node.js
	@scripts/setup.sh console
	@echo "==> building the console"
	@cd console && npm ci --no-audit --no-fund --silent && npm run --silent build
	@touch crates/edges/console/build.rs

# Where Node.js is missing the core says itself how its console is built.
.PHONY: console-if-node
console-if-node:
	@if [ ! -f console/package.json ]; then :; \
	elif ! scripts/setup.sh node || ! command -v npm >/dev/null 2>&1; then \
		echo "==> the console is left out: Node.js is missing"; \
	elif [ -f console/dist/index.html ] && [ -z "$$(find console -path console/node_modules -prune -o -path console/dist -prune -o -type f -newer console/dist/index.html -print -quit)" ]; then :; \
	elif ! $(MAKE) --no-print-directory console; then \
		echo "==> the console could not be built; going on without it"; fi

build: ## build the wharf binary soon, for trying things: target/quick
	@echo "==> checking what the build needs"
	@scripts/setup.sh build
	@echo "==> building wharf"
	@$(CARGO) build --profile quick --locked -p wharf-cli -p hello-agent

release: console-if-node ## build the wharf binary as fast as it gets, for use: target/release
	@echo "==> checking what the build needs"
	@scripts/setup.sh build
	@echo "==> building wharf"
	@$(CARGO) build --release --locked -p wharf-cli -p hello-agent

dist: ## pack what is handed out, into target/dist: make dist PROFILE=quick, or WHARF_BIN=PROGRAM
	@PROFILE="$(PROFILE)" WHARF_BIN="$(WHARF_BIN)" scripts/dist.sh $(ONLY)

test: unit console-e2e skipped ## everything, cheap checks first; lints come with building the tests
	@echo "==> all good"

check: fmt-check clippy tidy ## formatting, lints and the rules of the repository

fmt-check:
	@echo "==> checking what the build needs"
	@scripts/setup.sh check
	@echo "==> formatting"
	@$(CARGO) fmt --all --check

clippy: tidy
	@echo "==> lints"
	@$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

tidy: fmt-check
	@echo "==> rules of the repository"
	@$(CARGO) xtask tidy

specs: tidy
	@echo "==> requirements with a test"
	@$(CARGO) xtask coverage-of-specs --require R,T,O,K,M,C

# The page is built before the core, which embeds it.
console-check: specs
	@rm -f "$(SKIPPED)"
	@if command -v npm >/dev/null 2>&1; then \
		$(MAKE) --no-print-directory console && echo "==> lints and tests of the console" && \
		cd console && npm run --silent lint && npm test --silent; \
	else mkdir -p target && echo "console: node or npm is missing" >>"$(SKIPPED)"; fi

# What `make bench-peers` reckons and prints, without a peer.
peers-check: console-check
	@if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "==> tests of the benchmark beside peers" && \
		cd crates/proof/bench/peers && python3 -B -m unittest discover --quiet -s tests -t .; \
	else mkdir -p target && echo "the benchmark beside peers: python3 is older than 3.11" >>"$(SKIPPED)"; fi

unit: peers-check
	@WHARF_SKIPPED_TESTS="$(SKIPPED)" $(CARGO) xtask test

console-e2e: unit
	@echo "==> the console in a browser"
	@if [ -d console/node_modules ] && command -v chromium >/dev/null 2>&1; then \
		cd console && WHARF_BIN="$(CURDIR)/target/debug/wharf" npm run --silent e2e; \
	else echo "console in a browser: node or chromium is missing" >>"$(SKIPPED)"; fi

console-full: build ## the console in a browser at full size: 1 GiB, 8 MiB lines, 100,000 runs; takes minutes
	@cd console && WHARF_E2E_FULL=1 WHARF_BIN="$(CURDIR)/target/quick/wharf" npm run --silent e2e

console-bench: build ## paint times and frame rates of the console in Chromium, printed
	@cd console && WHARF_BIN="$(CURDIR)/target/quick/wharf" npm run --silent bench

console-pictures: build ## pictures of every screen of the console, into docs/console
	@cd console && WHARF_BIN="$(CURDIR)/target/quick/wharf" npm run --silent pictures

skipped: unit console-e2e
	@echo "==> tests that could not be made here"
	@WHARF_SKIPPED_TESTS="$(SKIPPED)" $(CARGO) xtask skipped-tests

bench: ## measure, print a table and write JSON
	@scripts/setup.sh build
	@echo "==> benchmarks"
	@$(CARGO) build --quiet --release --locked -p wharf-cli -p hello-agent -p wharf-bench
	@target/release/wharf-bench $(ARGS)

# `--list` and `--help` need no build.
bench-peers: ## Wharf beside its peers, in turns: make bench-peers ARGS=--quick, or ARGS=--help
	@$(if $(filter --list --help -h,$(ARGS)),,scripts/setup.sh peers && \
	echo "==> building wharf" && \
	$(CARGO) build --quiet --release --locked -p wharf-cli -p hello-agent -p wharf-bench &&) \
	python3 -B crates/proof/bench/peers $(ARGS)

docs: ## write the documentation as a site with a search, without a network: target/docs
	@scripts/setup.sh build
	@echo "==> documentation"
	@$(CARGO) run --quiet --locked -p wharf-console --example docs -- target/docs

security-page: ## let the hostile peers try everything and write docs/security.md anew
	@scripts/setup.sh check
	@echo "==> docs/security.md from a real run"
	@rm -rf target/security-rows
	@WHARF_BLESS=1 $(CARGO) test --quiet --locked -p wharf-cli --test e2e hostile::
	@$(CARGO) xtask security-page

fuzz: ## spoilt messages after the handshake: make fuzz FRAMES=1000000 SEED=7 WIRE=run
	@scripts/setup.sh build
	@echo "==> fuzz, seed $(SEED), $(FRAMES) frames for each wire"
	@WHARF_FUZZ_FRAMES=$(FRAMES) WHARF_FUZZ_SEED=$(SEED) $(CARGO) test --quiet --release --locked \
		$(FUZZED) fuzz_$(WIRE) -- --nocapture

torture: ## kill -9 under mixed load, a ledger outside: make torture SEED=7 KILLS=100 STORE=postgres
	@scripts/setup.sh build
	@echo "==> torture, seed $(SEED), $(KILLS) kills, $(STORE)"
	@WHARF_TORTURE_SEED=$(SEED) WHARF_TORTURE_KILLS=$(KILLS) $(CARGO) test --quiet --release \
		--locked -p wharf-cli --test e2e torture::$(if $(filter postgres,$(STORE)),s015,kill_9) \
		-- --nocapture

sim: ## drive the real engine through faults: make sim SEED=7 STEPS=50000
	@scripts/setup.sh build
	@echo "==> simulator, seed $(SEED), $(STEPS) steps"
	@$(CARGO) run --quiet --release --locked -p wharf-cli -- sim --seed $(SEED) --steps $(STEPS)
