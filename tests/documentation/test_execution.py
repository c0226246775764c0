"""Runs the Python code, the commands and the notebooks of README and documentation, with smaller sizes.

Every block of code and every command runs, except those in `NOT_EXECUTED` and `NO_TEST`. A new command of another kind
fails until it is listed there.
"""
import contextlib
import doctest
import importlib
import itertools
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import nbformat
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.cli.main import main
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") + "\n" for path in (
    ROOT / "README.md", DOCS / "notebooks" / "README.md", *sorted(DOCS.rglob("*.rst")))}
SIZES = {"n_itr": 4, "n_epochs": 4, "meta_batch_size": 4, "rollouts_per_meta_task": 5, "max_path_length": 10,
         "tasks": 2, "num_tasks": 2, "rollouts": 5, "batch_size": 20, "n_samples": 5, "n_train_steps": 2,
         "min_buffer_size": 20, "every": 1, "eval_every": 1, "compare_steps": 1, "snapshot": 0}
"""Largest values of arguments and flags in the code and in the commands."""


def shrink(text):
    """Replaces numbers such as `n_itr=50` and `--n_itr 50` that exceed `SIZES`."""
    return re.sub(rf"\b({'|'.join(SIZES)})([= ])(\d+(?: \* \d+)*)\b",
                  lambda match: f"{match[1]}{match[2]}{min(SIZES[match[1]], eval(match[3]))}", text)


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    """Returns a function that creates the folder of a small run, which stopped after three of four iterations."""
    source = tmp_path_factory.mktemp("trained") / "run"

    def make(folder):
        if not source.exists():
            with tf.Graph().as_default():
                mps.train("MetaPointEnvCornerGoals", "trpo_maml", 4, dump_path=source, eval_every=1, eval_tasks=2,
                          callbacks=[lambda trainer, row: trainer.itr == 2], meta_batch_size=2,
                          rollouts_per_meta_task=2, max_path_length=10, hidden_sizes=(8,))
        shutil.copytree(source, folder, dirs_exist_ok=True)

    return make


# Python code ------------------------------------------------------------------------------------------------------

GIVEN = {  # page: what its code assumes
    "docs/algorithms/e_maml.rst": "policy = mps.MetaGaussianMLPPolicy(20, 2, 2)",
    "docs/not_learning.rst": "make_run('data/my_run')",
    "docs/pictures.rst": "[make_run(f'data/{name}') for name in ('my_run', 'seed1', 'seed2')]",
    "docs/quickstart.rst": "make_run('data/my_run')",
    "docs/resume.rst": """
from meta_policy_search.run import build_trainer as build
def build_trainer():
    return build("MetaPointEnv", n_itr=2, meta_batch_size=2, rollouts_per_meta_task=2)
mps.logger.configure("data/my_run", ["csv"])
build_trainer().train_itr()
mps.logger.reset()
""",
    "docs/single_task.rst": "observation = np.zeros(4)",
    "docs/use_policy.rst": "make_run('data/my_run'); task, observation = (0.5, 0.5), np.zeros(2)",
}
CALLBACKS = "docs/howto/callbacks.rst"
NEEDED = dict.fromkeys(("docs/howto/own_environment.rst", "docs/use_policy.rst"), "imageio_ffmpeg")
NOT_EXECUTED = {
    "docs/cluster.rst": "needs a cluster; tests/samplers/test_ray_sampler.py makes the same calls",
    "docs/meta_world.rst": "tests/envs/test_meta_world.py runs it",
    "docs/mujoco_py.rst": "needs MuJoCo 2.1.0; tests/envs/test_mujoco_py_engine.py makes the same call",
}


def blocks_of(page):
    """Returns the blocks of Python code of a page."""
    pattern = r"^\.\. code-block:: python\n(?:   :[^\n]*\n)*\n((?:   .*\n|\n)+)|^```python\n((?:[^`].*\n|\n)+)```"
    return [textwrap.dedent("".join(match)) for match in re.findall(pattern, PAGES[page], flags=re.MULTILINE)]


