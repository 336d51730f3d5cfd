# Two commands for users: `make demo` and `make test`. Both build .venv when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-fast check format bench bench-peers audit clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/pegs demo

test: $(STAMP)
	tools/system-packages.sh
	$(BIN)/python -m pytest -n auto

test-fast: $(STAMP)
	tools/system-packages.sh
	$(BIN)/python -m pytest -n auto -m 'not slow'

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

audit: $(STAMP)
	$(BIN)/pegs audit --full

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

# Hours; goes on where it stopped. PEGSYNTH_BENCH_DATA names the folder of Adult and others.
bench-peers: $(STAMP)
	$(BIN)/python -m benchmarks.peers.run

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
