# make demo     the whole job on invented people: plan, measure, estimate, sample, score, report; files under demo/
# make test     format, lint, types, all tests
# make check    format, lint, types, and the tests that need neither minutes, nor a server, nor a browser
# make fuzz     every reader of files with hostile inputs, for ten minutes: FUZZ="--seconds 3600" for an hour
# make docs     the documentation site, into build/site
# make bench    speed and memory against the alternatives
# make compare  error, time and memory beside other systems: hours; what is done is kept, so it can be stopped
# Each sets up .venv first where there is none, or where a lock file or pyproject.toml is newer: the demonstration installs
# only what prade itself needs (requirements.lock), everything else the tools of development too (requirements-dev.lock).

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEV_READY := .venv/.ready-dev
BENCH_READY := .venv/.ready-bench
PEERS := .venv-peers
PEERS_PYTHON ?= python3.11

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The processes that tests start would otherwise compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# What `make compare` is told, as in: make compare COMPARE="nist adult --minutes 20"
COMPARE ?=

# What `make fuzz` is told.
FUZZ ?=

# What is installed for checks: locked (the lock file), newest, or oldest (the lower bounds of pyproject.toml).
DEPENDENCIES ?= locked

.PHONY: demo test check static fuzz docs bench compare lock clean
.SILENT:

demo: $(READY)
	$(BIN)/prade demo -o demo

test: static
	$(BIN)/python -m pytest -n 3 --dist loadfile

check: static
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not slow and not engine and not browser"

static: $(DEV_READY)
	$(BIN)/ruff format --check --quiet . || { echo "format: run .venv/bin/ruff format ."; exit 1; }
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --strict --no-error-summary src

fuzz: $(DEV_READY)
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(FUZZ)

docs: $(DEV_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	echo "build/site/index.html"

bench: $(BENCH_READY)
	$(BIN)/python benchmarks/run.py

compare: $(BENCH_READY) $(PEERS)/dpmm/.ready $(PEERS)/opendp/.ready
	PYTHONPATH=$(CURDIR)/benchmarks $(BIN)/python -m compare $(COMPARE)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "prade needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)." \
			"Name another one: make PYTHON=python3.12 test" >&2; exit 1; }
	echo "Setting up .venv: once, about half a minute"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -qq -r requirements.lock
	$(BIN)/pip install -qq --no-deps -e .
	touch $@

$(DEV_READY): $(READY) requirements-dev.lock
	echo "Adding the tools of development to .venv: once, some two minutes"
	case "$(DEPENDENCIES)" in \
		locked) $(BIN)/pip install -qq -r requirements-dev.lock ;; \
		newest) $(BIN)/pip install -qq --upgrade --upgrade-strategy eager -e '.[dev]' ;; \
		oldest) $(BIN)/python tools/lower_bounds.py > .venv/oldest.txt && $(BIN)/pip install -qq -c .venv/oldest.txt -e '.[dev]' ;; \
		*) echo "DEPENDENCIES is locked, newest or oldest; it was '$(DEPENDENCIES)'" >&2; exit 1 ;; \
	esac
	touch $@

# The alternatives to compare with, at versions that go with the lock file.
$(BENCH_READY): $(DEV_READY)
	$(BIN)/pip install -qq -c requirements-dev.lock -e '.[bench]'
	touch $(BENCH_READY)

# Peers whose pins clash with ours and with each other, each in an environment of its own.
$(PEERS)/%/.ready: benchmarks/peers/%.txt
	$(PEERS_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2>/dev/null || { \
		echo "The peers need Python 3.10 or 3.11. Name one: make PEERS_PYTHON=/usr/bin/python3.11 compare" >&2; exit 1; }
	echo "Setting up $(PEERS)/$* (once)"
	$(PEERS_PYTHON) -m venv $(PEERS)/$*
	echo '*' > $(PEERS)/.gitignore
	$(PEERS)/$*/bin/pip install -qq -r $<
	touch $@

# Choose the newest versions again.
lock: $(DEV_READY)
	$(BIN)/pip install -qq pip-tools
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras \
		--no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements-dev.lock pyproject.toml
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --constraint requirements-dev.lock --strip-extras \
		--no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv $(PEERS) demo benchmarks/out
