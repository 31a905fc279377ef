# `make demo` and `make test` set themselves up once and do nothing more the next time; .ci/setup says what is missing.
SHELL := /bin/bash
VENV ?= .venv
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.stamp-runtime
DEV := $(VENV)/.stamp-dev
# Two test processes a core: half of the long tests' time is waiting.
WORKERS ?= $(shell echo $$((2 * $$(nproc))))
DEMO_FLAGS ?= --bank none --model offline --rounds 3
REPLAY_FLAGS ?= --bank none --rounds 1 --tune-trials 0

.PHONY: help demo demo-recorded demo-replay setup test check soak clean

help:
	@echo "make demo    search the quickstart problem on this machine: no key, no GPU"
	@echo "make demo-recorded  watch a language model's recorded search in ten seconds: nothing is built, run or paid"
	@echo "make demo-replay  a language model's recorded search: its ideas and kernels, compiled, verified and timed here"
	@echo "make setup   the virtual environment with everything that tests and checks need"
	@echo "make test    run the tests; with THOROUGH=1 those too that take a core for seconds each"
	@echo "make check   static checks: format, lint, types, import contracts"
	@echo "make soak    the long tests: many kills, the attack suite in every tier"
	@echo "make clean   remove the virtual environment and what tools left behind"

demo: $(RUNTIME)
	$(BIN)/python -m graph.run problems/quickstart/problem.yaml $(DEMO_FLAGS)

demo-recorded: $(RUNTIME)
	$(BIN)/python -m graph.run --replay benchmarks/recordings/attention_causal.jsonl --replay-timings

demo-replay: $(RUNTIME)
	$(BIN)/python -m graph.run --replay benchmarks/recordings/attention_causal.jsonl $(REPLAY_FLAGS)

setup: $(DEV)

# What measures time or uses the GPU has the machine for itself. AMONG="sandboxed" keeps to the tests of that mark.
SHORT := $(if $(THOROUGH),,not thorough and )
test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder -m "$(SHORT)$(if $(AMONG),$(AMONG) and )not timing and not gpu"
	$(BIN)/python -m pytest -m "$(SHORT)$(if $(AMONG),$(AMONG) and )(timing or gpu)"

soak: $(DEV)
	RIDGELINE_TEST_TIERS=AB $(BIN)/python -m pytest tests/attacks
	$(BIN)/python -m pytest -m slow --timeout 3600

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py
	$(BIN)/lint-imports

$(RUNTIME): pyproject.toml constraints.txt .ci/setup
	.ci/setup $(VENV) runtime
	@touch $@

$(DEV): pyproject.toml constraints.txt .ci/setup
	.ci/setup $(VENV) dev
	@touch $(RUNTIME) $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
