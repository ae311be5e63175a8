# Each target does its own set-up: a virtual environment in .venv, made once and again when what it is made from changes.
PYTHON ?= python3
# Where the CPU build of torch comes from. Elsewhere a plain index serves: `make demo TORCH_INDEX=`.
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Container images often set this variable. Each process that a target starts would then compile torchspore's sources again (0.7 s).
unexport PYTHONDONTWRITEBYTECODE
# Real MindSpore for `make parity`. It wants NumPy 1 and Python 3.11 at most.
ORACLE ?= .oracle/bin/python

.PHONY: demo test test-all versions-sample check docs dist native-wheel bench bench-features size parity generate setup browser short-paths

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[dev,tools]'
	touch $@

# About a minute and a half on two cores, half of it for the .venv.
demo: $(READY)
	$(BIN)/torchspore run examples/quickstart/train.py --mode PYNATIVE
	$(BIN)/torchspore explain examples/quickstart/train.py --mode GRAPH

# Chromium for the tests of the pages, installed where this is root on Debian, and axe-core for their accessibility. Without them the tests
# say so and are skipped.
browser: $(READY)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && { apt-get update -qq; apt-get install -y -qq chromium graphviz >/dev/null; }; } || \
	echo "no Chromium here: tests/browser is skipped"
	@$(BIN)/python -m pip install --quiet --no-deps --requirement tests/browser/requirements.txt || \
	echo "no axe-core here: tests/browser/test_accessibility.py is skipped"

# The C++ short paths of operators, so that the tests run them; tests/unit/engine/test_short_paths.py compares them with Python.
short-paths: $(READY)
	-$(BIN)/torchspore doctor --build

# Everything but the slow tests, then the slow ones that stand for their kind.
test: $(READY) browser short-paths
	$(BIN)/python -m pytest -q -n 2 -m "not slow and not gpu" --durations=40 --durations-min=6
	$(BIN)/python -m pytest -q -n 2 -m "sample"

# All tests, or one of several equal parts of them: `make test-all SHARD=2/8`.
SHARD ?= 1/1
test-all: $(READY) browser short-paths
	$(BIN)/python -m pytest -q -n 2 --shard $(SHARD)

# The oldest and the newest combination of Python, torch and NumPy, a sample of the tests each: docs/reference/versions.md.
versions-sample: $(READY)
	test -x .versions/python3.14/usr/bin/python3.14 || command -v python3.14 >/dev/null || tools/debian_python.sh 3.14 .versions/python3.14
	$(BIN)/python tools/versions.py --run oldest --run newest --sample

check: $(READY)
	@! git grep -nE '^(<<<<<<<|>>>>>>>) '
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select PLW1514 src     # files are read and written in UTF-8, also on Windows
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml
	$(BIN)/python tools/generate.py --check
	$(BIN)/python tools/size.py --check
	$(BIN)/python tools/host_reads.py --check
	$(BIN)/python tools/vocabulary.py --check
	$(BIN)/python tools/translations.py --check
	$(BIN)/python tools/messages.py --check
	$(BIN)/python tools/build_site.py --check

# The site of the documentation in build/site, which a browser opens as a file. It needs Python 3.11 or newer for Zensical.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --requirement tools/documentation_site/requirements.txt
	$(BIN)/python tools/build_site.py

# Wheel and sdist in dist/, from the last commit: checked, installed in fresh environments, and a program trained with each.
dist: $(READY)
	$(BIN)/python -m pip install --quiet --requirement tools/release_requirements.txt
	$(BIN)/hadolint Dockerfile
	$(BIN)/python tools/release_packages.py

# The wheel with the C++ libraries in dist/, from the last commit, for this Python, its torch and this platform.
native-wheel: $(READY)
	$(BIN)/python tools/native_wheel.py

generate: $(READY)
	$(BIN)/python tools/generate.py

size: $(READY)
	$(BIN)/python tools/size.py

# docs/performance.md, which compares torchspore with other frameworks.
bench: $(READY)
	$(BIN)/python benchmarks/report.py --rounds 3 --seconds 0.3 $(if $(JAX),--jax $(JAX)) $(if $(wildcard $(ORACLE)),--oracle $(ORACLE))

# docs/measurements.md, which shows the costs and gains of features.
bench-features: $(READY)
	$(BIN)/python benchmarks/report.py --page measurements --rounds 3 --seconds 0.3 $(if $(wildcard $(ORACLE)),--oracle $(ORACLE))

parity: $(READY) $(ORACLE)
	$(BIN)/python tools/record.py parity --python $(ORACLE) --check
	$(BIN)/python tools/record.py signatures --python $(ORACLE) --check

.oracle/bin/python:
	$(PYTHON) -m venv .oracle
	.oracle/bin/python -m pip install --quiet mindspore==2.10.0 numpy==1.26.4