def subclasses(cls):
    return [cls, *itertools.chain(*map(subclasses, cls.__subclasses__()))]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A temporary working directory; algorithms have smaller default sizes."""
    monkeypatch.chdir(tmp_path)
    for cls in subclasses(mps.MetaAlgo):
        if "default_settings" in vars(cls):
            monkeypatch.setattr(cls, "default_settings", {
                name: SIZES.get(name, value) for name, value in cls.default_settings.items()})
    logger.set_level(logger.DISABLED)


def run(code, **names):
    names = {"mps": mps, "np": np, **names, "__name__": "notebook"}
    exec(compile(shrink(code), "documentation", "exec"), names)
    return names


def run_page(page, **given):
    """Runs all code of a page; returns its names."""
    names = run(GIVEN.get(page, ""), **given)
    for block in blocks_of(page):
        names = run(block, **names)
    return names


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page) and page != CALLBACKS])
@pytest.mark.thorough(but=("docs/environments/point.rst", "docs/migration.rst", "docs/rllib.rst"))
def test_code_of_a_page_runs_from_top_to_bottom(page, here, make_run):
    if page in NEEDED:
        pytest.importorskip(NEEDED[page])
    if page in NOT_EXECUTED:
        compile("".join(blocks_of(page)), page, "exec")
    else:
        run_page(page, make_run=make_run)


@pytest.fixture
def trackers(monkeypatch):
    """Replaces wandb, mlflow and trackio by modules with the functions that the guide calls; returns what they get."""
    got = {name: [] for name in ("wandb", "mlflow", "trackio")}

    class Experiment(contextlib.AbstractContextManager):
        def log(self, data, step=None):
            got["wandb"].append((data, step))

        def __exit__(self, *error):
            got["wandb"].append("finished")

    def log_metrics(metrics, step=None):
        got["mlflow"].append(({name: float(value) for name, value in metrics.items()}, step))

    functions = {
        "wandb": {"init": lambda project, config: got["wandb"].append(config) or Experiment()},
        "mlflow": {"start_run": contextlib.nullcontext, "log_params": got["mlflow"].append, "log_metrics": log_metrics},
        "trackio": {"init": lambda project, config: got["trackio"].append(config),
                    "log": lambda metrics, step=None: got["trackio"].append((metrics, step)),
                    "finish": lambda: got["trackio"].append("finished")}}
    for name, of_module in functions.items():
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**of_module))
    return got


@pytest.mark.thorough
@pytest.mark.slow
def test_trackers_of_the_guide_get_the_settings_and_every_row(here, trackers):
    names = run_page(CALLBACKS)
    for name, (settings, *rows) in trackers.items():
        assert settings == names["settings"] and (name == "mlflow" or rows.pop() == "finished")
        assert [step for _, step in rows] == [0, 1, 2] and all(np.isfinite(row["AdaptationGain"]) for row, _ in rows)


def modules_with_examples():
    paths = [path for path in (ROOT / "meta_policy_search").rglob("*.py") if "\n        >>> " in path.read_text()]
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_produce_the_documented_output(name):
    results = doctest.testmod(importlib.import_module(name), verbose=False)
    assert results.attempted > 0 and results.failed == 0


@pytest.fixture(scope="module")
def policy_page():
    """Names of the page on custom policies, without its training."""
    code = "".join(blocks_of("docs/howto/own_policy.rst"))
    return run(re.sub(r"^mps.train\(.*\n", "", code, flags=re.MULTILINE))


def test_laplace_distribution_of_the_page_is_correct(policy_page):
    """Log-density, entropy and divergence of the class equal estimates from samples and sums over a grid."""
    laplace = policy_page["Laplace"](1)
    old, new = ({"mean": np.array([mean]), "log_std": np.log([scale])} for mean, scale in ((0.3, 0.5), (-0.2, 0.8)))
    grid = np.linspace(-20.0, 20.0, 400_001)[:, None]
    step = grid[1, 0] - grid[0, 0]
    log_old, log_new = laplace.log_likelihood(grid, old), laplace.log_likelihood(grid, new)
    density = np.exp(log_old)
    np.testing.assert_allclose(density.sum() * step, 1.0, atol=1e-4)
    np.testing.assert_allclose(laplace.kl(old, new), np.sum(density * (log_old - log_new)) * step, atol=1e-4)
    np.testing.assert_allclose(laplace.entropy(old), -np.sum(density * log_old) * step, atol=1e-4)
    draws = laplace.sample({key: np.broadcast_to(value, (100_000, 1)) for key, value in old.items()},
                           np.random.default_rng(1))
    assert abs(np.mean(draws) - 0.3) < 0.01 and abs(np.mean(np.abs(draws - 0.3)) - 0.5) < 0.01


def test_numpy_policy_of_the_page_acts_like_its_policy(policy_page):
    policy = policy_page["BoundedPolicy"](3, 2, 2, hidden_sizes=(16,), bound=0.1)
    observations = np.random.default_rng(0).normal(scale=5.0, size=(3, 6, 2))
    _, expected = policy.get_actions(observations)
    _, infos = policy.make_actor().for_tasks(1, 3).act(observations[1:], np.zeros((2, 6, 2), np.float32))
    for key in ("mean", "log_std"):
        np.testing.assert_allclose(infos[key], [[info[key] for info in task] for task in expected[1:]], atol=1e-6)


# Commands ---------------------------------------------------------------------------------------------------------

PROGRAMS = (r"(?:[A-Z_]+=\S* )*(?:apt-get|bash|cd|git|jupyter|make|meta-policy-search|pip|python|ray|sbatch|sudo|"
            r"taskset|tensorboard)")
LINE = re.compile(rf"^ *(?:\w*\$ +)?({PROGRAMS} .*?)(?:  +#.*)?$")
INLINE = re.compile(rf"(`{{1,2}})({PROGRAMS} [^`]+)\1")
NO_COMMAND = re.compile(r"(make: |meta-policy-search \w+: |pip could not ).*")  # output of programs
NO_TEST = re.compile("|".join((
    r"make (test|docs|lint|mujoco-py|test-mujoco-py)( .*)?",  # part of .ci/run
    r"make (extras .*|clean)", r"(python -m )?pip install .*", r"(sudo )?(apt-get|apt) install .*",  # change the system
    r"pip wheel .*",  # .ci/run
    r"git clone ADDRESS", r"sbatch job\.sh", r".*\$(SLURM|TMPDIR).*",  # need a repository, a cluster
    r"tensorboard .*", r"ray .*", r".*mujoco-py.*", r"python -m meta_policy_search\.envs.*",  # need others
    r"python experiments/\S+ --parallel (ray|'\{).*",  # tests/samplers/test_ray_sampler.py
    r"make bench.*", r"python benchmarks/.*",  # tests/benchmarks
    r"python -m experiments\.\S+.*", r"python experiments/metaworld_evaluation\.py .*",  # tests/experiments
    r"python experiments/stable_baselines3/.*",  # tests/experiments
    r"python docs/.*(draw_\w+|execute)\.py",  # other tests of this folder
    r"(python -m meta_policy_search|meta-policy-search)( (COMMAND|--help|demo|evaluate|sweep.*|train))?",  # tests/cli
)))
NEEDS = {"MetaWorld": "metaworld", "meta_world": "metaworld", "search render": "imageio_ffmpeg",
         "csv tensorboard": "tensorboard"}  # part of a command: module of an extra
REFUSED = {"meta-policy-search resume data/corner --inner_lr 0.2 --gae_lambda 0.9"}  # documented error
MODULES = {"entropy_maml": ("own_algorithm", "class EntropyMAML"), "linear_maml": ("own_algorithm", "class LinearMAML"),
           "clipped_maml": ("own_sample_processor", "class ClippedMAML"),
           "my_envs": ("own_environment", "class HeaterEnv")}


def commands_of(text):
    """Returns all commands of a page, each on one line."""
    text = re.sub(r"\\\n\s*", "", text)
    found = [match[1].strip() for match in map(LINE.match, text.splitlines()) if match]
    found += [re.sub(r"\s+", " ", match[2]).strip() for match in INLINE.finditer(text)]
    return [command for command in found if not NO_COMMAND.fullmatch(command)]


COMMANDS = dict.fromkeys(command for text in PAGES.values() for command in commands_of(text))


def test_commands_are_found():
    """The most important commands of the pages are collected."""
    assert {"make train", "meta-policy-search runs", "python experiments/pro_mp.py"} <= COMMANDS.keys()
    text = "Text ``python a.py --b`` and `make x`::\n\n    python c.py \\\n        --d 3   # why\n\n   $ make y\n"
    assert commands_of(text) == ["python c.py --d 3", "make y", "python a.py --b", "make x"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Copies the parts of the checkout that commands use, with a virtual environment that is already installed."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("experiments", "docs"):  # commands may write to these folders
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
def _in_checkout(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("SMOKE", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.split(".")[0] == "experiments"]:
        monkeypatch.delitem(sys.modules, name)  # scripts of the original checkout
    shutil.rmtree("data", ignore_errors=True)


def execute(program, *arguments):
    """Runs `python SCRIPT` or `meta-policy-search` in this process; returns the exit status."""
    try:
        if program == "meta-policy-search":
            return main(arguments)
        sys.argv, sys.path[:0] = [*arguments], [os.path.abspath(os.path.dirname(arguments[0]))]
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.fixture
def _in_empty_folder(tmp_path, monkeypatch):
    """The working directory contains only the modules that the pages tell the user to write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMOKE", "1")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "experiments", None)  # not part of the wheel
    for module, (page, text) in MODULES.items():
        (block,) = [block for block in blocks_of(f"docs/howto/{page}.rst") if text in block]
        (tmp_path / f"{module}.py").write_text(block)
        monkeypatch.delitem(sys.modules, module, raising=False)


