"""Tests CEM and CMA-ES: distribution updates, results, logged values, policy parameters and search performance."""
import os
import re

import numpy as np
import pytest
import threadpoolctl

import meta_policy_search as mps
from meta_policy_search import CEM, CMAES, EnvSpec, LocalRunner, SingleTaskSampler, logger, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaPointEnvMomentum
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy, GaussianMLPPolicy
from meta_policy_search.utils.gym_import import gym
from tests.helpers.paths import paths_with_returns
from tests.helpers.sampling import algo_of
from tests.helpers.threads import blas_threads

T = 6  # path length
N = 5  # candidates per cycle
SPEC = EnvSpec.of(MetaPointEnvCorner())


def make_algo(cls=CEM, hidden_sizes=(), n_samples=N, baseline=None, policy=None, max_path_length=T, **arguments):
    policy = DeterministicMLPPolicy(2, 2, hidden_sizes) if policy is None else policy
    if cls is CEM:
        arguments = {"best_frac": 0.4, "extra_decay_time": 10, **arguments}
    return cls(SPEC, policy, baseline or LinearFeatureBaseline(), n_samples, max_path_length=max_path_length,
               **arguments)


def make_env(cls=MetaPointEnvCorner):
    """Returns a point environment with a goal two units away in each direction."""
    env = cls(reward_type="dense")
    env.set_task((-2.0, 2.0))
    return env


def run_cycle(algo, cycle, returns):
    """Assigns a return to each candidate of a cycle; returns the results of the algorithm."""
    return [algo.train_once(cycle * algo.n_samples + i, paths_with_returns(r)) for i, r in enumerate(returns)]


# The distribution of CEM


def test_cem_fits_its_distribution_to_the_best_candidates():
    algo = make_algo()
    candidates = algo.candidates.copy()
    assert algo.n_best == 2  # 5 * 0.4
    run_cycle(algo, 0, [1.0, 7.0, -3.0, 8.0, 2.0])
    best = candidates[[3, 1]]
    np.testing.assert_allclose(algo.cur_mean, (best[0] + best[1]) / 2)
    np.testing.assert_allclose(algo.cur_std, np.abs(best[0] - best[1]) / 2)  # ddof 0
    # and continues from there
    run_cycle(algo, 1, [0.0, 0.0, 0.0, 0.0, 0.0])
    assert (algo.cur_mean != (best[0] + best[1]) / 2).all()


@pytest.mark.parametrize("extra_std, decay_time", [(2.0, 4000.0), (2.0, 4.0), (2.0, 0.5), (0.0, 4000.0)])
def test_cem_extra_variance_decays_over_iterations(extra_std, decay_time):
    algo = make_algo(n_samples=1000, init_std=0.5, extra_std=extra_std, extra_decay_time=decay_time)
    start, itr = algo.policy.get_flat_params(), np.arange(6000)
    draws = np.concatenate([algo._draw(cycle) for cycle in range(6)])
    assert draws.shape == (6000, 6)
    variances = 0.5 ** 2 + extra_std ** 2 * np.where(itr < decay_time, 1 - itr / decay_time, 0.0)
    normal = (draws - start) / np.sqrt(variances)[:, None]
    for part in np.split(normal, 12):
        np.testing.assert_allclose(part.mean(axis=0), 0.0, atol=4 * np.sqrt(1 / 500))
        np.testing.assert_allclose(part.var(axis=0), 1.0, rtol=0.25)


def test_candidates_are_ranked_by_mean_undiscounted_return():
    for discount in (0.0, 1.0):
        algo = make_algo(n_samples=2, best_frac=0.5, discount=discount)
        candidates = algo.candidates.copy()
        algo.train_once(0, paths_with_returns(9.0, -3.0))  # mean 3
        algo.train_once(1, paths_with_returns(4.0, 4.0, 4.0))
        np.testing.assert_array_equal(algo.cur_mean, candidates[1])


# The distribution of CMA-ES


def test_cma_es_moves_towards_higher_returns():
    algo = make_algo(CMAES, n_samples=8, sigma0=0.5)
    target = algo.policy.get_flat_params() + 2.0
    start = np.linalg.norm(algo.cur_mean - target)
    for cycle in range(40):
        run_cycle(algo, cycle, [-np.sum((candidate - target) ** 2) for candidate in algo.candidates])
    assert np.linalg.norm(algo.cur_mean - target) < 0.02 * start and algo.sigma < 0.1


