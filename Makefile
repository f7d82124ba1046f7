# make run     start Ottla in the foreground
# make test    check, then run the tests
# Everything needed is installed into .venv on first use, and again only when a lock file changes.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input --quiet
INSTALL := $(PIP) install --require-hashes
ITSELF := $(PIP) install --no-deps --no-build-isolation --editable .
# Without its bytecode a broker takes twice as long to start, and where PYTHONDONTWRITEBYTECODE is set nobody else writes it.
COMPILE := $(PY) -m compileall -q src
# Looked up only when an environment has to be made.
FIND_PYTHON := for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$name >/dev/null && $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done

DATA ?= ottla-data
ARGS ?=
PYTEST := $(PY) -m pytest

.PHONY: help run example test test-inside test-outside check unit compat bench sim soak format docs lock clean

help:
	@echo 'make run      start Ottla in the foreground, data in $(DATA)'
	@echo 'make example  count words on Spark, live, beside a running make run'
	@echo 'make test     check, then run the tests (some minutes)'
	@echo 'make check    ruff, mypy, layers, tidiness (under a minute)'
	@echo 'make compat   every real client, our own on Apache Kafka, and Kafka itself, where Java and Maven are'
	@echo 'make bench    measure beside Apache Kafka'
	@echo 'make sim      100 seeds of simulated clusters, and every bug that is put back'
	@echo 'make soak     hours of faults'
	@echo 'make docs     write the reference pages anew'
	@echo 'make lock     resolve the dependencies anew'
	@echo 'make clean    remove the environment and all caches; data stays'

run: $(VENV)/.run
	@$(COMPILE)
	@exec $(BIN)/ottla dev --data '$(DATA)' $(ARGS)

# Beside a running `make run`: words are written, and counted on Spark as they come.
example: $(VENV)/.spark
	@exec $(PY) -m ottla.streams.examples.word_count $(ARGS)

test: check
	@for tool in java mvn go kcat; do command -v $$tool >/dev/null || \
		echo "make test: $$tool is not here, so what needs it is skipped"; done
	@$(MAKE) --no-print-directory --jobs=2 test-inside test-outside

# Two at a time: what runs within one process, shown when it is done, and what starts servers, clients and Spark, shown live.
OUTSIDE := tests/client tests/cluster tests/compat tests/faults tests/services tests/spark tests/testing
test-inside: $(VENV)/.test
	@mkdir -p .cache; $(PYTEST) tests -m 'not long' --ignore=tests/tidy $(OUTSIDE:%=--ignore=%) $(ARGS) \
		>.cache/test-inside.log 2>&1; code=$$?; cat .cache/test-inside.log; exit $$code

test-outside: $(VENV)/.test
	$(PYTEST) $(OUTSIDE) -m 'not long' $(ARGS)

check: $(VENV)/.test
	@$(COMPILE)
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(PYTEST) -q tests/tidy

unit: $(VENV)/.test
	$(PYTEST) -q tests/unit $(ARGS)

compat: $(VENV)/.test
	$(PYTEST) tests/compat tests/client tests/cluster tests/spark -m 'long or not long' $(ARGS)

sim: $(VENV)/.test
	@$(COMPILE)
	$(PY) -m tests.sim.campaign $(ARGS)

soak: $(VENV)/.test
	$(PYTEST) tests -m long --ignore=tests/compat --ignore=tests/client --ignore=tests/spark --timeout=0 $(ARGS)
	$(PYTEST) tests/spark/test_streams_agreement_plans.py -m long --timeout=0 $(ARGS)

bench: $(VENV)/.bench
	@$(COMPILE)
	$(PY) -m bench $(ARGS)

format: $(VENV)/.test
	$(BIN)/ruff format
	$(BIN)/ruff check --fix --select I

docs: $(VENV)/.test
	$(PY) docs/generate.py

# The lock files hold names, versions and hashes, and no address.
LOCK := $(BIN)/uv pip compile pyproject.toml --generate-hashes --universal --python-version 3.11 --upgrade \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet --group install --extra services
lock: $(VENV)/.run
	$(PIP) install uv
	$(LOCK) -o requirements/run.lock
	$(LOCK) -o requirements/test.lock --group test -c requirements/run.lock
	$(LOCK) -o requirements/bench.lock --group bench -c requirements/run.lock
	$(LOCK) -o requirements/spark.lock --extra spark -c requirements/test.lock

clean:
	rm -rf $(VENV) .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests docs bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.python:
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo 'error: Ottla needs Python 3.11 or newer, and found none' >&2; \
		echo 'hint: install python3.11 (or any later one) and run make again' >&2; exit 1; fi; \
	echo "making $(VENV) with $$($$python --version)"; \
	$$python -m venv --clear $(VENV) || { \
		echo 'hint: on Debian and Ubuntu the venv module is a package of its own: apt install python3-venv' >&2; exit 1; }
	@touch $@

$(VENV)/.run: $(VENV)/.python requirements/run.lock pyproject.toml hatch_build.py $(wildcard src/ottla/*/*.c src/ottla/*/*.h)
	@echo 'installing what Ottla needs'
	@$(INSTALL) --requirement requirements/run.lock
	@$(ITSELF)
	@$(COMPILE)
	@touch $@

$(VENV)/.spark: $(VENV)/.run requirements/spark.lock
	@echo 'installing Spark, which takes a minute'
	@$(INSTALL) --requirement requirements/spark.lock
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.lock
	@echo 'installing what the tests need'
	@$(INSTALL) --requirement requirements/test.lock
	@touch $@

$(VENV)/.bench: $(VENV)/.run requirements/bench.lock
	@echo 'installing what the benchmarks need'
	@$(INSTALL) --requirement requirements/bench.lock
	@touch $@
