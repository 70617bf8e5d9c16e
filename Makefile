# Winnow. `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# The first Python on the PATH that is new enough; `make demo PYTHON=/path/to/python3.12` chooses another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$name"; exit; fi; done)
# --no-deps: the requirements are complete, without declared packages that are not needed (`requirements/left-out.txt`).
# --no-compile: byte code is written on first import; compiling everything takes longer than the demo's start. The
# variable must be empty, or each process of the demo would compile LiteLLM again.
export PYTHONDONTWRITEBYTECODE :=
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --require-hashes
PYTEST_ARGS ?=
# Two processes for each core: a test that waits for another program leaves its core to the next one. More than four only
# wait for each other. PYTEST_ARGS="-n 0" runs the tests in one process.
PYTEST = $(BIN)/python -m pytest --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) * 2)) --maxprocesses 4
export PIP_ROOT_USER_ACTION := ignore

.PHONY: help install install-dev consumers harbor demo test check bench soak pictures newest-litellm lock client-schemas image up pin-images

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

install: $(VENV)/.runtime ## Create .venv with what Winnow needs to run
install-dev: $(VENV)/.dev ## The same, with test and check tools

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Winnow needs Python 3.11 or newer, and none is on the PATH. Install one, or give its path: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Winnow needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)." >&2; exit 1; }
	@echo "Creating $(VENV) with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Python could not create a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/.runtime: requirements/base.txt | $(VENV)/bin/python
	@echo "Installing what Winnow needs to run (about 30 s)"
	@$(PIP_INSTALL) -r requirements/base.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/telemetry.txt $(VENV)/.runtime
	@echo "Installing test and check tools"
	@$(PIP_INSTALL) -r requirements/dev.txt
	@$(PIP_INSTALL) -r requirements/telemetry.txt
	@touch $@

# In a folder of their own, which only the tests of exports read: they need other versions of what is installed here.
# PyTorch's CPU build is found with PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL.
consumers: $(VENV)/.consumers ## Install the trainers that read our exports in the tests (800 MB)

$(VENV)/.consumers: requirements/consumers.txt requirements/consumers-prm.txt $(VENV)/.dev
	@echo "Installing trainers for the tests of exports"
	@rm -rf $(VENV)/consumers
	@$(PIP_INSTALL) --target $(VENV)/consumers -r requirements/consumers.txt
	@$(PIP_INSTALL) --target $(VENV)/consumers/prm -r requirements/consumers-prm.txt
	@touch $@

# `exec`: the demo replaces the shell, so that signals to make or its process group reach it.
demo: install ## Run Winnow with a sample project (PORT, WINNOW_DATA, RESET=1, WINNOW_DEMO_MODEL, WINNOW_DEMO_API_BASE)
	@exec $(BIN)/python manage.py demo $(if $(filter-out 0,$(RESET)),--reset)

# The rest needs servers, Docker or a browser: `.ci/run` has all.
test: install-dev ## Run the tests that need no server and no browser, in parallel (PYTEST_ARGS="-k lease -x")
	@exec $(PYTEST) -m "not (slow or postgres or redis or docker or browser or product)" $(PYTEST_ARGS)

check: install-dev ## Lint, types, imports, migrations, deployment settings, file lengths
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec .ci/check

bench: install-dev ## Measure throughput against the machine's limits (SMALL=1: only whether each benchmark works)
	@exec $(BIN)/python -m benchmarks $(if $(filter-out 0,$(SMALL)),--small)

harbor: install-dev ## Install Harbor for the tests that run it (470 MB; needs Python 3.12 and Docker)
	@exec .ci/harbor

soak: consumers harbor ## The long tests: kills, restarted servers, images, compose, trainers, Harbor, the newest LiteLLM
	@$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)
	@exec .ci/newest-litellm

newest-litellm: install-dev ## Run the tests of asking on the newest LiteLLM, before its pin is moved
	@exec .ci/newest-litellm

pictures: install-dev ## Take the pictures of the docs again, from the running demo at URL (needs Chromium and pngquant)
	@exec $(BIN)/python -m tests.e2e.pictures $(or $(URL),http://127.0.0.1:8000)

lock: install-dev ## Resolve requirements/*.in again: pinned versions, with hashes
	@for name in base dev; do \
		extras=; [ $$name = dev ] || extras="requirements/agents.in requirements/live.in requirements/mcp.in requirements/oidc.in requirements/postgres.in requirements/predict.in requirements/s3.in"; \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--override requirements/left-out.txt --no-emit-index-url --no-header --no-annotate requirements/$$name.in $$extras --output-file requirements/$$name.txt; done
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.12 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate requirements/harbor.in --output-file requirements/harbor.txt
	@for name in telemetry train; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --constraint requirements/base.txt \
			--no-emit-index-url --no-header --no-annotate requirements/$$name.in --output-file requirements/$$name.txt; done
	@for name in consumers consumers-prm; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-deps \
			$(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS)) --no-emit-index-url --no-header --no-annotate requirements/$$name.in --output-file requirements/$$name.txt; done

client-schemas: install-dev ## Write the responses of the Python client again, from the OpenAPI document
	@$(BIN)/python -m deploy.client_schemas
	@$(BIN)/ruff format --quiet winnow_client/schemas.py

image: ## Build the container image (BASE=python:3.13-slim, TAG=winnow)
	@exec docker build --tag $(or $(TAG),winnow) $(if $(BASE),--build-arg BASE=$(BASE)) .

up: ## Build the image and start it with PostgreSQL and Redis, by Docker Compose 2.24 or newer
	@found=$$(docker compose version --short 2>/dev/null) || { \
		echo "This needs Docker with the plugin Compose, 2.24 or newer; on Debian and Ubuntu: apt install docker-compose-v2 or docker-compose-plugin" >&2; exit 1; }; \
	IFS=. read -r major minor _ <<<"$${found#v}"; \
	((major > 2 || (major == 2 && minor >= 24))) || { \
		echo "compose.yaml needs Docker Compose 2.24 or newer; this is $$found. Install a newer plugin: https://docs.docker.com/compose/install/" >&2; exit 1; }
	@exec docker compose up --build

pin-images: ## Look up the digests of the base images again
	@exec deploy/pin-images
