# Every target installs what it needs. The machine needs python3, pip and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One process per core, at most eight. A file's tests share one process, and with it their fixtures.
# Files start in the order of their names: those of `docs` train for minutes, the last ones are short.
# Compiled tests are stored, also where this variable is set: compiling them takes 11 s per process.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 \
	--dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install demo docs notebooks package test test-slow test-portable test-all test-gpu faults check format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(VENV)/installed  ## install transept and its tools into .venv

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Installing into $(VENV) with the versions in constraints.txt. PyTorch is large: this may take minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: install  ## train a small translation model and show its output
	$(BIN)/transept demo

test: install  ## run the tests (about six minutes on two cores)
	$(PYTEST)

test-slow: install  ## run the slow tests
	$(PYTEST) -m 'slow and not gpu'

test-all: install  ## run every test, including the slow ones
	$(PYTEST) -m 'not gpu'

test-gpu: install  ## run the parity tests on a CUDA device, those of the kernels too
	$(BIN)/python -m pytest -m 'gpu or not gpu' tests/parity

PORTABLE := tests/golden tests/property/test_network.py tests/property/test_search.py \
	tests/parity/test_attention.py tests/parity/test_incremental.py tests/parity/test_loss.py \
	tests/parity/test_feed.py tests/unit/model tests/unit/training tests/unit/engines \
	tests/docs/test_table_1.py

SCALAR := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 OMP_NUM_THREADS=1

test-portable: install  ## run the numerical tests without vector instructions, and with two threads
	# The chapters of the walk-through.
	$(SCALAR) $(BIN)/python -W error::UserWarning docs/making/site.py --output build/portable --no-html
	$(SCALAR) $(PYTEST) -m 'not gpu' $(PORTABLE)
	# Threads of several processes share cores: they must not spin while they wait.
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(PYTEST) -m 'not gpu' $(PORTABLE)

faults: install  ## inject faults into training and data, and count the failures
	$(BIN)/python -m tests.faults $(if $(SEED),--seed $(SEED))

package: install  ## build sdist and wheel, and try the wheel in a fresh environment: build/dist
	rm -rf build/dist build/fresh
	$(BIN)/python -m hatchling build -d build/dist
	$(PYTHON) -m venv build/fresh
	# Most modules are not imported here, and compiling all would take half a minute.
	build/fresh/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c constraints.txt build/dist/*.whl
	cd build && fresh/bin/transept translate "I would like a cup of tea."

docs: install  ## run the walk-through and build the site: build/docs/html/index.html
	$(BIN)/python docs/making/site.py --output build/docs

notebooks: install  ## run the walk-through as notebooks, and add the wheel that they install: build/notebooks
	rm -rf build/notebooks
	mkdir -p build/notebooks
	$(BIN)/python docs/making/site.py --output build/docs --no-html
	cp build/docs/source/walkthrough/*.ipynb build/notebooks
	$(BIN)/python -m hatchling build -t wheel -d build/notebooks

check: install  ## lint, format, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## format the code and fix lint errors
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the virtual environment, all builds and caches
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests grammar -name __pycache__ -type d -prune -exec rm -rf {} +
