"""Candidates that act together and candidates that act sequentially have the same paths, bit for bit."""
import gymnasium
import numpy as np
import psutil
import pytest

import meta_policy_search as mps
from meta_policy_search import OrnsteinUhlenbeckPolicy, SingleTaskEnv, SingleTaskSampler, set_seed
from meta_policy_search.envs import MetaPointEnv, MetaPointEnvCorner, normalize
from meta_policy_search.np.policies import CategoricalMLPPolicy, DeterministicMLPPolicy, GaussianMLPPolicy
from tests.helpers.runs import assert_same
from tests.helpers.sampling import algo_of

T = 12
NUM_CANDIDATES = 5


def cart_pole():
    return gymnasium.make("CartPole-v1", disable_env_checker=True).unwrapped


def pendulum():
    return gymnasium.make("Pendulum-v1", disable_env_checker=True)


class MinimalPolicy:
    """A user-defined policy with the minimal interface; it draws no noise."""

    obs_dim = action_dim = 2

    def __init__(self):
        self.weights = np.zeros((2, 2))

    def get_flat_params(self):
        return self.weights.ravel()

    def set_flat_params(self, flat_params):
        self.weights = np.reshape(flat_params, (2, 2))

    def get_actions(self, observations):
        return observations @ self.weights + 0.01, {"twice": 2.0 * observations}


class OneByOne(MetaPointEnv):
    make_batched = None


WORLDS = {
    "batched": (MetaPointEnv, lambda: GaussianMLPPolicy(2, 2, (4,)), {}),
    "processes": (MetaPointEnv, lambda: GaussianMLPPolicy(2, 2, (4,)), {"parallel": True}),
    "iterative": (OneByOne, lambda: DeterministicMLPPolicy(2, 2, (4,)), {}),
    "discrete": (cart_pole, lambda: CategoricalMLPPolicy(4, 2, ()), {}),
    "pendulum": (pendulum, lambda: GaussianMLPPolicy(3, 1, (4,)), {}),
    "tensorflow": (MetaPointEnv, lambda: mps.GaussianMLPPolicy(2, 2, hidden_sizes=(4,)), {}),
    "minimal_policy": (MetaPointEnv, MinimalPolicy, {}),
    "exploring": (MetaPointEnv, lambda: OrnsteinUhlenbeckPolicy(MetaPointEnv(), DeterministicMLPPolicy(2, 2)), {}),
}
NOISY = ("batched", "processes", "pendulum", "tensorflow")  # environments in which all paths differ


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.thorough(but=("batched", "iterative", "discrete", "pendulum", "minimal_policy", "exploring"))
def test_paths_of_a_population_equal_those_of_single_candidates(world):
    make_env, make_policy, arguments = WORLDS[world]
    env, policy = make_env(), make_policy()
    candidates = np.random.default_rng(0).normal(size=(NUM_CANDIDATES, len(policy.get_flat_params())))
    # when the candidates act together, and sequentially
    sampler = SingleTaskSampler(algo_of(policy, T), env, **arguments)
    population = sampler.obtain_population_samples(10, 3 * T, candidates)
    sampler.shutdown_worker()
    sampler = SingleTaskSampler(algo_of(policy, T), env, **arguments)
    alone = []
    for i, candidate in enumerate(candidates):
        policy.set_flat_params(candidate)
        alone.append(sampler.obtain_samples(10 + i, 3 * T))
    sampler.shutdown_worker()
    # then the paths are equal: three different paths per candidate
    assert_same(population, alone)
    assert [len(paths) for paths in alone] == [3] * NUM_CANDIDATES
    returns = [path["actions"].sum() + path["observations"].sum() for paths in alone for path in paths]
    assert len(set(returns)) >= (3 * NUM_CANDIDATES if world in NOISY else NUM_CANDIDATES)


def normalized():
    return normalize(MetaPointEnvCorner("dense"), normalize_obs=True, normalize_reward=True, obs_alpha=0.1,
                     reward_alpha=0.1)


def test_candidates_that_act_sequentially_have_the_same_averages():
    env, policy, candidates = normalized(), MinimalPolicy(), np.random.default_rng(0).normal(size=(3, 4))
    population = SingleTaskSampler(algo_of(policy, T), env).obtain_population_samples(10, 2 * T, candidates)
    for i, candidate in enumerate(candidates):
        policy.set_flat_params(candidate)
        assert_same(population[i], SingleTaskSampler(algo_of(policy, T), normalized()).obtain_samples(
            10 + i, 2 * T))
    # then the averages are updated once, with all paths
    expected = normalized()
    expected.update_averages([path for paths in population for path in paths])
    np.testing.assert_equal(env.averages, expected.averages)


def test_evaluations_do_not_change_the_averages():
    env = normalized()
    sampler = SingleTaskSampler(algo_of(GaussianMLPPolicy(2, 2, ()), T), env)
    sampler.obtain_samples(0, T)
    before = dict(env.averages)
    first, second = (sampler.obtain_evaluation_samples(1, 3) for _ in range(2))
    assert_same(first, second)
    np.testing.assert_equal([env.averages, sampler.sampled_env.averages], [before, before])
    assert before["rewards"][0] != 0.0


