# The words of this file are the words the build server uses. `make help` lists them.

CARGO ?= cargo
SEED ?= 1
STEPS ?= 10000

.DEFAULT_GOAL := help
.PHONY: help up build test check fmt-check clippy tidy unit specs bench sim security-page

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: build ## set up, build and start the core with its built-in tools and example agents
	@echo "==> starting the core (Ctrl-C stops it)"
	@exec target/release/wharf up --demo $(ARGS)

build: ## build the wharf binary (release)
	@echo "==> checking what the build needs"
	@scripts/setup.sh build
	@echo "==> building wharf"
	@$(CARGO) build --release --locked -p wharf-cli -p hello-agent

test: check unit specs ## everything, cheap checks first
	@echo "==> all good"

check: fmt-check clippy tidy ## formatting, lints and the rules of the repository

fmt-check:
	@echo "==> checking what the build needs"
	@scripts/setup.sh check
	@echo "==> formatting"
	@$(CARGO) fmt --all --check

clippy: fmt-check
	@echo "==> lints"
	@$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

tidy: clippy
	@echo "==> rules of the repository"
	@$(CARGO) xtask tidy

unit: check
	@echo "==> tests"
	@$(CARGO) test --quiet --locked --workspace

specs: unit
	@echo "==> protocol requirements with a test"
	@$(CARGO) xtask coverage-of-specs

bench: ## measure, print a table and write JSON
	@scripts/setup.sh build
	@echo "==> benchmarks"
	@$(CARGO) build --quiet --release --locked -p wharf-cli -p hello-agent -p wharf-bench
	@target/release/wharf-bench $(ARGS)

security-page: ## let the hostile agent try everything and write docs/security.md anew
	@scripts/setup.sh check
	@echo "==> docs/security.md from a real run"
	@WHARF_BLESS=1 $(CARGO) test --quiet --locked -p wharf-cli --test e2e hostile

sim: ## drive the real engine through faults: make sim SEED=7 STEPS=50000
	@scripts/setup.sh build
	@echo "==> simulator, seed $(SEED), $(STEPS) steps"
	@$(CARGO) run --quiet --release --locked -p wharf-cli -- sim --seed $(SEED) --steps $(STEPS)
