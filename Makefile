.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast check format codegen bench lock

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Create .venv with everything installed, as the lock file says

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "This needs Python 3.11 or newer: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

run: setup ## See it work: real events through Kafka into datasets, live; ARGS="--help" lists the options
	@$(BIN)/odf demo $(ARGS)

test: setup ## All tests
	$(BIN)/pytest --numprocesses=auto --dist=worksteal $(ARGS)

test-fast: setup ## The tests that need no server and no other program, in seconds
	$(BIN)/pytest --numprocesses=auto -m "not slow" $(ARGS)

check: setup ## Format, lint, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

codegen: setup ## Write the files that are derived from the contracts
	$(BIN)/python -m schemas.codegen

bench: setup ## Measure, one JSON line per figure
	$(BIN)/python -m benchmarks $(ARGS)

lock: ## Resolve the dependencies of pyproject.toml anew (needs uv)
	uv pip compile pyproject.toml --extra dev --extra demo --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-emit-index-url --no-emit-find-links --output-file requirements.lock --upgrade
