# Two commands start from nothing: `make demo` and `make test`. Both need Python 3.11 or newer.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
MUTATE_ARGS ?=
KILLS ?= 2000
SEEDS ?= 100
TURNS ?= 300
FIRST_SEED ?= 0
# The tests wait for a part of their time; each worker more has to collect all of them.
WORKERS ?= $(shell [ "$$(nproc 2>/dev/null || echo 1)" -gt 4 ] && echo auto || echo 4)

# The everyday tests write to memory where it has room: on a disk each commit waits, as in `make crash`.
SHM := $(shell [ "$$(df -k /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 4000000 ] 2>/dev/null && echo /dev/shm)
test test-postgres coverage: export TMPDIR := $(or $(TMPDIR),$(SHM),/tmp)

VENV := .venv
BIN := $(VENV)/bin
CORE_STAMP := $(VENV)/.core-installed
STAMP := $(VENV)/.dev-installed
BENCH_STAMP := $(VENV)/.bench-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
PACKAGE_FILES := find remanence -type f ! -path '*/__pycache__/*' | LC_ALL=C sort

# The tests start many processes, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow requirements check format lint layers types docs wheel crash load clients chaos fuzz unseen mutate bench fmt coverage constraints clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(CORE_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("remanence needs Python 3.11 or newer, and $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % v[:2])'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(STAMP): $(CORE_STAMP)
	@echo "Installing what the tests need ..."
	@$(PIP) install -c constraints.txt -e ".[dev]"
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@$(PIP) install -c constraints.txt -e ".[dev,bench]"
	@touch $@

demo: $(CORE_STAMP) ## Replay a conversation and show what memory keeps of it
	@$(BIN)/remanence demo

test: $(STAMP) ## Run the everyday tests; WORKERS says in how many processes, PYTEST_ARGS passes options on
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-postgres: $(STAMP) ## Run the tests on a PostgreSQL server alone, which is started for them
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "postgres and not slow" $(PYTEST_ARGS)

requirements: $(STAMP) ## Show each requirement with its tests and their result
	@$(BIN)/python -m tools.requirements $(PYTEST_ARGS)

check: format lint layers types test wheel ## Do everything that CI does

format: $(STAMP)
	@$(BIN)/ruff format --check .

lint: $(STAMP)
	@$(BIN)/ruff check .

layers: $(STAMP)
	@$(BIN)/lint-imports --no-logo

types: $(STAMP)
	@$(BIN)/mypy

docs: $(STAMP) ## Run the Python examples of README.md and docs/
	@$(PYTEST) tests/project/test_readme.py $(PYTEST_ARGS)

wheel: $(STAMP) ## Build the wheel and use it in a clean environment
	@d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT && \
	$(PIP) wheel --no-deps --wheel-dir "$$d" . && \
	$(BIN)/python -m venv "$$d/venv" && \
	"$$d/venv/bin/python" -m pip --disable-pip-version-check --quiet install -c constraints.txt "$$d"/*.whl && \
	(cd src && $(PACKAGE_FILES)) >"$$d/source" && \
	(cd "$$d"/venv/lib/python*/site-packages && $(PACKAGE_FILES)) >"$$d/installed" && \
	diff "$$d/source" "$$d/installed" && \
	cd "$$d" && venv/bin/python -c 'import remanence' && venv/bin/remanence --help >/dev/null && \
	echo "The wheel holds every file of the package and works in a clean environment."

slow: $(STAMP) ## Run the values of tests that the everyday run leaves out (two minutes)
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "slow and not live" --ignore tests/crash --timeout 600 $(PYTEST_ARGS)

crash: $(STAMP) ## Kill, race and replay over many seeds (a quarter of an hour); KILLS says how many
	@REMANENCE_TEST_KILLS=$(KILLS) HYPOTHESIS_PROFILE=long $(PYTEST) --timeout 1800 -m "not live" tests/crash tests/property $(PYTEST_ARGS)

load: $(STAMP) ## Let 200 clients talk to a service for a minute, and kill and end it under load
	@$(PYTEST) -s -m "not live" tests/crash/test_service_load.py $(PYTEST_ARGS)

clients: $(STAMP) ## Let real clients talk through the proxy for TURNS turns each, those that variables name (docs/howto/proxy-clients.md)
	@REMANENCE_CLIENT_TURNS=$(TURNS) $(PYTEST) -s tests/server/test_client_packages.py tests/server/test_real_clients.py tests/server/test_frameworks.py $(PYTEST_ARGS)

chaos: $(STAMP) ## Crash server and workers at random over SEEDS seeds on each store, some ten seconds each
	@REMANENCE_CHAOS_SEEDS=$(SEEDS) REMANENCE_CHAOS_FIRST_SEED=$(FIRST_SEED) $(PYTEST) -s tests/crash/test_chaos.py $(PYTEST_ARGS)

fuzz: $(STAMP) ## Read, append and send more than 10,000 generated messages of all providers
	@HYPOTHESIS_PROFILE=long $(PYTEST) -s --timeout 1800 tests/property/test_wire_fuzz.py $(PYTEST_ARGS)

unseen: $(STAMP) ## Check that no score is fitted to lines that are set aside, after data or scripts of fits have changed
	@$(PYTEST) -m "not live" tests/unit/test_train_notes.py $(PYTEST_ARGS)

mutate: $(STAMP) ## Put small faults into the core and count those that its tests notice
	@nice $(BIN)/python -m tools.mutate $(MUTATE_ARGS)

bench: $(BENCH_STAMP) ## Measure, beside the named references; BENCH_ARGS passes options on
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

fmt: $(STAMP) ## Format the code and mend what the linter can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

coverage: $(STAMP) ## Run the tests, list the lines and branches that they miss, and fail if there are too many
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --show-missing

constraints: ## Pin the newest versions that pyproject.toml allows
	@d=$$(mktemp -d) && trap 'rm -rf "$$d"' EXIT && \
	$(PYTHON) -m venv "$$d" && \
	"$$d/bin/python" -m pip --disable-pip-version-check --quiet install -e ".[dev,bench]" && \
	{ sed -n '/^#/p' constraints.txt && "$$d/bin/python" -m pip freeze --exclude-editable; } >"$$d/constraints.txt" && \
	cp "$$d/constraints.txt" constraints.txt

clean: ## Remove the environment, caches and build results
	@rm -rf $(VENV) build dist .coverage htmlcov .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