def words_of(command):
    """Returns the words of a command with smaller sizes; skips the test if an extra is missing."""
    for part, module in NEEDS.items():
        if part in command:
            pytest.importorskip(module)
    return shlex.split(shrink(re.sub(r"^taskset -c \d+ ", "", command).replace("RUN_FOLDER", "data/my_run")))


def make_runs(words, make_run):
    """Creates the runs that a command reads."""
    for before, word in zip(words, words[1:]):
        if word.startswith("data/") and before not in ("--dump_path", "--output"):
            make_run(word)


TESTED = [command for command in COMMANDS if not NO_TEST.fullmatch(command)]
INSTALLED = [command for command in TESTED if command.startswith("meta-policy-search ")]


@pytest.mark.documentation
@pytest.mark.parametrize("command", INSTALLED)
def test_command_of_the_package_runs_in_an_empty_folder(command, _in_empty_folder, make_run, capfd, monkeypatch):
    words = words_of(command)
    make_runs(words, make_run)
    monkeypatch.setattr(sys, "argv", words[1:])
    status = execute(*words)
    assert status == (2 if command in REFUSED else 0), capfd.readouterr().err


@pytest.mark.documentation
@pytest.mark.parametrize("command", [command for command in TESTED if command not in INSTALLED])
def test_command_runs_in_the_checkout(command, _in_checkout, make_run, capfd, monkeypatch):
    words = words_of(command)
    if words[0] == "make":
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        of_outer_make = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHON", "VENV"}
        env = {name: value for name, value in os.environ.items() if name not in of_outer_make}
        subprocess.run([*words, "SMOKE=1"], env=env, check=True, timeout=120, stdout=subprocess.DEVNULL)
        return
    assert words[0] == "python" and words[1].endswith(".py"), command
    make_runs(words, make_run)
    monkeypatch.setattr(sys, "argv", words[1:])
    assert execute(*words) == 0, capfd.readouterr().err


