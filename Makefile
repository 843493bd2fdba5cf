# Everything a person or CI runs. Needs Python 3.11 or newer, make and a Python package index; nothing else.

VENV ?= .venv
ARGS ?=
WORKERS ?= 2
BENCH ?=

# The first interpreter on PATH that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes
PYTEST := $(BIN)/python -m pytest -rs
LOCK = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
LOCKS := runtime build test lint spark spark-pypi

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install serve test lint format engines bench openapi lock build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.runtime ## create .venv with what the server needs, nothing more
	@:

serve: install ## install, migrate and serve on http://127.0.0.1:8181 (ARGS="--port 9000 --home DIR")
	@$(BIN)/icekeel serve $(ARGS)

test: $(VENV)/.test ## every test that needs Python packages alone (ARGS="tests/iceberg -x")
	$(PYTEST) -m "not engines" -n $(WORKERS) --dist loadfile $(ARGS)

lint: $(VENV)/.lint ## formatting, style, strict types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint ## rewrite the code the way lint wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

engines: $(VENV)/.test ## real engines, JVM, reference suites, at most 30 minutes (FULL=1: the long proofs)
	$(if $(ARGS),,TEST_BACKEND=postgresql+s3 $(PYTEST) -m "not engines" -n $(WORKERS) --dist loadfile tests/http tests/cases)
	FULL=$(FULL) $(PYTEST) -m engines --session-timeout $(if $(FULL),7200,1800) --timeout $(if $(FULL),3600,900) $(ARGS)

bench: $(VENV)/.test ## measure the server (FULL=1: beside its peers; BENCH=judge or BENCH=start for one part; ARGS are passed on)
	$(BIN)/python -m bench$(if $(BENCH),.$(BENCH)) $(if $(and $(FULL),$(if $(BENCH),,1)),--full) $(ARGS)

openapi: install ## write the OpenAPI document again
	$(BIN)/icekeel openapi > openapi/icekeel.json

lock: $(VENV)/.lint ## resolve the lock files of requirements/ again, newest versions that fit
	$(LOCK) pyproject.toml -o requirements/runtime.lock
	$(LOCK) --group build -o requirements/build.lock
	$(LOCK) pyproject.toml --group test -c requirements/runtime.lock -c requirements/build.lock -o requirements/test.lock
	$(LOCK) --group lint -c requirements/test.lock -o requirements/lint.lock
	$(LOCK) requirements/spark.in -o requirements/spark.lock
	$(LOCK) requirements/spark-pypi.in -o requirements/spark-pypi.lock
	@! grep -nE 'https?://|--(extra-)?index-url|--find-links' $(LOCKS:%=requirements/%.lock)

build: $(VENV)/.runtime ## the wheel and the source archive, in dist/
	$(BIN)/python -m hatchling build

clean: ## remove caches and build results; .venv and data stay
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis
	find app migrations tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments: each stamp is newer than the lock file that it installed -----------------------------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer on PATH; name one: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"; \
		rm -rf $(VENV); exit 1; }

# An editable install copies the migrations, so a new one means a new install.
$(VENV)/.runtime: requirements/runtime.lock requirements/build.lock pyproject.toml $(wildcard migrations/versions/*.py) | $(BIN)/python
	@echo "Installing what the server needs into $(VENV), once ..."
	@$(PIP) -r requirements/runtime.lock -r requirements/build.lock
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q app migrations
	@touch $@

$(VENV)/.test: requirements/test.lock $(VENV)/.runtime
	$(PIP) -r requirements/test.lock
	@touch $@

$(VENV)/.lint: requirements/lint.lock $(VENV)/.runtime
	$(PIP) -r requirements/lint.lock
	@touch $@
