"""Tests CEM and CMA-ES as meta-learning baselines: candidates of each path, adaptation, and gains."""
import pickle

import numpy as np
import pytest

from meta_policy_search import EnvSpec, SingleTaskSampler, TrajectoryBatch, ZeroBaseline, set_seed
from meta_policy_search.envs import MetaPointEnvCorner, MetaTabularMDPEnv
from meta_policy_search.np.algos import CEM, CMAES, MetaRLAlgorithm, SearchAdaptation, SearchPolicy
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy, GaussianMLPPolicy
from tests.helpers.sampling import algo_of

N, T = 5, 6  # candidates, path length


def make_env(task=(-2.0, 2.0)):
    env = MetaPointEnvCorner(reward_type="dense")
    env.set_task(task)
    return env


SPEC = EnvSpec.of(make_env())
BOTH = pytest.mark.parametrize("cls", [CEM, CMAES])


def make(cls=CEM, policy=None, n_samples=N, std=0.3):
    policy = DeterministicMLPPolicy(2, 2, ()) if policy is None else policy
    own = {"init_std": std, "best_frac": 0.4, "extra_std": 0.0} if cls is CEM else {"sigma0": std}
    search = cls(SPEC, policy, ZeroBaseline(), n_samples, max_path_length=T, **own)
    return SearchAdaptation(search)


def explore(policy, num_paths=2 * N, env=None, itr=0, **sampler_args):
    env = make_env() if env is None else env
    sampler = SingleTaskSampler(algo_of(policy, T), env, **sampler_args)
    try:
        return TrajectoryBatch.from_paths(EnvSpec.of(env), sampler.obtain_samples(itr, num_paths * T))
    finally:
        sampler.close()


def linear(flat_params, observations):
    kernel, bias = flat_params[:4].reshape(2, 2), flat_params[4:]
    return observations @ kernel + bias


# Acting


@pytest.mark.parametrize("num_paths", [N, 2 * N, 2 * N + 3, N - 2])
def test_candidates_act_in_turn(num_paths):
    """In path r, candidate r % n acts with its parameters."""
    policy = make().get_exploration_policy()
    trajectories = explore(policy, num_paths)
    for r, path in enumerate(trajectories.to_paths()):
        np.testing.assert_array_equal(path["agent_infos"]["candidate"], r % N)
        expected = linear(policy.search.candidates[r % N], path["observations"])
        np.testing.assert_allclose(path["actions"], expected, rtol=1e-4, atol=1e-5)
        assert np.abs(path["actions"][1:]).max() > 0.01


def test_mean_acts_after_adaptation():
    adaptation = make()
    for policy in (adaptation.get_initial_policy(), _adapt(adaptation, adaptation.get_exploration_policy())):
        trajectories = explore(policy)
        assert "candidate" not in trajectories.agent_infos and not policy.is_exploring
        np.testing.assert_allclose(trajectories.actions, linear(policy.search.cur_mean, trajectories.observations),
                                   rtol=1e-4, atol=1e-5)


def _adapt(adaptation, policy, **arguments):
    return adaptation.adapt_policy(policy, explore(policy, **arguments))


@pytest.mark.parametrize("env, policy_class", [(make_env(), GaussianMLPPolicy),
                                               (MetaTabularMDPEnv(), CategoricalMLPPolicy)])
def test_reset_selects_the_next_candidate(env, policy_class):
    """With `reset` before each path, infos name the candidates in turn, and actions follow their distributions."""
    spec = EnvSpec.of(env)
    search = SearchAdaptation(
        CEM(spec, policy_class(spec.obs_dim, spec.action_dim, (3,)), ZeroBaseline(), N, best_frac=0.4))
    policy = search.get_exploration_policy()
    observation = np.full(policy.obs_dim, 0.3)
    for turn in range(N + 2):
        policy.reset()
        for _ in range(2):
            action, info = policy.get_action(observation)
            assert info["candidate"] == turn % N and action.shape == policy.action_shape
        own = search.policy.make_actors(policy.search.candidates[None, turn % N])
        _, expected = own.act(observation[None, None], np.zeros((1, 1, own.noise_dim), np.float32))
        for key, value in expected.items():
            np.testing.assert_allclose(info[key], value[0, 0], rtol=1e-6)
    mean = search.get_initial_policy()
    assert "candidate" not in mean.get_actions(np.stack([observation] * 3))[1]


# Adaptation


def test_cem_fits_its_distribution_to_the_candidates_with_highest_returns():
    """For 13 paths of 5 candidates, the two candidates with the highest mean returns define the new distribution."""
    adaptation = make()
    policy = adaptation.get_exploration_policy()
    candidates = policy.search.candidates.copy()
    trajectories = explore(policy, 13)
    returns = [np.mean([path["rewards"].sum() for path in trajectories.to_paths()[i::N]]) for i in range(N)]
    best = candidates[np.argsort(returns)[-2:]]
    told, tell = [], policy.search.tell
    policy.search.tell = lambda values: (told.append(values), tell(values))
    adapted = adaptation.adapt_policy(policy, trajectories)
    np.testing.assert_allclose(told, [returns])
    np.testing.assert_allclose(adapted.search.cur_mean, best.mean(axis=0))
    np.testing.assert_allclose(adapted.search.cur_std, best.std(axis=0))
    further = adaptation.next_exploration_policy(adapted)
    assert (further.search.candidates != candidates).all()


