# `make demo` runs the demo, `make check` runs everything CI runs. Both set up .venv first.
PYTHON ?= python3
# Debian packages that pip cannot install; `make system` installs them as root.
SYSTEM := python3-venv default-jre-headless chromium postgresql
COMPILER := g++ python3-dev
CROSS := g++ g++-aarch64-linux-gnu qemu-user
BIN := .venv/bin

.PHONY: demo check lint types layers docs test coverage performance evidence explore fuzz dist release-check sanitize aarch64 compiler system clean

demo: .venv/report
	$(BIN)/softcal demo

check: lint types layers docs test

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/mypy

layers: .venv/dev
	$(BIN)/lint-imports

test: .venv/dev system
	$(BIN)/pytest --numprocesses 2 --dist loadfile

# The same with a table of the lines that no test runs, which takes longer.
coverage: .venv/dev system
	$(BIN)/pytest --numprocesses 2 --dist loadfile --cov --cov-report=term

docs: .venv/dev
	$(BIN)/python tools/build_docs.py

# Measures everything on docs/performance.md and writes it: about ten minutes on two idle cores.
performance: .venv/dev system
	$(BIN)/python -m benchmarks.performance

# Runs every other library: 15 minutes on a quiet machine. Saves the results, writes docs/evidence.md.
evidence: .venv/evidence
	$(BIN)/python -m benchmarks.evidence

# The source archive, and the wheel built from it.
dist: .venv/release
	rm -rf dist
	$(BIN)/python -m build

release-check: dist
	$(BIN)/python tools/check_release.py

# The loops in C++ under AddressSanitizer and UndefinedBehaviorSanitizer, with random arguments.
sanitize: .venv/dev
	$(BIN)/python tools/sanitize.py

# The results of every instruction set here, and of an emulated aarch64, must have the same digits.
LEVELS := -std=c++17 -O3 -ffp-contract=off -Inative tools/levels.cpp native/portable.cpp native/baseline.cpp native/avx2.cpp
aarch64:
	@{ command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64; } > /dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install --yes $(CROSS); } || \
	  { echo "make: this needs a cross compiler and an emulator: install $(CROSS)" >&2; exit 1; }
	mkdir -p build
	g++ $(LEVELS) -o build/levels
	aarch64-linux-gnu-g++ -static $(LEVELS) -o build/levels-aarch64
	build/levels > build/levels.txt
	qemu-aarch64 build/levels-aarch64 | sed 's/$$/ (aarch64)/' >> build/levels.txt
	cat build/levels.txt
	test "$$(cut -c 1-16 build/levels.txt | sort -u | wc -l)" = 1

# The property tests with new random examples, twenty times as many.
explore: .venv/dev
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest --numprocesses 2 --dist loadfile $$(grep -l "@given" tests/test_*.py)

fuzz: .venv/fuzz
	PYTHONPATH=tests $(BIN)/python tools/fuzz.py

# The tests start a Spark cluster, which needs Java, and open the report in a real browser.
system:
	@{ command -v java && { command -v chromium || command -v google-chrome; }; } > /dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install --yes $(SYSTEM); } || \
	  { echo "make: the tests need Java and Chromium: install $(SYSTEM)" >&2; exit 1; }

# The loops over rows are C++. Without a compiler softcal uses NumPy, which is much slower.
compiler: | $(BIN)/python
	@{ command -v c++ && $(BIN)/python -c "import sysconfig; open(sysconfig.get_path('include') + '/Python.h')"; } > /dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install --yes $(COMPILER); } || \
	  echo "make: no C++ compiler ($(COMPILER)): softcal will use its slower NumPy loops" >&2

# One stamp per set of dependencies; a changed pin, dependency, or C++ source installs again.
.venv/%: pyproject.toml constraints.txt hatch_build.py $(wildcard native/*) | $(BIN)/python compiler
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	touch $@

# Debian has venv in a package of its own; install it as root.
$(BIN)/python:
	$(PYTHON) -m venv .venv || { [ "$$(id -u)" = 0 ] && apt-get update && \
	  apt-get install --yes $(SYSTEM) && $(PYTHON) -m venv .venv; }

clean:
	rm -rf .venv build dist
