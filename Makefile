# Requires make and Python 3.10 to 3.13. Targets install everything else into .venv on first use.
# `make help` lists targets and variables.

PYTHON ?= python3
VENV ?= .venv
SEED ?= 1
SMOKE ?= 0
DUMP_PATH ?=
ITERATIONS ?=
EXTRAS ?= video
ARGS ?=
# `:=` instead of `?=`, because some shells export a variable ENV.
ENV := HalfCheetahRandDirecEnv
CONFIG ?= experiments/configs/make_train$(if $(filter HalfCheetahRandDirecEnv,$(ENV)),_half_cheetah).json

# Extras of setup.py for the tests, without spaces: dev contains the tools; without the others, some tests are skipped.
TEST_EXTRAS := dev,metaworld,ray,tensorboard,video

VENV_PYTHON := $(VENV)/bin/python
TRAIN_FLAGS = --env $(ENV) --seed $(SEED) --config_file "$(CONFIG)" \
	$(if $(ITERATIONS),--n_itr $(ITERATIONS)) \
	$(if $(DUMP_PATH),--dump_path "$(DUMP_PATH)") \
	$(if $(filter-out 0,$(SMOKE)),--smoke)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help train test lint format docs bench extras mujoco-py test-mujoco-py clean

help: ## list targets and variables
	@echo "make TARGET [VARIABLE=value ...]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  ENV        train: name of the environment, such as MetaPointEnvCornerGoals (default: HalfCheetahRandDirecEnv)"
	@echo "  SEED       train: root seed of all random generators (default: 1)"
	@echo "  ITERATIONS train: number of iterations (default: half cheetah 334, others 70)"
	@echo "  CONFIG     train: JSON file of settings (default: fast settings with 6 tasks for the half cheetah, otherwise published ones with 20 tasks)"
	@echo "  DUMP_PATH  train: run folder (default: data/promp/<environment>/<time>_seed<seed>)"
	@echo "  EXTRAS     extras: extras of setup.py, such as ray,metaworld (default: video)"
	@echo "  SMOKE      train, bench: 1 for a smoke test with tiny sizes (default: 0)"
	@echo "  ARGS       train, test, test-mujoco-py, bench: further arguments, such as ARGS=\"-m gradients\" for test"
	@echo "  PYTHON     Python interpreter for the virtual environment, 3.10 to 3.13 (default: python3)"
	@echo "  VENV       folder of the virtual environment (default: .venv)"

train: $(VENV)/.installed ## train ProMP (default: half cheetah, forward or backward)
	$(VENV_PYTHON) experiments/pro_mp.py $(TRAIN_FLAGS) $(ARGS)

test: $(VENV)/.installed-$(TEST_EXTRAS) ## run the fast tests
	$(VENV_PYTHON) -m pytest $(ARGS)

lint: $(VENV)/.installed-dev ## check code style, imports, types and spelling
	$(VENV_PYTHON) -m ruff check .
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(VENV_PYTHON) -m mypy
	$(VENV)/bin/codespell
	$(VENV)/bin/sphinx-lint --ignore docs/_build --ignore docs/api/generated docs

format: $(VENV)/.installed-dev ## sort imports and apply safe fixes of lint errors
	$(VENV_PYTHON) -m ruff check --fix .

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build/html, in about four minutes
	@echo "The build takes about four minutes. Sphinx shows the pages that it reads and writes."
	rm -rf docs/api/generated
	$(VENV_PYTHON) -m sphinx -W --keep-going -E -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(VENV)/.installed-ray ## measure speed and memory; writes benchmarks/results.json
	$(VENV_PYTHON) benchmarks/run.py $(if $(filter-out 0,$(SMOKE)),--smoke) $(ARGS)

extras: $(VENV)/.installed-$(EXTRAS) ## install optional dependencies: make extras EXTRAS=video,ray

mujoco-py: $(VENV)/.installed-mujoco-py ## build mujoco-py with MuJoCo 2.1.0, as in the papers (Linux, Python 3.10 to 3.12)
	$(VENV_PYTHON) -m meta_policy_search.envs.mujoco_envs.engines.build

test-mujoco-py: mujoco-py $(VENV)/.installed-dev ## run the tests of mujoco-py
	$(VENV_PYTHON) -m pytest -m mujoco_py tests/envs $(ARGS)

clean: ## delete .venv, documentation, packages and caches; keeps runs
	rm -rf .venv build dist docs/_build docs/api/generated htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package is installed in place: only changes of setup.py trigger a new installation.
$(VENV)/.installed: $(VENV_PYTHON) setup.py
	$(call install,.)

$(VENV)/.installed-%: $(VENV_PYTHON) setup.py
	$(call install,.[$*])

$(VENV_PYTHON):
	@command -v "$(PYTHON)" > /dev/null || { \
		echo "make: $(PYTHON) not found. Install Python 3.10 to 3.13, or pass its path: make PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c "import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))" || { \
		echo "make: $(PYTHON) is `"$(PYTHON)" --version`, but Python 3.10 to 3.13 is required. Pass another interpreter: make PYTHON=python3.12"; \
		exit 1; }
	@"$(PYTHON)" -c "import ensurepip, venv" 2> /dev/null || { \
		echo "make: $(PYTHON) cannot create virtual environments. On Debian and Ubuntu: sudo apt install python3-venv"; \
		exit 1; }
	@rm -f "$(VENV)"/bin/python*
	"$(PYTHON)" -m venv "$(VENV)"

define install
@echo "Installing into $(VENV). The first installation downloads about 0.7 GB (mostly TensorFlow) and takes minutes."
@"$(VENV_PYTHON)" -m pip install --disable-pip-version-check -e "$(1)" > "$(VENV)/install.log" 2>&1 || { \
	tail -n 20 "$(VENV)/install.log"; \
	echo "make: the installation failed. The end of pip's output is above; complete output: $(VENV)/install.log"; \
	echo "make: TensorFlow requires 64-bit Python 3.10 to 3.13; this is `"$(VENV_PYTHON)" --version`."; \
	echo "make: to use another Python: make clean, then make PYTHON=/path/to/python"; \
	exit 1; }
@! grep "does not provide the extra" "$(VENV)/install.log"
@touch "$@"
endef
