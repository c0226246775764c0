# Needs make and Python 3.10 or newer; everything else is installed into .venv by the first target that needs it.
# `make help` lists targets and variables.

PYTHON ?= python3
VENV ?= .venv
SEED ?= 1
SMOKE ?= 0
DUMP_PATH ?=
ITERATIONS ?=
EXTRAS ?= video
ARGS ?=
# Not `?=`: some shells export a variable of this name.
ENV := HalfCheetahRandDirecEnv
CONFIG ?= $(CONFIG_$(ENV))
CONFIG_HalfCheetahRandDirecEnv := experiments/configs/train_half_cheetah.json
CONFIG_MetaPointEnvCorner := experiments/configs/train_point.json

# Extras of setup.py that the tests need, without spaces: dev has the tools, the others what some tests skip without.
TEST_EXTRAS := dev,metaworld,ray,tensorboard,video

VENV_PYTHON := $(VENV)/bin/python
TRAIN_FLAGS = --env $(ENV) --seed $(SEED) \
	$(if $(CONFIG),--config_file "$(CONFIG)") \
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
	@echo "  ENV        train: environment by name (default: HalfCheetahRandDirecEnv; others: MetaPointEnvCorner, ...)"
	@echo "  SEED       train: root of all random numbers (default: 1)"
	@echo "  ITERATIONS train: iterations (default: as in CONFIG; 70 on the half cheetah, about five minutes on two cores)"
	@echo "  CONFIG     train: JSON file of settings (default: a preset where ENV has one, else the published settings)"
	@echo "  DUMP_PATH  train: run folder (default: a new one, named when training begins)"
	@echo "  EXTRAS     extras: which of those in setup.py, such as ray,metaworld (default: video)"
	@echo "  SMOKE      train, bench: 1 for tiny sizes that end within seconds (default: 0)"
	@echo "  ARGS       train, test, test-mujoco-py, bench: further arguments, such as ARGS=\"-m thorough\" for test"
	@echo "  PYTHON     interpreter that the environment is made from, 3.10 or newer (default: python3)"
	@echo "  VENV       folder of that environment (default: .venv)"

train: $(VENV)/.installed ## train ProMP on the half cheetah that runs forward or backward
	$(VENV_PYTHON) experiments/pro_mp.py $(TRAIN_FLAGS) $(ARGS)

test: $(VENV)/.installed-$(TEST_EXTRAS) ## run the quick tests
	$(VENV_PYTHON) -m pytest $(ARGS)

lint: $(VENV)/.installed-dev ## check code style, imports, types and spelling
	$(VENV_PYTHON) -m ruff check .
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(VENV_PYTHON) -m mypy
	$(VENV)/bin/codespell
	$(VENV)/bin/sphinx-lint --ignore docs/_build --ignore docs/api/generated docs

format: $(VENV)/.installed-dev ## sort imports, and repair what lint finds where that is safe
	$(VENV_PYTHON) -m ruff check --fix .

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build/html
	rm -rf docs/api/generated
	$(VENV_PYTHON) -m sphinx -W --keep-going -E -q -b html docs docs/_build/html
	@echo "The documentation begins at docs/_build/html/index.html"

bench: $(VENV)/.installed-ray ## measure speed and memory, write benchmarks/results.json
	$(VENV_PYTHON) benchmarks/run.py $(if $(filter-out 0,$(SMOKE)),--smoke) $(ARGS)

extras: $(VENV)/.installed-$(EXTRAS) ## install what only some need: make extras EXTRAS=video,ray

mujoco-py: $(VENV)/.installed-mujoco-py ## build the physics engine of the papers, MuJoCo 2.1.0 (Linux, Python 3.10 to 3.12)
	$(VENV_PYTHON) -m meta_policy_search.envs.mujoco_envs.engines.build

test-mujoco-py: mujoco-py $(VENV)/.installed-dev ## run the tests of that engine
	$(VENV_PYTHON) -m pytest -m mujoco_py tests/envs $(ARGS)

clean: ## delete what make has built: .venv, documentation, packages, caches (runs stay)
	rm -rf .venv build dist docs/_build docs/api/generated htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package is installed in place, so only a change of the packaging itself makes these run again.
$(VENV)/.installed: $(VENV_PYTHON) setup.py pyproject.toml
	$(call install,.)

$(VENV)/.installed-%: $(VENV_PYTHON) setup.py pyproject.toml
	$(call install,.[$*])

$(VENV_PYTHON):
	@command -v "$(PYTHON)" > /dev/null || { \
		echo "make: there is no $(PYTHON). Install Python 3.10 or newer, or name it: make PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 10))" || { \
		echo "make: $(PYTHON) is `"$(PYTHON)" --version`, but 3.10 or newer is needed. Name one: make PYTHON=python3.12"; \
		exit 1; }
	@"$(PYTHON)" -c "import ensurepip, venv" 2> /dev/null || { \
		echo "make: $(PYTHON) cannot make virtual environments. On Debian and Ubuntu: sudo apt install python3-venv"; \
		exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"

define install
@echo "Installing into $(VENV); the first time, this downloads about 0.7 GB (most of it TensorFlow), which takes minutes."
@"$(VENV_PYTHON)" -m pip install --disable-pip-version-check -e "$(1)" > "$(VENV)/install.log" 2>&1 || { \
	tail -n 20 "$(VENV)/install.log"; \
	echo "make: the installation failed; pip says why above, all of it in $(VENV)/install.log."; \
	echo "make: TensorFlow needs 64-bit Python 3.10 to 3.13:"; \
	echo "make: this is `"$(VENV_PYTHON)" --version`. For another one: make clean, then make PYTHON=/path/to/python"; \
	exit 1; }
@touch "$@"
endef