@BOTH
def test_adaptation_steps_in_a_task_increase_the_return(cls):
    """Ten steps of ten candidates increase the return for a goal, and the common mean is unchanged."""
    adaptation = make(cls, n_samples=10)
    start = adaptation.policy.get_flat_params()
    policy = adaptation.get_exploration_policy()
    before = explore(adaptation.get_initial_policy()).rewards.sum()
    for itr in range(10):
        adapted = _adapt(adaptation, policy, num_paths=10, itr=itr)
        policy = adaptation.next_exploration_policy(adapted)
    after = explore(adapted).rewards.sum()
    assert after > before + 20.0, (before, after)
    np.testing.assert_array_equal(adaptation.policy.get_flat_params(), start)
    np.testing.assert_array_equal(adaptation.get_initial_policy().search.cur_mean, start)


@BOTH
def test_searches_are_independent_and_depend_on_the_seed(cls):
    ends = []
    for _ in range(2):
        set_seed(4)
        adaptation = make(cls, policy=GaussianMLPPolicy(2, 2, (3,)))
        first, second = adaptation.get_exploration_policy(), adaptation.get_exploration_policy()
        assert (first.search.candidates != second.search.candidates).all()
        own = second.search.candidates.copy()
        end = _adapt(adaptation, first).search.cur_mean
        np.testing.assert_array_equal(second.search.candidates, own)
        ends.append(end)
    np.testing.assert_array_equal(*ends)


def test_diagonal_search_supports_large_networks():
    """With 5,000 parameters, adaptation uses less than a hundredth of the full covariance's 200 MB."""
    policy = DeterministicMLPPolicy(2, 2, (70, 68))
    search = CMAES(SPEC, policy, ZeroBaseline(), 8, sigma0=0.01, diagonal=True)
    size = len(search.cur_mean)
    assert size > 5000
    targets = search.cur_mean + 0.1
    before = np.mean((search.cur_mean - targets) ** 2)
    for _ in range(30):
        search.tell(-np.mean((search.candidates - targets) ** 2, axis=1))
    assert np.mean((search.cur_mean - targets) ** 2) < before
    assert len(pickle.dumps(search)) < 8 * size ** 2 / 100


# Invalid arguments


def test_objects_that_are_not_searches_are_refused():
    assert issubclass(SearchAdaptation, MetaRLAlgorithm)
    with pytest.raises(TypeError, match="search: expected a CEM or CMAES, got None"):
        SearchAdaptation(None)
    with pytest.raises(TypeError, match="diagonal: expected True or False, got 1"):
        CMAES(SPEC, DeterministicMLPPolicy(2, 2, ()), ZeroBaseline(), N, diagonal=1)
    with pytest.raises(NotImplementedError, match="SearchAdaptation adapts policies but does not support training"):
        make().train(None)


def test_invalid_trajectories_are_refused_and_change_nothing():
    adaptation = make()
    policy = adaptation.get_exploration_policy()
    mean = policy.search.cur_mean.copy()
    trajectories = explore(policy)
    for given, error, message in (
        (explore(policy, 3), ValueError, r"for each of the 5 candidates, got trajectories for \[0, 1, 2\]"),
        (explore(adaptation.get_initial_policy()), ValueError, r"expected the agent info 'candidate' .* only \[\]"),
        (trajectories.to_paths(), TypeError, "exploration_trajectories: expected a TrajectoryBatch, got list"),
    ):
        with pytest.raises(error, match=message):
            adaptation.adapt_policy(policy, given)
    np.testing.assert_array_equal(policy.search.cur_mean, mean)
    adapted = adaptation.adapt_policy(policy, trajectories)
    for without_candidates in (adapted, policy):
        with pytest.raises(ValueError, match="expected a policy with the candidates of the current cycle"):
            adaptation.adapt_policy(without_candidates, trajectories)
    with pytest.raises(TypeError, match="exploration_policy: expected a SearchPolicy, got"):
        adaptation.adapt_policy(adaptation.policy, trajectories)
    assert isinstance(adapted, SearchPolicy)


@pytest.mark.parametrize("returns", [[1.0] * (N - 1), [1.0] * (N - 1) + [np.nan], np.ones((N, 1))])
def test_returns_must_be_one_number_per_candidate(returns):
    with pytest.raises(ValueError, match="returns: expected 5 finite numbers, one for each candidate, got"):
        make().search.tell(returns)


@pytest.mark.parametrize("observation", [[np.nan, 0.0], [np.inf, 0.0], [1.0], [[1.0, 2.0]]])
def test_observations_are_checked(observation):
    policy = make().get_exploration_policy()
    with pytest.raises(ValueError, match="observation: expected"):
        policy.get_action(observation)
    with pytest.raises(ValueError, match="observations: expected"):
        policy.get_actions([observation])
