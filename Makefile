# Headrace: every target does its own set-up. `make help` lists them.
PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    := .venv
BIN     := $(VENV)/bin
# Whatever certificates this machine trusts, also those of a company proxy.
export UV_SYSTEM_CERTS := true
STAMP   := $(VENV)/.installed
PINS    := requirements/build.txt requirements/dev.txt
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
           --generate-hashes --no-emit-index-url --no-header --no-annotate

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format simulate mutants bench pins clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## build .venv from the pinned requirements (skipped when nothing changed)

$(STAMP): $(PINS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headrace needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=/path/to/python3.11")'
	@echo "setting up $(VENV) (a minute or two the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-build-isolation -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup  ## show what Headrace does, end to end; ends by itself
	@$(BIN)/python -m headrace.cli.main demo

test: setup  ## run the tests, two files at a time (HEADRACE_REQUIRE_ALL=1: a missing tool is a failure, not a skip)
	@$(BIN)/python -m pytest -n $(or $(WORKERS),2) --dist loadfile --no-loadscope-reorder $(ARGS)

check: setup  ## lint, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup  ## format the code and apply the safe lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

simulate: setup  ## play a simulated cluster of real brokers under faults (SEEDS=5000 FIRST=1 JOBS=2)
	@$(BIN)/python -m headrace.testing.simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1) --jobs $(or $(JOBS),2)

mutants: setup  ## break one rule of the cluster at a time: the simulation must notice each
	@HEADRACE_MUTANTS=1 $(BIN)/python -m pytest -q -n 2 tests/simulation -k variant

bench: setup  ## measure Headrace beside Apache Kafka (ONLY="produce consume" for some of it)
	@$(BIN)/python -m bench $(ONLY)

pins: setup  ## bring the pinned requirements up to date with pyproject.toml
	@$(COMPILE) requirements/build.in -o requirements/build.txt
	@$(COMPILE) pyproject.toml -o requirements/broker.txt
	@$(COMPILE) --extra all --group dev pyproject.toml -o requirements/dev.txt

clean:  ## remove everything that set-up and tests made
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache build dist
