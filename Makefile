# make demo     the whole job on invented people: plan, measure, estimate, sample, score, report; files under demo/
# make test     format, lint, types, tests
# make fuzz     every reader of files with hostile inputs, for ten minutes: FUZZ="--seconds 3600" for an hour
# make docs     the documentation site, into build/site
# make bench    speed and memory against the alternatives
# make compare  error, time and memory beside other systems: hours; what is done is kept, so it can be stopped
# Each sets up .venv first where there is none, or where the lock file or pyproject.toml is newer.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
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

.PHONY: demo test fuzz docs bench compare lock clean
.SILENT:

demo: $(READY)
	$(BIN)/prade demo -o demo

test: $(READY)
	$(BIN)/ruff format --check --quiet . || { echo "format: run .venv/bin/ruff format ."; exit 1; }
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --strict --no-error-summary src
	$(BIN)/python -m pytest -n 3 --dist loadfile

fuzz: $(READY)
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(FUZZ)

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	echo "build/site/index.html"

bench: $(BENCH_READY)
	$(BIN)/python benchmarks/run.py

compare: $(BENCH_READY) $(PEERS)/dpmm/.ready $(PEERS)/opendp/.ready
	PYTHONPATH=$(CURDIR)/benchmarks $(BIN)/python -m compare $(COMPARE)

$(READY): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "prade needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)." \
			"Name another one: make PYTHON=python3.12 test" >&2; exit 1; }
	echo "Setting up .venv (once; some minutes)"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -qq -r requirements-dev.lock
	$(BIN)/pip install -qq --no-deps -e .
	touch $(READY)

# The alternatives to compare with, at versions that go with the lock file.
$(BENCH_READY): $(READY)
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
lock: $(READY)
	$(BIN)/pip install -qq pip-tools
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras \
		--no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements-dev.lock pyproject.toml

clean:
	rm -rf .venv $(PEERS) demo benchmarks/out
