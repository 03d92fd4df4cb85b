# `make demo` talks to a Persona on this machine; `make test` checks everything. One .venv for all of it; see .ci/setup for its parts.

override SAY := $(value SAY)
export SAY
# Scenes mostly wait, so three at a time do not need three cores.
WORKERS ?= 3
# Hundreds of processes of ours start in a run: their bytecode is kept, also where the environment says otherwise.
PYTEST := PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n $(WORKERS) --dist loadgroup

.PHONY: help venv demo test test-unit test-long probes deb clean

help:
	@echo 'make demo             chat with a Persona: a private homeserver, a small local model, nothing left behind'
	@echo 'make demo SAY="hi"    say that, print the answer, end'
	@echo 'make venv             everything the demo, the tests and the probes need, in .venv and .npm'
	@echo 'make test             linters, types, docs, unit tests, and tests with the real parts'
	@echo 'make test-unit        unit tests alone, in under a minute'
	@echo 'make test-long        the full campaigns'
	@echo 'make probes           ask the outside world what the code relies on, and measure'
	@echo 'make deb              a Debian package in dist/, with everything that it needs'
	@echo 'make clean            remove what the above made'

venv: .venv/.tests

# Asked before anything is installed: minutes of waiting should not end in "no terminal".
demo:
	@test -n "$$SAY" || test -t 0 || { echo 'There is no terminal to chat in: say something with make demo SAY="hello".' >&2; exit 1; }
	@$(MAKE) --no-print-directory --silent .venv/.demo
	@.venv/bin/mind demo $${SAY:+--say "$$SAY"}

test: .venv/.tests
	@$(PYTEST) -m 'not long' tests/unit tests/real

test-unit: .venv/.tests
	@$(PYTEST) -m 'not long' tests/unit

test-long: .venv/.tests
	@$(PYTEST) --hypothesis-profile=long tests/unit tests/real

probes: .venv/.tests
	@set -e; for probe in probes/*.py; do echo "== $$probe"; .venv/bin/python "$$probe"; done

deb:
	@packaging/deb

clean:
	rm -rf .venv .npm .demo .deb dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.demo: pyproject.toml .ci/setup
	@.ci/setup demo

.venv/.tests: .venv/.demo
	@.ci/setup tests