def test_paths_depend_on_iteration_and_seed():
    policy = GaussianMLPPolicy(2, 2, ())
    actions = []
    for seed, itr in ((1, 0), (1, 0), (1, 1), (2, 0)):
        set_seed(seed)
        sampler = SingleTaskSampler(algo_of(policy, T), MetaPointEnv())
        actions.append(sampler.obtain_samples(itr, T)[0]["actions"])
    np.testing.assert_array_equal(actions[0], actions[1])
    assert (actions[0] != actions[2]).all() and (actions[0] != actions[3]).all()


@pytest.mark.parametrize("batch_size, num_paths", [(1, 1), (T, 1), (T + 1, 2), (3 * T, 3)])
def test_batch_consists_of_complete_paths(batch_size, num_paths):
    sampler = SingleTaskSampler(algo_of(GaussianMLPPolicy(2, 2, ()), T), MetaPointEnv())
    paths = sampler.obtain_samples(0, batch_size)
    assert [len(path["rewards"]) for path in paths] == [T] * num_paths


def test_early_ends_reduce_the_steps_but_not_the_number_of_paths():
    sampler = SingleTaskSampler(algo_of(CategoricalMLPPolicy(4, 2, ()), max_path_length=200), cart_pole())
    paths = sampler.obtain_samples(0, 1000)
    assert len(paths) == 5 and all(path["terminated"] and len(path["rewards"]) < 200 for path in paths)


def test_task_is_the_current_task_of_the_environment():
    env, policy = MetaPointEnv(), DeterministicMLPPolicy(2, 2, ())
    policy.set_flat_params(np.zeros(6))  # stays at the origin
    sampler = SingleTaskSampler(algo_of(policy, T), env)
    for goal in ([0.3, 0.4], [-0.6, 0.8]):
        env.set_task(goal)
        np.testing.assert_allclose(sampler.obtain_samples(0, T)[0]["rewards"], -np.linalg.norm(goal))
        np.testing.assert_array_equal(env.get_task(), goal)


def test_worker_processes_do_not_accumulate_and_start_again_after_a_shutdown():
    before = set(psutil.Process().children())
    sampler = SingleTaskSampler(algo_of(GaussianMLPPolicy(2, 2, ()), T), MetaPointEnv(), parallel=True)
    for num_paths in (1, 3, 2):
        paths = sampler.obtain_samples(0, num_paths * T)
        assert len(paths) == num_paths
        assert len(set(psutil.Process().children()) - before) == 1  # one task has one worker
    sampler.shutdown_worker()
    sampler.shutdown_worker()
    assert set(psutil.Process().children()) <= before
    assert_same(sampler.obtain_samples(0, 2 * T), paths)
    sampler.shutdown_worker()


def test_changed_path_length_takes_effect():
    algo = algo_of(GaussianMLPPolicy(2, 2, ()), T)
    sampler = SingleTaskSampler(algo, MetaPointEnv())
    sampler.obtain_samples(0, T)
    algo.max_path_length = 2 * T
    assert [len(path["rewards"]) for path in sampler.obtain_samples(0, T)] == [2 * T]


class Nameless(MetaPointEnv):
    """Does not report its task."""

    def get_task(self):
        raise NotImplementedError


@pytest.mark.parametrize("build, error, message", [
    (lambda policy: SingleTaskSampler(algo_of(policy, T), pendulum()), ValueError, r"policy.obs_dim: expected \(3,\)"),
    (lambda policy: SingleTaskSampler(algo_of(policy, T), cart_pole()), ValueError,
     "action space .*, got a GaussianMLPPolicy, whose actions are arrays"),
    (lambda policy: SingleTaskSampler(algo_of(policy, T), MetaPointEnv).obtain_samples(0, 1), TypeError,
     "env: expected an environment"),
    (lambda policy: SingleTaskSampler(algo_of(policy, T), Nameless()).obtain_samples(0, 1),
     NotImplementedError, None),
    (lambda policy: SingleTaskSampler(algo_of(policy, T), MetaPointEnv()).obtain_samples(-1, 1), ValueError,
     "itr: expected an integer of at least 0, got -1"),
])
def test_invalid_arguments_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build(GaussianMLPPolicy(2, 2, ()))


def test_environment_without_tasks_has_one_task():
    assert SingleTaskEnv(cart_pole()).gravity == 9.8  # forwards attributes to the wrapped environment
    env = SingleTaskEnv(pendulum())
    assert env.sample_tasks(3) == [None] * 3 and env.get_task() is None
    env.set_task(None)
    with pytest.raises(ValueError, match=r"task: expected None \(TimeLimit has no tasks\), got 1"):
        env.set_task(1)
    observation, info = env.reset(seed=3)
    assert observation.shape == (3,) and info == {}
    assert len(env.step(np.zeros(1))) == 5
    assert env.unwrapped is env.wrapped_env.unwrapped
    assert SingleTaskEnv(MetaPointEnvCorner()).make_batched(1) is None  # forwarding it would be wrong
    env.close()