@pytest.mark.parametrize("requeued", [True, False])
def test_job_of_the_page_on_clusters_ends_the_training_at_a_signal(requeued, tmp_path):
    """Given Slurm's signal before the time limit, the job is requeued; this test replaces the training and Slurm."""
    job = re.search(r":caption: job.sh\n\n((?:   .*\n|\n)+)", PAGES["docs/cluster.rst"])
    assert job is not None
    (tmp_path / "job.sh").write_text(textwrap.dedent(job[1]))
    training = "trap 'touch ended' TERM\necho $* > training\nuntil [ -e ended ]; do sleep 0.05; done"
    for name, text in (("meta-policy-search", training), ("scontrol", "echo $* > slurm")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "7"}
    started = tmp_path / "training"
    with subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env=env, start_new_session=True) as process:
        while not (started.exists() and started.read_text().endswith("\n")):
            time.sleep(0.01)
        assert started.read_text().split()[-5:] == ["--seed", "2", "--dump_path", "data/cheetah/seed2", "--resume"]
        if requeued:
            process.send_signal(signal.SIGUSR1)
        else:  # preemption: Slurm signals all processes of the job
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
    assert (tmp_path / "slurm").exists() == requeued
    assert not requeued or (tmp_path / "slurm").read_text() == "requeue 7\n"
    while not (tmp_path / "ended").exists():
        time.sleep(0.01)


