# Everything a developer runs. `make test` is what CI runs, and nothing else.
.NOTPARALLEL:
.DEFAULT_GOAL := help

PYTHON ?= python3
DATA ?= data
PORT ?= 7480
BIN := .venv/bin
# What the benchmarks compare us with has an environment of its own.
PEERS := $(HOME)/.cache/quorate/bench-venv
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.PHONY: help
help:  ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: install
install: .venv/installed  ## Make .venv from the hashed requirements

.venv/installed: requirements/dev.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.venv/bin/python:
	tools/make-venv $(PYTHON) .venv

.PHONY: up
up: install  ## Run everything in one process: make up DATA=dir PORT=7480
	$(BIN)/quorate up --data $(DATA) --port $(PORT)

# What volumes, drives and agents live through takes as long as all the rest: on two cores they run beside it.
STORIES := tests/volumes tests/drives tests/agent tests/locks

.PHONY: test
test: install apiserver drbd-utils lint types imports  ## What CI runs: lint, types, import rules, tests
	tools/test $(BIN)/pytest $(STORIES)

.PHONY: apiserver
apiserver:  # Without them the tests that need them are skipped, loudly.
	tools/apiserver/fetch || echo "going on without a real kube-apiserver, etcd and kubectl" >&2

.PHONY: drbd-utils
drbd-utils:  # The same.
	tools/drbd-utils/fetch || echo "going on without a real drbdadm" >&2

.PHONY: lint
lint: install  ## Style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: types
types: install  ## Types, strictly
	$(BIN)/mypy

.PHONY: imports
imports: install  ## Who may import whom
	$(BIN)/lint-imports

.PHONY: format
format: install  ## Rewrite the code in our style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: bench
bench: install apiserver  ## Measure; results go to bench/RESULTS.md
	test -x $(PEERS)/bin/python || tools/make-venv $(PYTHON) $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench

.PHONY: metal
metal: install  ## Play on booted machines: make metal SCENARIOS='grow*' (docs/metal.md)
	$(BIN)/python -m metal $(SCENARIOS)

.PHONY: metal-list
metal-list: install  # Which scenarios there are.
	$(BIN)/python -m metal --list $(SCENARIOS)

.PHONY: crds
crds: install  ## Write deploy/crds and the page of conditions from the types
	$(BIN)/python -m quorate.api.generate

.PHONY: proto
proto: install  ## Write the broker's message classes from its proto file
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src --grpc_python_out=src quorate/server/broker/proto/cms.proto

.PHONY: requirements
requirements: install  ## Pin the newest versions of what requirements/*.in name
	for name in product dev bench; do \
		CUSTOM_COMPILE_COMMAND="make requirements" $(COMPILE) --upgrade -o requirements/$$name.txt requirements/$$name.in || exit; \
	done

.PHONY: clean
clean:  ## Remove what the tools made; .venv and data stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests bench metal -name __pycache__ -type d -exec rm -rf {} +
