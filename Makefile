# Two commands for a newcomer: `make demo` and `make test`. Each makes .venv and installs what it needs, once.
PYTHON ?= python3
BIN := .venv/bin
# Files of tests go to as many processes as there are cores; a file stays in one, so what it trains is trained once.
# conftest.py orders the files.
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
FUZZ_MINUTES ?= 60
# Most modules of torch and transformers are never imported; Python writes bytecode of those that are, even where a
# container says it should not: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
# Goals two at a time, the output of each in one piece where make can (4.0 and later).
TWO_AT_A_TIME := --jobs 2 --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: demo install before-tests test check quick lint fuzz docs image clean help

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  make \1\t/'

.venv/demo.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[demo,serve]'
	@touch $@

.venv/dev.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	@touch $@ .venv/demo.done

demo: .venv/demo.done  ## install the core and the service, then train on 98,500 ICD-10-CM codes and tag three diagnoses
	$(BIN)/labelspace demo

install: .venv/dev.done  ## .venv with everything for development

lint: install  ## format, lint, types, import direction, insecure code, dependencies with known vulnerabilities
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/python tests/audit_dependencies.py

# Else every process of the tests compiles the same kernels. In thirds, so that make can give each core its share.
.venv/kernels-%.done: .venv/dev.done $(wildcard src/labelspace/kernels/*.py src/labelspace/*/*/kernels.py)
	@$(BIN)/python -m tests.compile_kernels $* 3
	@touch $@

# Else every process of the tests compiles the same modules and tests to bytecode; what fails here, fails there.
.venv/collected.done: .venv/dev.done
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null || true
	@touch $@

before-tests: lint .venv/kernels-1.done .venv/kernels-2.done .venv/kernels-3.done .venv/collected.done

test: install  ## what CI runs: lint, types, import direction, doctests, README blocks, all tests
	@$(MAKE) $(TWO_AT_A_TIME) before-tests
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

check: test  ## the same as `make test`

quick: install  ## the tests without the slow ones
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not slow'

fuzz: install  ## mutate models, data and checkpoints for FUZZ_MINUTES (60), with bounds checking; ARGS="--kind data"
	$(BIN)/python tests/fuzz/campaign.py --cases 1000000000 --minutes $(FUZZ_MINUTES) --boundscheck $(ARGS)

docs: install  ## write the tables of parameters in docs/methods from what the methods declare
	$(BIN)/python docs/update_tables.py

# Kernels are compiled for a CPU that the Dockerfile names; on ARM that name means nothing.
image:  ## build the container image labelspace, with docker
	@docker version >/dev/null 2>&1 || { echo 'docker must be usable, but is missing or its daemon does not answer; start it (docker version says more)' >&2; exit 2; }
	docker build --tag labelspace $(if $(filter arm64 aarch64,$(shell uname -m)),--build-arg CPU=generic) .

clean:  ## remove .venv and caches, also of compiled kernels
	find src -name "*.nb[ci]" -delete
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .fuzz build
