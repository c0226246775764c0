"""Runs every command of README and documentation with SMOKE=1 and smaller sizes.

The test runs each command of `README.md` and `docs/`. Exceptions are listed in `ELSEWHERE` with the reason or the test
that runs them. A new command is therefore run, or fails until it is listed.
"""
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import meta_policy_search as mps
from meta_policy_search.utils import logger
from tests.helpers.documentation import ROOT, blocks_of

pytestmark = pytest.mark.documentation

PAGES = [ROOT / "README.md", ROOT / "docs" / "notebooks" / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]
PROGRAMS = (r"(?:[A-Z_]+=\S* )*(?:apt-get|bash|cd|git|jupyter|make|meta-policy-search|pip|python|ray|sudo|taskset|"
            r"tensorboard)")
LINE = re.compile(rf"^ *(?:\w*\$ +)?({PROGRAMS} .*?)(?:  +#.*)?$")
INLINE = re.compile(rf"(`{{1,2}})({PROGRAMS} [^`]+)\1")
NO_COMMAND = re.compile(r"(make: |meta-policy-search \w+: |pip could not ).*")  # output of programs

ELSEWHERE = {  # pattern of a command: where it runs instead, or why no test runs it
    r"make (test|docs|lint)( .*)?": ".ci/run",
    r"make extras .*": "installs packages; test_packaging.py checks the target",
    r"make clean": "deletes the environment; test_packaging.py checks the target",
    r"tensorboard .*": "a server of another project",
    r"make bench.*": "tests/benchmarks/test_benchmarks.py runs its script",
    r"make (mujoco-py|test-mujoco-py).*": ".ci/run",
    r"python -m meta_policy_search\.envs\.mujoco_envs\.engines\.build": "part of make mujoco-py, which .ci/run runs",
    r"META_POLICY_SEARCH_ENGINE=mujoco-py make train": "make test-mujoco-py runs environments on that engine",
    r"python experiments/pro_mp\.py --parallel (ray|'\{).*": "needs Ray: tests/samplers/test_ray_sampler.py",
    r"python -m experiments\.results\.compare_searches": "tests/experiments/test_compare_searches.py, one seed",
    r"python -m experiments\.results\.estimator_laws": "tests/experiments/test_estimator_laws.py, fewer samples",
    r"python benchmarks/ray_cost_model\.py": "takes minutes and requires Ray; tests/benchmarks runs its functions",
    r"python benchmarks/compare\.py .*": "tests/benchmarks/test_compare.py with small sizes",
    r"ray (start|job submit).*": "needs a cluster",
    r"python -m experiments\.reproduce .*": "tests/experiments/test_reproduce.py, a small entry",
    r"python experiments/metaworld_evaluation\.py .*": "tests/experiments/test_metaworld_evaluation.py, shorter",
    r"python -m meta_policy_search( COMMAND)?": "tests/cli/test_main.py",
    r"meta-policy-search( COMMAND| --help| evaluate| sweep| train)?": "tests/cli/test_main.py",
    r"meta-policy-search sweep .*": "tests/cli/test_sweep.py reads its grid and runs smaller grids",
    r"pip install .*": "make and .ci/run install the package; other packages are the user's choice",
    r"python -m pip install .*": "as above",
    r"(sudo )?(apt-get|apt) install .*": "needs an administrator",
    r"python docs/draw_\w+\.py": "test_pages.py checks its output",
    r"python docs/notebooks/execute\.py": "test_notebooks.py",
}
SMALLER = {"--meta_batch_size": "2", "--max_path_length": "10", "--num_tasks": "2", "--rollouts": "2",
           "--snapshot": "0", "--compare_steps": "1", "--n_itr": "4", "--rollouts_per_meta_task": "2"}
PLACEHOLDERS = {"RUN_FOLDER": "data/my_run", "<folder>": "data/my_run", "OTHER_RUN_FOLDER": "data/other_run"}
NEEDS = {"MetaWorld": "metaworld", "meta_world": "metaworld", "search render": "imageio_ffmpeg",
         "csv tensorboard": "tensorboard", "wandb sync": "wandb"}  # part of a command: module of an extra
REFUSED = {"meta-policy-search resume data/corner --inner_lr 0.2 --gae_lambda 0.9"}  # documented error
OTHER_TASKS = {"HalfCheetah*": "MetaPoint*"}  # for small runs
TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 10, "hidden_sizes": (8,)}


def commands_of(text):
    """Returns all commands of a page, each on one line."""
    text = re.sub(r"\\\n\s*", "", text)
    found = [match[1].strip() for match in map(LINE.match, text.splitlines()) if match]
    found += [re.sub(r"\s+", " ", match[2]).strip() for match in INLINE.finditer(text)]
    return [command for command in found if not NO_COMMAND.fullmatch(command)]


def is_elsewhere(command):
    return any(re.fullmatch(pattern, command) for pattern in ELSEWHERE)


def all_commands():
    """Returns the commands of all pages without duplicates, each with the first page that contains it."""
    first = {}
    for page in PAGES:
        for command in commands_of(page.read_text(encoding="utf-8")):
            first.setdefault(command, page.relative_to(ROOT).as_posix())
    return first