def test_cma_es_does_not_change_global_random_state_or_working_directory(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    algo = make_algo(CMAES)
    for cycle in range(3):
        run_cycle(algo, cycle, range(N))
    assert np.random.random() == expected
    assert os.listdir(tmp_path) == [] and capfd.readouterr() == ("", "")


def test_cma_es_uses_one_thread(monkeypatch):
    """Matrix operations in several threads are rounded differently, which changes the candidates."""
    algo, threads = make_algo(CMAES, n_samples=2), []
    strategy = algo._strategy
    ask = strategy.ask
    monkeypatch.setattr(strategy, "ask", lambda: threads.append(blas_threads()) or ask())
    monkeypatch.setattr(strategy, "tell", lambda *arguments: threads.append(blas_threads()))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        run_cycle(algo, 0, [1.0, 2.0])
        assert len(threads) > 1 and set.union(*threads) == {1} != blas_threads()


# Both algorithms

BOTH = pytest.mark.parametrize("cls", [CEM, CMAES])


@BOTH
def test_train_once_returns_the_mean_of_the_current_cycle(cls):
    algo = make_algo(cls)
    answers = run_cycle(algo, 0, [1.0, 3.0, 5.0, -1.0, 2.0])
    np.testing.assert_allclose(answers, [1.0, 2.0, 3.0, 2.0, 2.0])
    assert all(type(answer) is float for answer in answers)
    assert algo.train_once(N, paths_with_returns(10.0)) == 10.0  # next cycle


def train(algo, n_epochs=4, batch_size=2 * T, **sampler_args):
    runner = LocalRunner()
    runner.setup(algo, make_env(), sampler_args=sampler_args)
    return runner, runner.train(n_epochs, batch_size)


@BOTH
def test_policy_has_the_mean_after_training(cls, tmp_path):
    logger.configure(tmp_path, ["csv"])
    algo = make_algo(cls)
    start = algo.policy.get_flat_params()
    rows = []
    runner = LocalRunner(callbacks=[lambda runner, row: rows.append((row, runner.algo.policy.get_flat_params()))])
    runner.setup(algo, make_env())
    average = runner.train(4, 2 * T)
    np.testing.assert_array_equal(algo.policy.get_flat_params(), algo.cur_mean.astype(np.float32))
    assert (algo.policy.get_flat_params() != start).all()
    assert type(average) is float and average == pytest.approx(rows[-1][0]["AverageReturn"])
    assert len({params.tobytes() for _, params in rows}) == 4  # and after each epoch
    assert runner.step_itr == 4 * N and runner.total_timesteps_sampled == 4 * N * 2 * T


@pytest.mark.thorough(but="DeterministicMLPPolicy-CMAES")
@BOTH
@pytest.mark.parametrize("policy", [DeterministicMLPPolicy, GaussianMLPPolicy])
def test_result_does_not_depend_on_the_executor(cls, policy):
    ends = []
    for parallel in (False, True):
        set_seed(3)
        algo = make_algo(cls, policy=policy(2, 2, (3,)))
        ends.append((train(algo, parallel=parallel)[1], algo.cur_mean, algo.policy.get_flat_params()))
    for average, mean, params in ends[1:]:
        assert average == ends[0][0]
        np.testing.assert_array_equal(mean, ends[0][1])
        np.testing.assert_array_equal(params, ends[0][2])


@BOTH
def test_custom_training_loop_gives_the_same_result(cls):
    set_seed(3)
    algo = make_algo(cls, policy=GaussianMLPPolicy(2, 2, ()))
    _, average = train(algo, n_epochs=2)
    # by hand
    set_seed(3)
    own = make_algo(cls, policy=GaussianMLPPolicy(2, 2, ()))
    runner = LocalRunner()
    runner.setup(own, make_env())
    own.policy.set_flat_params(own.candidates[0])
    for itr in range(2 * N):
        last = own.train_once(itr, runner.obtain_samples(itr, 2 * T))
    assert last == average
    np.testing.assert_array_equal(own.cur_mean, algo.cur_mean)


@BOTH
def test_training_starts_at_the_current_parameters_of_the_policy(cls):
    algo = make_algo(cls, **({"init_std": 1e-3, "extra_std": 0.0} if cls is CEM else {"sigma0": 1e-3}))
    algo.policy.set_flat_params(np.full(6, 7.0))
    train(algo, n_epochs=1)
    np.testing.assert_allclose(algo.cur_mean, 7.0, atol=0.01)
    algo.policy.set_flat_params(np.full(6, -7.0))
    train(algo, n_epochs=1)
    np.testing.assert_allclose(algo.cur_mean, -7.0, atol=0.01)


@BOTH
def test_row_describes_the_cycle(cls):
    algo = make_algo(cls, baseline=LinearTimeBaseline(), n_samples=4, discount=0.5,
                     **({"best_frac": 0.5} if cls is CEM else {}))
    for itr, path_returns in enumerate([(1.0, 3.0), (6.0, 8.0), (0.0, 0.0), (-2.0, 2.0)]):
        algo.train_once(itr, paths_with_returns(*path_returns))
    row = logger.getkvs()
    returns = np.array([1.0, 3.0, 6.0, 8.0, 0.0, 0.0, -2.0, 2.0])
    assert row["AverageReturn"] == returns.mean() and row["StdReturn"] == pytest.approx(returns.std())
    assert (row["MaxReturn"], row["MinReturn"], row["NumTrajs"]) == (8.0, -2.0, 8)
    assert row["BestCandidateReturn"] == algo.best_return == 7.0
    assert row["AverageDiscountedReturn"] == pytest.approx(np.mean(returns - 1.0 + 0.5))
    # the baseline predicts from time only: the means at the first and second step
    first, second = returns - 1.0 + 0.5 * 1.0, np.ones(8)
    targets = np.stack([first, second], axis=1)
    explained = 1.0 - np.var(targets - targets.mean(axis=0)) / np.var(targets)
    assert row["ExplainedVariance"] == pytest.approx(explained, abs=1e-4)
    if cls is CEM:
        assert row["ParamStd"] == pytest.approx(algo.cur_std.mean())
    else:
        assert row["Sigma"] == algo.sigma


# Invalid arguments


@pytest.mark.parametrize("arguments", [
    {"n_samples": 0}, {"n_samples": 2.5}, {"best_frac": 0.0}, {"best_frac": 1.1}, {"best_frac": 0.2, "n_samples": 4},
    {"init_std": 0}, {"discount": 1.5}, {"baseline": object()}, {"policy": CategoricalMLPPolicy(2, 2)},
    {"n_samples": 1, "cls": CMAES}, {"sigma0": -1.0, "cls": CMAES},
], ids=lambda arguments: re.sub(" at 0x[0-9a-f]+", "", str(arguments)))  # equal in all processes
def test_arguments_are_checked(arguments):
    name = next(iter(arguments))
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
        make_algo(**arguments)


def test_invalid_env_spec_is_refused():
    with pytest.raises(TypeError, match="env_spec: expected an EnvSpec, got None"):
        CEM(None, DeterministicMLPPolicy(2, 2), ZeroBaseline(), 20)
    with pytest.raises(TypeError, match="action_space: expected a space with a shape, such as a gym.spaces.Box, got 4"):
        EnvSpec(SPEC.observation_space, 4)
    spec = EnvSpec(gym.spaces.Box(-1.0, 1.0, (3,)), gym.spaces.Discrete(4))
    assert (spec.obs_dim, spec.action_dim, spec.is_discrete) == (3, 4, True)
    assert (SPEC.obs_dim, SPEC.action_dim, SPEC.is_discrete) == (2, 2, False)


@BOTH
def test_refused_paths_change_nothing(cls):
    algo = make_algo(cls)
    algo.train_once(0, paths_with_returns(1.0))
    for itr, paths, message in (
        (1, [], "paths: expected at least one path, got an empty list"),
        (1, [{**paths_with_returns(1.0)[0], "rewards": np.zeros(0)}], "rewards: expected shape .* at least 1"),
        (1, [{**paths_with_returns(1.0)[0], "rewards": np.array([np.nan, 0.0])}],
         "path 0, step 0: rewards: expected finite"),
        (2, paths_with_returns(1.0), "itr: expected 1, the number of completed iterations, got 2"),
        (-1, paths_with_returns(1.0), "itr: expected an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            algo.train_once(itr, paths)
    assert algo.train_once(1, paths_with_returns(3.0)) == 2.0


# Learning

HORIZON, CANDIDATES, EPOCHS = 60, 40, 20


def random_search():
    """Returns the best of equally many candidates drawn from the initial distribution of the algorithms."""
    policy = DeterministicMLPPolicy(4, 2, (8,))
    sampler = SingleTaskSampler(algo_of(policy, HORIZON), make_env(MetaPointEnvMomentum))
    start = policy.get_flat_params()
    candidates = start + np.random.standard_normal((EPOCHS * CANDIDATES, len(start)))
    population = sampler.obtain_population_samples(0, 2 * HORIZON, candidates)
    policy.set_flat_params(candidates[np.argmax([mean_return(paths) for paths in population])])
    return policy


def search(cls):
    arguments = {"best_frac": 0.2, "extra_std": 0.5, "extra_decay_time": 10 * CANDIDATES} if cls is CEM else {}
    env = make_env(MetaPointEnvMomentum)
    algo = cls(EnvSpec.of(env), DeterministicMLPPolicy(4, 2, (8,)), ZeroBaseline(), CANDIDATES, max_path_length=HORIZON,
               **arguments)
    runner = LocalRunner()
    runner.setup(algo, env)
    runner.train(EPOCHS, 2 * HORIZON)
    return algo.policy


def mean_return(paths):
    return np.mean([path["rewards"].sum() for path in paths])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_cem_and_cma_es_beat_random_search_with_equal_steps(seed):
    """Both find candidates with higher returns than the best of equally many random candidates."""
    returns = []
    for find in (lambda: search(CEM), lambda: search(CMAES), random_search):
        set_seed(seed)
        sampler = SingleTaskSampler(algo_of(find(), HORIZON), make_env(MetaPointEnvMomentum))
        returns.append(mean_return(sampler.obtain_samples(10_000, 20 * HORIZON)))
    cem, cma_es, random = returns
    assert cem > random + 20.0 and cma_es > random + 5.0, returns


def test_a_state_can_be_restored_twice():
    search = mps.CEM(mps.MetaPointEnvNavigation(), DeterministicMLPPolicy(2, 2, ()), "ZeroBaseline", n_samples=20)
    state, found = search.get_state(), []
    for _ in range(2):
        search.set_state(state)
        for _ in range(2):
            search.tell(-(search.candidates ** 2).sum(axis=1))
        found.append(search.cur_mean.copy())
    np.testing.assert_array_equal(*found)
