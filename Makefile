# Two commands for users: `make demo` and `make test`. Both build .venv when it is missing; the
# first installs what pegsynth needs and nothing else, the second what tests and checks need too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PRODUCT := $(VENV)/.product
STAMP := $(VENV)/.installed

.PHONY: demo test test-all test-fast golden test-lowest test-newest check format plan-model bench bench-peers study audit doors fuzz faults soak watch \
	docs lock bom advisories wheel clean packages-locked packages-newest packages-lowest

# Tests start hundreds of processes; each would compile every module of the program again.
export PYTHONDONTWRITEBYTECODE :=

# The versions of the locks, checked by their hashes; REQUIREMENTS=newest or =lowest for others.
REQUIREMENTS := locked
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CHECKOUT := --no-deps --no-build-isolation --editable .

# A lock names every package, so nothing is resolved. Most modules of large packages are never
# imported, so none is compiled before it is.
$(PRODUCT): pyproject.toml requirements/lock.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --no-compile --require-hashes --requirement requirements/lock.txt
	$(PIP) $(CHECKOUT)
	touch $(PRODUCT)

$(STAMP): pyproject.toml requirements/lock-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(MAKE) --no-print-directory packages-$(REQUIREMENTS)
	touch $(PRODUCT) $(STAMP)

packages-locked:
	$(PIP) --require-hashes --requirement requirements/lock-dev.txt
	$(PIP) $(CHECKOUT)

packages-newest:
	$(PIP) --upgrade --editable '.[dev]'

packages-lowest:
	$(PIP) --requirement requirements/lowest.txt
	$(PIP) $(CHECKOUT)

demo: $(PRODUCT)
	$(BIN)/pegs demo

# A worker that has nothing left takes tests of another. Kernels are compiled before, once for all.
TOGETHER := -n auto --dist worksteal

test: $(STAMP)
	tools/system-packages.sh
	$(BIN)/python -m checks.bench.every_kernel --all
	$(BIN)/python -m pytest $(TOGETHER)

# The long forms too: every fault, the exact audits of whole releases, the browser's sweep, a Spark
# cluster of its own, the cells of the tutorials, every figure of the benchmarks.
test-all: $(STAMP)
	tools/system-packages.sh
	$(BIN)/python -m checks.bench.every_kernel --all
	PEGSYNTH_ALL=1 $(BIN)/python -m pytest $(TOGETHER)

test-fast: $(STAMP)
	tools/system-packages.sh
	$(BIN)/python -m checks.bench.every_kernel --all
	$(BIN)/python -m pytest $(TOGETHER) -m 'not slow'

check: $(STAMP)
	$(BIN)/ruff format --check src tests checks studies tools docs/conf.py
	$(BIN)/ruff check src tests checks studies tools docs/conf.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/words.py

format: $(STAMP)
	$(BIN)/ruff format src tests checks studies tools docs/conf.py
	$(BIN)/ruff check --fix src tests checks studies tools docs/conf.py

# What the program writes for fixed inputs and seeds, compared with checks/golden/hashes.json;
# `python -m checks.golden --write` keeps what it writes now.
golden: $(STAMP)
	$(BIN)/python -m checks.golden

audit: $(STAMP)
	$(BIN)/pegs audit --full

# Whether one row changes how others are read. The doors of servers, and releases of neighbours
# byte for byte, are tests; this is their long form.
LONG_DOORS := tests/auditing/test_file_twin.py tests/auditing/test_postgresql_doors.py tests/spark/test_spark_doors.py

doors: $(STAMP)
	$(BIN)/python -m checks.doors.run
	PEGSYNTH_LONG=1 $(BIN)/python -m pytest $(TOGETHER) $(LONG_DOORS)

# How often checks of correct draws raise an alarm, and whether broken ones are always caught.
watch: $(STAMP)
	$(BIN)/python -m checks.watch.run

# What `pegs plan` predicts, fitted anew after a method has changed: about 10 minutes of processor time.
plan-model: $(STAMP)
	$(BIN)/python -m checks.bench.plan_cells --again
	$(BIN)/python -m checks.bench.plan_accuracy --fit

bench: $(STAMP)
	$(BIN)/python -m checks.bench.run

# Hours; goes on where it stopped. PEGSYNTH_BENCH_DATA names the folder of Adult and others.
bench-peers: $(STAMP)
	$(BIN)/python -m checks.bench.peers.run

# Every table and figure of the paper, and a verdict on its findings; goes on where it stopped.
study: $(STAMP)
	$(BIN)/python -m studies.paper -o study-out

# Hostile files; goes on where it stopped. The record is in fuzz-out/, a finding makes it fail.
FUZZ_CASES ?= 100000
FUZZ_SECONDS ?= 7200
FUZZ_SEED ?= 1

fuzz: $(STAMP)
	$(BIN)/python -m checks.fuzz.run --cases $(FUZZ_CASES) --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# Kills commands 200 times at random moments, and at the steps that publish; stops them 200 times.
faults: $(STAMP)
	$(BIN)/python -m checks.faults.run
	$(BIN)/python -m checks.faults.run --stop

# An hour of releases at full load: memory, open files, figures and speed must stay the same.
soak: $(STAMP)
	$(BIN)/python -m checks.faults.soak

# The same tests with the lowest versions that pyproject.toml allows, and with the newest.
test-lowest:
	$(MAKE) VENV=.venv-lowest REQUIREMENTS=lowest test

test-newest:
	$(MAKE) VENV=.venv-newest REQUIREMENTS=newest test

# What a machine that reaches a package index and the advisories can bring up to date.
TOOLS := .venv-tools
$(TOOLS):
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check uv pip-audit

lock: | $(TOOLS)
	UV=$(TOOLS)/bin/uv tools/lock.sh

bom: $(STAMP)
	$(BIN)/python tools/bill_of_materials.py sbom.cdx.json docs/licences.md

advisories: | $(TOOLS)
	$(TOOLS)/bin/pip-audit --requirement requirements/lock-dev.txt --disable-pip --strict

# The site, which opens offline: build/docs/index.html. Tutorials are run; a warning is an error.
docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs build/docs

# A wheel in dist/ that says which commit it is of; its source must be that of the commit.
wheel: $(STAMP)
	test -z "$$(git status --porcelain -- src tools pyproject.toml README.md LICENSE)"
	PEGSYNTH_COMMIT=$$(git rev-parse HEAD) $(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest $(TOOLS) build dist .mypy_cache .pytest_cache .ruff_cache