COMMANDS = all_commands()
HERE = [command for command in COMMANDS if not is_elsewhere(command)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Copies the parts of the checkout that commands use, with a virtual environment that is already installed."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("experiments", "benchmarks", "docs"):  # commands may write to these folders
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    for name in ("meta_policy_search", "README.md", "Makefile", "setup.py", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    binary = folder / ".venv" / "bin" / "python"
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    binary.chmod(0o755)
    for name in (".installed", ".installed-dev", ".installed-docs"):
        (folder / ".venv" / name).touch()
    return folder


@pytest.fixture
def here(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("SMOKE", "1")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in loaded_scripts():  # scripts of the original checkout
        monkeypatch.delitem(sys.modules, name)
    yield checkout
    for name in loaded_scripts():
        del sys.modules[name]


def loaded_scripts():
    return [name for name in sys.modules if name.split(".")[0] == "experiments"]


def run_script(script, *arguments):
    """Runs a script in this process like `python script arguments`; returns its exit status."""
    from meta_policy_search.tf_compat import tf

    argv, path = sys.argv, list(sys.path)
    sys.argv, sys.path[:0] = [script, *arguments], [os.path.abspath(os.path.dirname(script))]
    logger.reset()
    try:
        with tf.Graph().as_default() as graph:
            runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as stop:
        status = stop.code or 0
    finally:
        sys.argv, sys.path[:] = argv, path
        logger.reset()
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return status


def run_command(*arguments):
    """Runs `meta-policy-search` in this process; returns its exit status."""
    from meta_policy_search.cli.main import main
    from meta_policy_search.tf_compat import tf

    logger.reset()
    try:
        with tf.Graph().as_default() as graph:
            status = main(arguments)
    except SystemExit as stop:
        status = stop.code or 0
    finally:
        logger.reset()
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return status


def make_run(folder):
    """Creates a small run that a callback stopped after three of four iterations."""
    shutil.rmtree(folder, ignore_errors=True)
    mps.train("MetaPointEnvCornerGoals", "trpo_maml", 4, dump_path=folder,
              callbacks=[lambda trainer, row: trainer.itr == 2], **TINY)


def is_run_of_a_point(folder):
    path = Path(folder, "params.json")
    return path.exists() and json.loads(path.read_text())["settings"]["env"].startswith("MetaPoint")


def prepare(arguments):
    """Creates what a command requires: settings, and runs to resume or to evaluate."""
    Path("settings.json").write_text('{"env": "MetaPointEnv"}')
    for before, argument in zip(["", *arguments], arguments):
        if before == "--dump_path":
            shutil.rmtree(argument, ignore_errors=True)
        elif before in ("resume", "--resume"):
            make_run(argument)
        elif argument.startswith("data/") and before != "--output" and "." not in argument:
            argument = argument.replace("*", "a_run")
            if not is_run_of_a_point(argument):
                make_run(argument)
            remove_pictures(argument)


def remove_pictures(folder):
    """Removes figures and results of earlier commands, because a later command refuses to overwrite them."""
    shutil.rmtree(Path(folder, "evaluation"), ignore_errors=True)
    for path in [*Path("data").glob("*.*"), *Path(folder).glob("*.*")]:
        if path.suffix in (".gif", ".mp4", ".png"):
            path.unlink()


def smaller(words):
    """Returns the arguments with smaller sizes and with placeholders replaced."""
    words = [SMALLER.get(before, word) for before, word in zip(["", *words], words)]
    return [{**PLACEHOLDERS, **OTHER_TASKS}.get(word, word) for word in words]


@pytest.mark.parametrize("command", HERE)
def test_command_runs(command, here, capfd):
    for part, module in NEEDS.items():
        if part in command:
            pytest.importorskip(module)
    words = shlex.split(command)
    while "=" in words[0]:  # environment variables have no effect here
        words = words[1:]
    if words[0] == "taskset":  # skips `taskset -c CORES`, which some systems lack
        words = words[3:]
    if words[0] == "make":
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        of_outer_make = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHON", "VENV"}
        env = {name: value for name, value in os.environ.items() if name not in of_outer_make}
        subprocess.run([*words, "SMOKE=1"], env=env, check=True, timeout=120, stdout=subprocess.DEVNULL)
        return
    assert words[0] == "meta-policy-search" or words[0] == "python" and words[1].endswith(".py"), (
        f"{COMMANDS[command]} has a command that no test runs: {command}. See {Path(__file__).name}")
    write_modules_of_pages()
    arguments = smaller(words[1:])
    prepare(arguments)
    status = run_command(*arguments) if words[0] == "meta-policy-search" else run_script(*arguments)
    assert status == (2 if command in REFUSED else 0), capfd.readouterr().err


def write_modules_of_pages():
    """Writes the modules of the pages on custom algorithms and environments."""
    for page, module, name in (
            ("own_algorithm", "entropy_maml", "class EntropyMAML"), ("own_algorithm", "clipped_maml", "class Clipped"),
            ("own_algorithm", "linear_maml", "class LinearMAML"), ("own_environment", "my_envs", "class HeaterEnv")):
        block = next(block for block in blocks_of(f"howto/{page}.rst") if name in block)
        Path(f"{module}.py").write_text(block)


def test_commands_are_found():
    """The most important commands of the pages are collected."""
    assert {"make train", "make test"} <= set(commands_of((ROOT / "README.md").read_text()))
    assert {"docs/quickstart.rst", "docs/use_policy.rst", "README.md"} <= set(COMMANDS.values())
    assert len(HERE) >= 15
    text = "Text ``python a.py --b`` and `make x`::\n\n    python c.py \\\n        --d 3   # why\n\n   $ make y\n"
    assert commands_of(text) == ["python c.py --d 3", "make y", "python a.py --b", "make x"]


def test_every_listed_pattern_matches_a_command():
    for pattern in ("make (test|docs|lint)( .*)?", "make bench.*", "pip install .*"):
        assert pattern in ELSEWHERE and any(re.fullmatch(pattern, command) for command in COMMANDS), pattern
    assert not is_elsewhere("make train") and not is_elsewhere("python experiments/new.py")
