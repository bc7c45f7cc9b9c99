# The verbs of the project. A fresh machine needs Python 3.11 or newer, git and make.
PYTHON ?= python3
N ?= 20
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links $(COMPILE_OPTIONS)
PYTEST := $(BIN)/python -m pytest
DEMO_DATA := data/demo
# Hundreds of processes are started here: what Python compiled once is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-reset up test check audit bench soak accept lock format install install-dev

demo: install
	@STEPKEEPER_DATA=$(DEMO_DATA) exec $(BIN)/python manage.py up --demo --end-with-parent

demo-reset: install
	@STEPKEEPER_DATA=$(DEMO_DATA) exec $(BIN)/python manage.py up --demo --forget

up: install
	@exec $(BIN)/python manage.py up --end-with-parent

# All tests but soak, two processes at most. Browser tests run where Chromium is found and say so where they are skipped.
test: install-dev
	$(PYTEST) -q -n 2 --dist loadgroup -m "not soak"

# Exactly what .ci/run runs.
check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/djlint templates --lint --quiet
	@$(BIN)/python -m tests.advisories
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n 2 --dist loadgroup -m "not soak"
	$(BIN)/coverage combine --quiet
	@rm -f .coverage.* # half-written by processes that a test killed
	$(BIN)/coverage report

# Whether a locked package has a known vulnerability. Part of check; where no source can be reached it says so.
audit: install-dev
	@$(BIN)/python -m tests.advisories

bench: install-dev
	$(BIN)/python -m tests.benchmarks

soak: install-dev
	$(PYTEST) -q -m soak

# The acceptance list N times in a row; the first failure ends it, and so does a machine without a browser (CI=true).
accept: install-dev
	@for i in $$(seq $(N)); do echo "acceptance run $$i of $(N)"; CI=true $(PYTEST) -q -n 3 --dist loadgroup -m accept || exit 1; done

lock: install-dev
	$(COMPILE) pyproject.toml --group dashboard --output-file requirements.txt
	$(COMPILE) --group checks --constraint requirements.txt --output-file requirements-dev.txt

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# --- one virtual environment, made once; stamps keep a repeated start within seconds ---

install: $(VENV)/.installed
install-dev: $(VENV)/.installed $(VENV)/.pinned-dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Stepkeeper needs Python 3.11 or newer; this is %s. Say PYTHON=python3.11 make ..." % sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.pinned: requirements.txt | $(BIN)/python
	@echo "Installing requirements.txt into $(VENV) (hashes checked) ..."
	@$(PIP) --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.pinned-dev: requirements-dev.txt $(VENV)/.pinned
	@echo "Installing requirements-dev.txt into $(VENV) (hashes checked) ..."
	@$(PIP) --no-compile --require-hashes -r requirements-dev.txt # what is imported is compiled then
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.pinned
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
