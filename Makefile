# Every target sets up what it needs in .venv; a second run does nothing that is already done.
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
PY := $(VENV)/bin/python
LESSONS := $(notdir $(basename $(wildcard chapters/*.md)))
EXECUTED := $(LESSONS:%=_build/executed/%)
PACKAGE := $(shell find companion -name '*.py' -o -name '*.html')
PRESS := $(shell find book -type f -not -path '*/__pycache__/*')
EDITIONS := $(wildcard chapters/zh/* chapters/en/*)

.PHONY: help book serve publish-tree notebooks release grade test test-slow test-all lint bench clean
.DEFAULT_GOAL := help
.SECONDEXPANSION:
.DELETE_ON_ERROR:

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

book: _build/site/index.html  ## build the website of both languages into _build/site/
	@echo "Open _build/site/index.html (make serve adds the full-text search)"

serve: book  ## build the website and serve it on this machine: make serve PORT=8000
	@echo "http://127.0.0.1:$(PORT)/  (stop with Ctrl+C)"
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/site \
	  || { echo "If port $(PORT) is taken, choose another: make serve PORT=8001" >&2; exit 1; }

publish-tree: $(VENV)/site  ## build what is published into _build/publish/: COURSE_REPOSITORY=owner/name COURSE_SITE=https://…
	@$(PY) -m book.website --publish

notebooks: $(VENV)/dev  ## compose and execute both editions of the lessons that changed
	@$(MAKE) --silent --no-print-directory --jobs 2 $(EXECUTED)

release: $(VENV)/classroom  ## make the student notebooks and the instructor pack of the assignments in _build/release/
	@$(PY) -m classroom release

grade: $(VENV)/classroom  ## grade a class: make grade ASSIGNMENT=a1_order INBOX=folder OUT=folder ROSTER=roster.csv
	@test -n "$(ASSIGNMENT)" -a -n "$(INBOX)" -a -n "$(OUT)" || { echo "make grade ASSIGNMENT=a1_order INBOX=folder OUT=folder [ROSTER=roster.csv]" >&2; exit 1; }
	@$(PY) -m classroom grade "$(INBOX)" --assignment "$(ASSIGNMENT)" --out "$(OUT)" $(if $(ROSTER),--roster "$(ROSTER)")

test: $(VENV)/dev book  ## run all tests: package, notebooks of both editions, lint, website
	$(PY) -m pytest

test-slow: $(VENV)/dev  ## run what make test leaves out: empty environments, every notebook anew, the plain book
	$(PY) -m pytest -m slow

test-all: test  ## run every test, also those that need many minutes
	$(PY) -m pytest -m "slow or exhaustive"

lint: $(VENV)/dev  ## check the lessons and the code, without running them
	@$(PY) -m book.lint
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

bench: _build/bench/ready  ## measure the speed against other packages, in an environment of its own: make bench QUICK=1
	@for claim in import_time alibi rope; do echo "benchmarks/$$claim.py"; \
	  _build/bench/bin/python benchmarks/$$claim.py $(if $(QUICK),--quick) || exit 1; done

clean:  ## remove what was built, and the environment
	rm -rf $(VENV) _build *.egg-info .pytest_cache .hypothesis .ruff_cache

_build/site/index.html: $(EDITIONS) $(PRESS) _config.yml _toc.yml | $(VENV)/site
	@echo "Building the website, about a minute:"
	@$(PY) -m book.website

_build/executed/%: chapters/%.md $$(wildcard chapters/*/$$*.*) $(PACKAGE) book/compose.py book/lesson.py book/first_cell.py book/references.bib constraints.txt
	@$(PY) -m book.compose $*
	@mkdir -p $(@D) && touch $@

$(VENV)/site $(VENV)/dev $(VENV)/classroom: $(VENV)/%: pyproject.toml constraints.txt | $(VENV)/bin/python
	@test $* = classroom || command -v npm >/dev/null || ls -d _build/npm/katex-* >/dev/null 2>&1 \
	  || { echo "npm is missing (it fetches KaTeX); on Debian or Ubuntu: apt-get install npm" >&2; exit 1; }
	@echo "Installing what '$*' needs, about a minute:"
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@

_build/bench/ready: pyproject.toml constraints.txt
	@echo "Installing what 'bench' needs, about two minutes:"
	@$(PYTHON) -m venv _build/bench
	@_build/bench/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@# torchtune asks for packages that a timing of its rotation does not need.
	@_build/bench/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps torchtune
	@touch $@

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON); try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "Python 3.11, 3.12 or 3.13 is needed, this is $$($(PYTHON) --version); try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "The module venv is missing; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