# Notebooks --------------------------------------------------------------------------------------------------------

NOTEBOOKS = sorted(path.name for path in (DOCS / "notebooks").glob("*.ipynb"))


def outputs_of(notebook, kind):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
            if output.output_type == kind]


@pytest.mark.documentation
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.thorough(ci=("load_and_adapt.ipynb", "train_and_adapt.ipynb"))
def test_notebook_runs(name, monkeypatch):
    """No cell of a notebook fails in a separate process or writes to standard error."""
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    execute = runpy.run_path(str(DOCS / "notebooks" / "execute.py"))["execute"]
    streams = outputs_of(execute(DOCS / "notebooks" / name), "stream")
    assert streams and not [output.text for output in streams if output.name == "stderr"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_committed_with_small_outputs(name):
    notebook = nbformat.read(DOCS / "notebooks" / name, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert re.search(r"mps\.(train|load_pretrained)\(", code) and not re.search("^ *assert ", code, flags=re.MULTILINE)
    assert not outputs_of(notebook, "error")
    streams = [output.text for output in outputs_of(notebook, "stream")]
    assert all(text.count("\n") <= 20 for text in streams)
    assert ("mps.train" in code) == any("training: 100%" in text for text in streams)
    assert any("image/png" in output.data for output in outputs_of(notebook, "display_data"))


TRAINING = """
import meta_policy_search as mps
TINY = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}
class Corner(mps.MetaPointEnvCornerGoals):
    pass
class Mine(mps.VPGMAML):
    pass
class Policy(mps.MetaGaussianMLPPolicy):
    pass
mps.register_algorithm("mine", Mine)
def press_stop(trainer, row):
    if trainer.itr == 2 and trainer.n_itr == 3:
        raise KeyboardInterrupt
run = mps.train(Corner(), "mine", 3, callbacks=[press_stop], policy=Policy, **TINY)
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_training_in_a_notebook_shows_one_bar_with_the_last_row(tmp_path):
    """Given a cell that is run twice, the second time with new classes of the same names, and the stop button."""
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})", TRAINING, TRAINING,
        "run.resume(4, callbacks=[press_stop]);")])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert not outputs_of(notebook, "display_data")
    assert {output.name for output in outputs_of(notebook, "stream")} == {"stdout"}
    lines = re.split("[\r\n]+", "".join(output.text for output in outputs_of(notebook, "stream")))
    assert sum(line.startswith("To resume after iteration 1: ") for line in lines) == 2
    rows = [line for line in lines if re.search(r"itr +\d+ \|", line)]
    assert all(line.startswith("training: ") for line in rows)
    assert rows[-1].startswith("training: 100%") and "itr    3 |" in rows[-1]
