# A few verbs, the same for people and for CI. `make` alone explains them.
PY ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
.DEFAULT_GOAL := help
.PHONY: help run test check format bench corpus soak crash docs clean

help: ## show this
	@echo "Holdfast: durable workflows in Python."
	@echo
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

$(STAMP): pyproject.toml
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PY=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PY) -m venv .venv || { echo "No venv module: on Debian run 'apt-get install python3-venv'"; exit 1; }
	@echo "Installing what Holdfast needs into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -q -e . --group dev --group bench
	@touch $@

run: $(STAMP) ## run an order that goes on where it was when it is interrupted
	@$(BIN)/python examples/durable.py

test: $(STAMP) ## run every test (ARGS="-k flowchart" for some)
	@$(BIN)/python -m pytest -q -n auto $(ARGS)

check: $(STAMP) ## formatting, lint, strict types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright
	@$(BIN)/mypy --no-error-summary examples

format: $(STAMP) ## format the code and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## measure, side by side with what we compete with (ONLY=engine)
	@$(BIN)/python -m bench $(ONLY)

corpus: $(STAMP) ## run a folder of conformance scenarios, locally and durably (DIR=...)
	@$(BIN)/python -m holdfast.testing.corpus $(or $(DIR),tests/corpus/elsa)

soak: $(STAMP) ## simulate many seeds with nodes that die (SEEDS=100000)
	@$(BIN)/python -m tests.simulation.soak $(or $(SEEDS),10000) 0

crash: $(STAMP) ## kill workers and a database while workflows run (ARGS="2000 30": workflows, kills)
	@$(BIN)/python -m tests.crash $(ARGS)

docs: $(STAMP) ## rebuild the generated reference pages
	@$(BIN)/python -m docs.build

clean: ## remove what was installed and measured
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis bench/out
