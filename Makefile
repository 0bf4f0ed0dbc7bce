# Every target sets up what it needs; on a fresh machine start with `make demo` or `make test`.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
export PATH := $(CURDIR)/.venv/bin:$(PATH):$(HOME)/.cargo/bin
# The extension module is no test binary; Python tests exercise it.
WORKSPACE := --workspace --exclude paceline-python
OUT ?= runs/demo
# A trace of your own for the demo's link: make demo TRACE=path/to/trace.down
TRACE ?=
CONTROLLERS ?= latte cubic reno window
# Peers of the simulator, for `make bench-peers`: NS3=install installs ns-3 (as root), HTSIM names a checkout of htsim.
NS3 ?=
HTSIM ?=
export NS3 HTSIM
# Repetitions of each: every seed is another drive. A recorded trace is always the same one.
SEEDS ?= $(if $(TRACE),1,3)

.DEFAULT_GOAL := help
.PHONY: help demo test build wheel qdisc lint bench bench-peers reproduce docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Compare controllers on a variable link: a table here, an HTML report, the records
	@scripts/setup.sh run
	@paceline run scenarios/demo.toml $(addprefix --controller ,$(CONTROLLERS)) --seeds $(SEEDS) $(if $(TRACE),--set 'link.trace="$(abspath $(TRACE))"') --out $(OUT)
	@paceline report $(addprefix $(OUT)/,$(CONTROLLERS)) --out $(OUT)/report.html

test: ## Build everything and run every test; the last lines say what was skipped and why
	@scripts/setup.sh test
	@cargo test $(WORKSPACE) --locked 2>&1 | tee target/test.log
	@grep -h ^SKIPPED target/test.log || echo "no Rust test was skipped"
	@scripts/pytest.sh
	@python benches/instructions.py check

build: ## Build the package, optimised, into .venv
	@scripts/setup.sh run

wheel: ## The release: a wheel in target/wheels, built for what it does most (profile-guided; needs rustup's llvm-tools)
	@scripts/setup.sh run
	@maturin build --release --locked --pgo

qdisc: ## The queueing discipline for this kernel (KDIR=: another's headers) and tc's plugin, in target/qdisc
	@$(MAKE) --no-print-directory -C qdisc OUT=$(CURDIR)/target/qdisc

lint: ## Formatting, lints and types, Rust and Python
	@scripts/setup.sh run
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked -- -D warnings
	@ruff format --check python benches
	@ruff check python benches
	@mypy
	@python -m mypy.stubtest paceline._native --mypy-config-file pyproject.toml

bench: ## Speed of the simulator: packets and packet-hops per CPU second, beside the targets (PGO=1: as in the release)
	@scripts/setup.sh rust
	@$(if $(PGO),benches/pgo.sh,cargo bench --locked -p paceline-lab --bench engine)

bench-peers: ## The same beside ns-3 (NS3=install installs it) and htsim (HTSIM=its folder)
	@scripts/setup.sh rust
	@python3 benches/peers.py

reproduce: OUT := runs/reproduce
reproduce: ## Tables and figures of papers again, ours beside theirs, under runs/reproduce (ID=...: these; QUICK=1: in seconds)
	@scripts/setup.sh run
	@paceline reproduce $(ID) $(if $(QUICK),--quick) --out $(OUT)

docs: ## API documentation of the crates, warnings denied, in target/doc; the controllers' pages in docs/controllers
	@scripts/setup.sh run
	@RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@paceline controllers --pages docs/controllers

clean: ## Remove everything that was built; records in runs/ stay
	@rm -rf target .venv build
	@find python benches -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@rm -rf python/paceline/_native*.so python/paceline/_guest .pytest_cache .mypy_cache .ruff_cache .hypothesis
