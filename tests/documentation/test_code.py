"""Runs the Python code of docstrings, README and documentation pages, with smaller sizes."""
import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.algos import DDPG
from meta_policy_search.baselines import LinearFeatureBaseline, ZeroBaseline
from meta_policy_search.cli import evaluate
from meta_policy_search.envs import EnvSpec, MetaPointEnv
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.meta_algos import VPGMAML
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import CEM, CMAES
from meta_policy_search.np.exploration_policies import OrnsteinUhlenbeckPolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.plotting import read_progress
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils import logger
from tests.helpers.documentation import DOCS, ROOT, blocks_of

PACKAGE = ROOT / "meta_policy_search"
SHORT = "meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=5"
SMALL = f"{SHORT}, hidden_sizes=(4,)"
IN_ONE_GO = {  # page: code changes that shorten its run time
    "howto/own_environment.rst": {"n_itr=20": "n_itr=2"},
    "howto/own_algorithm.rst": {"LinearMAML, n_itr=2, ": f"LinearMAML, n_itr=1, {SHORT}, ",
                                **{f"n_itr={n}, ": f"n_itr=1, {SMALL}, " for n in (2, 3)}},
    "howto/own_baseline.rst": {"n_itr=3": f"n_itr=1, {SMALL}"},
    "howto/own_policy.rst": {},
    "algorithms/e_maml.rst": {},
    "algorithms/rl2.rst": {'"rl2", ': '"rl2", n_itr=1, meta_batch_size=2, rollouts_per_meta_task=2, hidden_size=4, ',
                           "tasks=100": "tasks=2"},
    "algorithms/partial_adaptation.rst": {f"n_itr={n}, ": f"n_itr=1, {SMALL}, " for n in (2, 3)},
    "algorithms/value_network.rst": {"n_itr=3, ": f"n_itr=1, {SMALL}, "},
    "migration.rst": {},
    "rllib.rst": {},
    **{f"environments/{page}.rst": {}
       for page in ("ant", "control", "discrete", "half_cheetah", "hopper", "humanoid", "point", "swimmer", "walker")},
}
IN_PARTS = {  # page: code changes; a test of this file runs its blocks one after the other
    "baselines_without_gradients.rst": {
        "max_path_length=100": "max_path_length=5", "tasks=40": "tasks=3", "hidden_sizes=(64, 64)": "hidden_sizes=(4,)",
        "MetaGaussianMLPPolicy(20,": "MetaGaussianMLPPolicy(2,", "meta_batch_size=20": "meta_batch_size=2"},
    "quickstart.rst": {},
    "resume.rst": {},
    "single_task.rst": {
        "n_epochs=30": "n_epochs=2", "batch_size=4 * 500": "batch_size=20", "max_path_length=500": "max_path_length=20",
        "n_epochs=60": "n_epochs=3", "n_epochs=15": "n_epochs=1", "batch_size=200": "batch_size=20",
        "max_path_length=200": "max_path_length=20", "n_train_steps=200": "n_train_steps=2",
        "min_buffer_size=1000": "min_buffer_size=20"},
}
ELSEWHERE = {  # page: the test that runs its code
    "environments/gymnasium.rst": "tests/envs/test_meta_world.py",
    "meta_world.rst": "tests/envs/test_meta_world.py",
    "pictures.rst": "tests/cli/test_plot.py",
    "pretrained_policies.rst": "tests/pretrained_policies/test_pretrained_policies.py",
    "use_policy.rst": "tests/cli/test_evaluate.py",
}
COMPILED = {  # page: why no test runs its code
    "cluster.rst": "needs Ray; tests/samplers/test_ray_sampler.py makes the same calls",
    "mujoco_py.rst": "needs MuJoCo 2.1.0; tests/envs/test_mujoco_py_engine.py makes the same call",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A temporary working directory, without output of the logger."""
    monkeypatch.chdir(tmp_path)
    logger.set_level(logger.DISABLED)
    return tmp_path


def run(code, names=None):
    """Runs code; returns its names."""
    names = {} if names is None else names
    names["__name__"] = "notebook"
    exec(compile(code, "documentation", "exec"), names)
    return names


def blocks(page):
    return blocks_of(page, {**IN_ONE_GO, **IN_PARTS}[page].items())


def test_a_test_runs_the_code_of_every_page():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.rst")}
    assert {page for page in pages if blocks_of(page)} == {*IN_ONE_GO, *IN_PARTS, *ELSEWHERE, *COMPILED}
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
    for page in COMPILED:
        for block in blocks_of(page):
            compile(block, page, "exec")


# Docstrings ------------------------------------------------------------------------------------------------------


def modules_with_examples():
    paths = sorted(path for path in PACKAGE.rglob("*.py") if "\n        >>> " in path.read_text(encoding="utf-8"))
    return [".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)) for path in paths]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_produce_the_documented_output(name):
    results = doctest.testmod(importlib.import_module(name), verbose=False)
    assert results.attempted > 0 and results.failed == 0


def test_examples_are_found():
    assert {"meta_policy_search.meta_algos.pro_mp", "meta_policy_search.envs.registry"} <= {*modules_with_examples()}


# Guides and algorithm pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", IN_ONE_GO)
@pytest.mark.thorough(but=("environments/point.rst", "migration.rst", "rllib.rst"))
def test_page_code_runs_from_top_to_bottom(page, here):
    names = {}
    if page == "algorithms/e_maml.rst":  # the page assumes an existing policy
        names = run("from meta_policy_search.meta_algos import EMAML\n"
                    "from meta_policy_search.policies import MetaGaussianMLPPolicy\n"
                    "policy = MetaGaussianMLPPolicy(20, 2, 2, hidden_sizes=())")
    run("".join(blocks(page)), names)


@pytest.fixture(scope="module")
def policy_page():
    """Names of the page on custom policies, without its training."""
    return run(re.sub(r"^mps.train\(.*\n", "", "".join(blocks("howto/own_policy.rst")), flags=re.MULTILINE))


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


# Quick start -----------------------------------------------------------------------------------------------------


def run_smaller(example, replacements, capsys):
    """Runs an example that trains for two iterations; returns its output and its run folder."""
    for text, smaller in replacements.items():
        assert text in example
        example = example.replace(text, smaller)
    run(example)
    said = capsys.readouterr().out
    assert len(re.findall(r"^itr ", said, flags=re.MULTILINE)) == 2
    (folder,) = [path.parent for path in Path.cwd().rglob("data/**/progress.csv")]
    assert list(read_progress(folder)["Itr"]) == [0, 1] and (folder / "params.json").exists()
    return said, folder


def test_readme_example_trains_evaluates_adapts_and_acts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Quick start\n")[1]
    said, folder = run_smaller(re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)[1],
                               {"n_itr=50": f"n_itr=2, {SMALL}", "tasks=40": "tasks=2"}, capsys)
    assert f"written to {folder.relative_to(tmp_path)}" in said and "gain" in said
    assert (folder / "params.pkl").exists()


@pytest.mark.thorough
def test_longer_example_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with logger.scoped_configure(tmp_path / "other"):  # the example configures the logger again
        run_smaller(blocks("quickstart.rst")[-1], {"=20": "=2", "max_path_length=100": "max_path_length=10",
                                                   "(64, 64)": "(8,)", "n_itr=50": "n_itr=2"}, capsys)


# Resuming a run --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_documented_code_resumes_a_run(here):
    """The code of the page performs the remaining iteration of a run that was stopped after one of two iterations."""

    def build_trainer():
        env, policy = MetaPointEnv(), MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=())
        sampler, processor = MetaSampler(env, policy, 2, 2, 5), MetaSampleProcessor(LinearFeatureBaseline())
        return Trainer(VPGMAML(policy, meta_batch_size=2), env, sampler, processor, policy, n_itr=2)

    logger.configure("data/my_run", ["log", "csv"])
    build_trainer().train_itr()
    logger.reset()
    _, block = blocks("resume.rst")  # the other logger requires an account
    run(block, {"build_trainer": build_trainer})
    assert list(read_progress("data/my_run")["Itr"]) == [0, 1]


# Methods without gradients and single tasks ----------------------------------------------------------------------


@pytest.mark.thorough
def test_search_methods_are_compared_with_gradient_steps(here, capsys):
    """Comparison and manual adaptation run."""
    script, by_hand = blocks("baselines_without_gradients.rst")
    names = run(script)
    rows = capsys.readouterr().out.splitlines()
    firsts = [row.split()[0] for row in rows if row]
    assert firsts.index("gradient") < firsts.index("CEM"), rows
    assert (here / "data" / "comparison" / "return_over_timesteps.png").exists()
    assert 1 <= len(run(by_hand, names)["path"]["rewards"]) <= 5


def test_page_on_search_methods_lists_existing_flags():
    known = {option for action in evaluate.make_parser()._actions for option in action.option_strings}
    flags = set(re.findall(r"``(--\w+)``", (DOCS / "baselines_without_gradients.rst").read_text(encoding="utf-8")))
    assert {"--compare", "--compare_steps", "--search_std"} <= flags <= known


@pytest.mark.thorough
def test_single_task_algorithms_train_and_resume(here):
    """Training, resuming and the custom algorithm run."""
    search, resume, ddpg, own = blocks("single_task.rst")
    names = run(search, {"observation": np.zeros(4)})  # all examples use the objects of the first one
    assert names["runner"].step_itr == 2 * 40
    logger.reset()
    run(resume, names)
    assert names["runner"].epoch == 3 and (here / "data" / "cart_pole" / "params.pkl").exists()
    logger.reset()
    run(ddpg, names)
    assert names["runner"].step_itr == 5 and (here / "data" / "pendulum" / "params.pkl").exists()
    logger.reset()
    run(own, names)
    runner = LocalRunner()
    runner.setup(names["HillClimbing"](DeterministicMLPPolicy(2, 2), max_path_length=5), MetaPointEnv())
    first = runner.train(1, 5)
    assert runner.resume(10) > first > -np.inf


def columns_of(algo):
    """Returns the columns of an epoch; `Evaluation-AverageReturn` represents all evaluation columns."""
    logged = set()
    runner = LocalRunner(callbacks=[lambda runner, row: logged.update(row)])
    runner.setup(algo, MetaPointEnv())
    runner.train(1, 3)
    return {key for key in logged if not key.startswith("Evaluation-")} | (logged & {"Evaluation-AverageReturn"})


def test_documented_columns_of_single_task_algorithms_equal_logged_columns():
    spec, policy = EnvSpec.of(MetaPointEnv()), DeterministicMLPPolicy(2, 2, ())
    logged = {"SuccessRate"}  # logged if the environment reports successes
    for cls in (CEM, CMAES):
        logged |= columns_of(cls(spec, policy, ZeroBaseline(), n_samples=20, max_path_length=3))
    logged |= columns_of(DDPG(spec, policy, MLPQFunction(2, 2, ()), ReplayBuffer(spec, 10), max_path_length=3,
                              exploration_policy=OrnsteinUhlenbeckPolicy(spec, policy), min_buffer_size=1))
    cells = re.findall(r"^   \* - (``.*)$", (DOCS / "single_task.rst").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))
