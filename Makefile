# Two commands for a newcomer: `make run` and `make test`. Everything else is for whoever works here.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export DAGSTER_HOME ?= $(CURDIR)/.dagster_home
export DAGSTER_DISABLE_TELEMETRY := 1

.PHONY: run test live screenshots ui check format bench mutants lock clean
.DEFAULT_GOAL := run

run: $(READY) ## set everything up and play a whole rehearsal round to its verdict
	$(BIN)/meta-eval rehearse

test: $(READY) ## set everything up and pass the tests
	$(BIN)/python -m pytest -n 2 --dist loadscope -q

live: $(READY) ## test the running thing: dagster dev, a browser, servers (needs chromium, postgresql, redis-server, java)
	$(BIN)/python -m pytest -n 0 -q meta_eval_tests/live

screenshots: $(READY) ## make the pictures of the operator's handbook anew (needs chromium)
	$(BIN)/python -m docs.screenshots.make

ui: $(READY) ## open Dagster on this machine, with a rehearsed round to look at where there is none
	@$(BIN)/meta-eval rounds --json | grep -q '"round"' || $(BIN)/meta-eval rehearse --round demo
	$(BIN)/dagster dev -w workspace.yaml

check: $(READY) ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## measure against the floor, and print ratios
	$(BIN)/python benchmarks/identifier_rates.py
	$(BIN)/python benchmarks/query_log.py
	$(BIN)/python benchmarks/bundle.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/store_of_rounds.py
	$(BIN)/python benchmarks/sessions.py

mutants: $(READY) ## change every artifact in every place; none may survive an audit
	$(BIN)/python -m meta_eval_tests.mutants

lock: $(READY) ## resolve the versions anew and lock them with their hashes
	$(BIN)/uv pip compile pyproject.toml --extra dagster --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-strip-extras --no-emit-index-url --no-header --no-annotate --upgrade -q -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra spark -c requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-strip-extras --no-emit-index-url --no-header --no-annotate --upgrade -q -o requirements-spark.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "meta_eval needs Python 3.11 or newer"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
