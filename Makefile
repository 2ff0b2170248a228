# `make demo` and `make test` each do all their own set-up on a machine that has Python 3.11, make and a compiler.

PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
    $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)
BIN := .venv/bin
# Tests mostly wait, and hold gigabytes when they train: this many processes of them at once.
PROCESSES ?= 2
# One more where a process spends its time waiting for a cluster.
INTEGRATION_PROCESSES ?= 3

# The examples in docstrings; left out is what only a job, a scoring server, Alembic or MLflow can import.
EXAMPLES := --doctest-modules src/trainmaster docs/building $(addprefix --ignore=src/trainmaster/, job/script/names job/script/mlflow \
    sdk/mlflow/files.py sdk/mlflow/sign_in.py sdk/mlflow/stores.py \
    job/agent/mpi_site scoring/no_code dispatcher/store/migrations testing) \
    --ignore-glob='src/trainmaster/sdk/mlflow/transfer*'

.PHONY: help setup demo test quick check unit integration chaos test-kubernetes docs studio benchmarks clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

setup: .venv/ready ## the virtual environment with everything the other targets need

.venv/installed: pyproject.toml packages/azureml/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found on PATH"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable . --editable ./packages/azureml
	@touch $@

.venv/ready: .venv/installed
	$(BIN)/python .ci/install.py --editable '.[dev]'
	@touch $@

demo: .venv/installed ## train a small PyTorch network, then on two nodes under MPI: environments, live output, metrics, files
	$(BIN)/python examples/pytorch/submit.py
	@echo
	$(BIN)/python examples/mpi/submit.py
	$(BIN)/trainmaster logs last --rank all

test: setup check unit integration chaos ## everything CI runs, the quick things first

quick: setup check ## style, types, and the unit tests of what you have changed
	$(BIN)/pytest -q $$($(BIN)/python .ci/changed_tests.py)

check: setup ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup ## seconds
	$(BIN)/pytest tests/unit tests/conformance -n $(PROCESSES)
	$(BIN)/pytest $(EXAMPLES)

integration: setup ## real processes, environments, databases
	$(BIN)/python .ci/integration.py -n $(INTEGRATION_PROCESSES) --durations=25

chaos: setup ## things are killed, starved and fed garbage
	$(BIN)/pytest tests/chaos -n $(PROCESSES) -rP --durations=10

test-kubernetes: setup ## all tests on Kubernetes at full length; needs root and Debian 12, takes an hour
	KUBERNETES_IN_FULL=1 KUBERNETES_KILLS=200 KUBERNETES_RUNS=100 $(BIN)/pytest -rP --durations=10 \
	    tests/integration/test_*kubernetes*.py tests/chaos/test_kubernetes_kills.py

docs: setup ## the documentation site, in site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser."

studio/node_modules: studio/package-lock.json
	cd studio && npm ci --no-audit --no-fund
	@touch $@

studio: setup studio/node_modules ## the pages in the browser, from studio/ into the package; needs node
	$(BIN)/trainmaster server types --output studio/src/api/types.ts
	cd studio && npm run --silent check && npm test --silent && npm run --silent build

benchmarks: setup ## what using Trainmaster costs, against doing without it
	$(BIN)/python -m benchmarks

clean: ## removes what setup made
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
