# One word per job; the same words here and in continuous integration. Needs Python 3.11 or newer, gcc and make.
#
#   make demo     install and run the demonstration
#   make test     everything that is tested            make check    style, types, generated pages
#   make cover    unit suite without the compiler      make bounds   unit suite with array bounds checked
#   make fuzz     broken files by the thousand         make bench    speeds, beside other programs
#   make docs     write the generated pages            make clean    remove what the other words leave behind
#
# Another interpreter: make test PYTHON=python3.12 VENV=.venv312

PYTHON = python3
VENV = .venv
ARGS =
HISTORY = benchmarks/history.csv

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest $(ARGS)

.PHONY: help demo test check cover bounds fuzz bench docs clean

help:
	@sed -n '3,7s/^# *//p' Makefile

demo: $(VENV)/.installed-demo
	$(BIN)/duilian demo $(ARGS)

test: $(VENV)/.installed-dev
	$(PYTEST)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

# Compiled code is invisible to coverage: here the kernels run as plain Python, on inputs of a few tokens.
cover: $(VENV)/.installed-dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not compiled" --cov=duilian --cov-report=term-missing:skip-covered

# The setting is no part of Numba's cache key; tests/conftest.py gives this lane a cache folder of its own.
bounds: $(VENV)/.installed-dev
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m "not slow"

fuzz: $(VENV)/.installed-dev
	DUILIAN_FUZZ=full $(PYTEST) -m fuzz

# What cannot be installed here is left out of the comparison, which says so.
bench: $(VENV)/.installed-dev $(VENV)/.installed-peers
	$(BIN)/duilian bench --record $(HISTORY) $(ARGS)
	$(BIN)/python benchmarks/peers.py --record $(HISTORY) $(ARGS)

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/generate.py

# Leaves the virtual environment: remove $(VENV) by hand for a fresh one.
clean:
	rm -rf build dist demo out src/*.egg-info .numba-cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f $(VENV)/.installed-demo $(VENV)/.installed-dev $(VENV)/.installed-peers

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[data,report]'
	touch $@

$(VENV)/.installed-peers: pyproject.toml | $(BIN)/python
	-$(PIP) python-crfsuite
	-$(PIP) ltp-extension
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $@
