"""The Python code of the documentation runs."""
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.utils import logger

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SMALL = "meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=5, hidden_sizes=(4,)"
IN_ONE_GO = {  # page: code changes that shorten its run time
    "howto/own_environment.rst": {"n_itr=20": "n_itr=2"},
    "howto/own_algorithm.rst": {"n_itr=3, ": f"n_itr=1, {SMALL}, ", "n_itr=2, ": f"n_itr=1, {SMALL}, "},
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
ELSEWHERE = {  # page: the test that runs its code
    "environments/gymnasium.rst": "tests/envs/test_meta_world.py",
    "baselines_without_gradients.rst": "tests/np/test_page_baselines_without_gradients.py",
    "meta_world.rst": "tests/envs/test_meta_world.py",
    "pictures.rst": "tests/cli/test_plot.py",
    "pretrained_policies.rst": "tests/pretrained_policies/test_pretrained_policies.py",
    "quickstart.rst": "tests/test_quickstart.py",
    "resume.rst": "tests/test_documented_code.py",
    "single_task.rst": "tests/np/test_page_single_task.py",
    "use_policy.rst": "tests/cli/test_evaluate.py",
}
COMPILED = {  # page: why no test runs its code
    "cluster.rst": "needs Ray; tests/samplers/test_ray_sampler.py makes the same calls",
    "mujoco_py.rst": "needs MuJoCo 2.1.0; tests/envs/test_mujoco_py_engine.py makes the same call",
}


def blocks_of(page):
    """Returns the blocks of Python code of a page."""
    pattern = r"^\.\. code-block:: python\n(?:   :[^\n]*\n)*\n((?:   .*\n|\n)+)"
    text = (DOCS / page).read_text(encoding="utf-8") + "\n"
    return [textwrap.dedent(block) for block in re.findall(pattern, text, flags=re.MULTILINE)]


def test_a_test_runs_the_code_of_every_page():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.rst")}
    assert {page for page in pages if blocks_of(page)} == {*IN_ONE_GO, *ELSEWHERE, *COMPILED}
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
    for page in COMPILED:
        for block in blocks_of(page):
            compile(block, page, "exec")


@pytest.mark.parametrize("page", IN_ONE_GO)
@pytest.mark.thorough(but=("environments/point.rst", "migration.rst", "rllib.rst"))
def test_page_code_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logger.set_level(logger.DISABLED)
    names = {"__name__": "notebook"}
    if page == "algorithms/e_maml.rst":  # the page assumes an existing policy
        setup = ("from meta_policy_search.meta_algos import TRPOMAML\n"
                 "from meta_policy_search.policies import MetaGaussianMLPPolicy\n"
                 "policy = MetaGaussianMLPPolicy(20, 2, 2, hidden_sizes=())")
        exec(setup, names)
    code = "".join(block for block in blocks_of(page) if "from meta_policy_search.cli.training import" not in block)
    for long, short in IN_ONE_GO[page].items():
        assert code.count(long) == 1, long
        code = code.replace(long, short)
    exec(compile(code, page, "exec"), names)


def test_laplace_distribution_of_the_page_is_correct():
    """Log-density, entropy and divergence of the class equal estimates from samples and sums over a grid."""
    names = {"__name__": "notebook"}
    code = "".join(blocks_of("howto/own_policy.rst"))
    exec(re.sub(r"^train\(.*\n", "", code, flags=re.MULTILINE), names)
    laplace = names["Laplace"](1)
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


def test_numpy_policy_of_the_page_acts_like_its_policy():
    names = {"__name__": "notebook"}
    exec(re.sub(r"^train\(.*\n", "", "".join(blocks_of("howto/own_policy.rst")), flags=re.MULTILINE), names)
    policy = names["FastBoundedPolicy"](3, 2, 2, hidden_sizes=(16,), bound=0.1)
    observations = np.random.default_rng(0).normal(scale=5.0, size=(3, 6, 2))
    _, expected = policy.get_actions(observations)
    _, infos = policy.make_actor().for_tasks(1, 3).act(observations[1:], np.zeros((2, 6, 2), np.float32))
    for key in ("mean", "log_std"):
        np.testing.assert_allclose(infos[key], [[info[key] for info in task] for task in expected[1:]], atol=1e-6)


@pytest.mark.thorough
def test_documented_code_resumes_a_run(tmp_path, monkeypatch):
    """The code of the page performs the remaining iteration of a run that was stopped after one of two iterations."""
    from meta_policy_search.baselines import LinearFeatureBaseline
    from meta_policy_search.envs import MetaPointEnv
    from meta_policy_search.meta_algos import VPGMAML
    from meta_policy_search.meta_trainer import Trainer
    from meta_policy_search.plotting import read_progress
    from meta_policy_search.policies import MetaGaussianMLPPolicy
    from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler

    def build_trainer():
        env, policy = MetaPointEnv(), MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=())
        sampler, processor = MetaSampler(env, policy, 2, 2, 5), MetaSampleProcessor(LinearFeatureBaseline())
        return Trainer(VPGMAML(policy, meta_batch_size=2), env, sampler, processor, policy, n_itr=2)

    monkeypatch.chdir(tmp_path)
    logger.configure("data/my_run", ["log", "csv"])
    build_trainer().train_itr()
    logger.reset()
    _, block = blocks_of("resume.rst")  # the other logger requires an account
    exec(block, {"build_trainer": build_trainer})
    assert list(read_progress("data/my_run")["Itr"]) == [0, 1]


def test_custom_algorithm_takes_at_most_25_lines():
    (algorithm,) = [block for block in blocks_of("howto/own_algorithm.rst") if "class EntropyMAML" in block]
    assert len(algorithm.strip().splitlines()) <= 25
