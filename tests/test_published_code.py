"""Scripts, subclasses and pickles of the public code of ProMP and of garage work or are refused with a clear error.

`test_old_script.py` runs complete scripts.
"""
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from meta_policy_search import CEM, DiagonalGaussian, LocalRunner, MetaPointEnvWalls, ProMP, RLAlgorithm, envs, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline
from meta_policy_search.envs import EnvSpec, MetaPointEnvCorner, MetaPointEnvNavigation, normalize
from meta_policy_search.envs.point_envs import corner_goals_point_env_2d, point_env_2d, point_env_2d_v2
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.optimizers import ConjugateGradientOptimizer, MAMLFirstOrderOptimizer
from meta_policy_search.optimizers.conjugate_gradient_optimizer import FiniteDifferenceHvp
from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor, MetaSampler, SingleTaskSampler
from meta_policy_search.tf_compat import tf
from tests.helpers.runs import read_rows
from tests.helpers.trainers import build_trainer

M, P, T = 2, 3, 4


def make_policy():
    return MetaGaussianMLPPolicy(M, 2, 2, hidden_sizes=(4,))


def make_sampler(policy, env=None, **arguments):
    env = normalize(MetaPointEnvCorner(reward_type="dense")) if env is None else env
    return MetaSampler(env, policy, P, M, T, **arguments)


class CountingProMP(ProMP):
    """Overrides the method that the public trainer called."""

    def _adapt(self, samples):
        self.adapted = getattr(self, "adapted", 0) + 1
        super()._adapt(samples)


@pytest.mark.thorough
def test_published_override_of_adapt_is_called():
    algo = CountingProMP(make_policy(), meta_batch_size=M)
    build_trainer(algo, (M, P, T)).train()
    assert algo.adapted == 1


def test_published_weights_with_a_log_std_row_are_accepted(tmp_path):
    """All setters accept published weights with a `log_std_var` of shape `[1, A]`."""
    policy = make_policy()
    published = {name: value + 0.5 for name, value in policy.get_param_values().items()}
    published["log_std_network/log_std_var"] = published["log_std_network/log_std_var"][None]
    np.savez(tmp_path / "policy.npz", **published)
    for take in (policy.set_params, lambda _: policy.load_npz(tmp_path / "policy.npz"),
                 lambda weights: policy.update_task_parameters([weights] * M)):
        policy.set_params({name: np.zeros_like(value) for name, value in policy.get_param_values().items()})
        policy.switch_to_pre_update()
        take(published)
        for name, value in policy.policies_params_vals[1].items():
            np.testing.assert_array_equal(value, published[name].reshape(value.shape))


def test_time_baseline_accepts_any_observations():
    path = {"observations": np.arange(5.0), "returns": np.arange(5.0, 0.0, -1.0)}
    baseline, matrix = LinearTimeBaseline(reg_coeff=1e-9), {**path, "observations": np.zeros((5, 3))}
    baseline.fit([path])
    np.testing.assert_allclose(baseline.predict(path), path["returns"], atol=1e-3)
    np.testing.assert_array_equal(baseline.predict(path), baseline.predict(matrix))
    with pytest.raises(ValueError, match=r"paths\[0\]: observations: expected shape \[T, O\]"):
        LinearFeatureBaseline().fit([path])


class OnlyActions:
    """A policy with `get_actions` only, as required by the published sampler and by garage."""

    def __init__(self, *shape):
        self.shape = shape

    def get_actions(self, observations):
        return np.full((*np.shape(observations)[:-1], *self.shape), 0.1), None

    def get_action(self, observation):
        return np.full(2, 0.1), None

    def reset(self, dones=None):
        self.was_reset = True


def test_policies_are_reset_and_single_task_policies_are_refused():
    assert make_policy().reset() is None and make_policy().reset(dones=[True]) is None
    with pytest.raises(TypeError, match="policy: expected a policy for several tasks"):
        make_sampler(GaussianMLPPolicy(2, 2))


class Target:
    """A target that returns its variables as a list; they were created by `tf.get_variable`."""

    def __init__(self):
        self.variable = tf.get_variable("v", initializer=np.full(2, 3.0, np.float32), use_resource=False)

    def get_params(self):
        return [self.variable]


@pytest.mark.parametrize("optimizer", [
    MAMLFirstOrderOptimizer(learning_rate=0.1),
    ConjugateGradientOptimizer(hvp_approach=FiniteDifferenceHvp(grad_clip=1.0))])
def test_optimizers_accept_lists_and_variables_of_get_variable(optimizer):
    target, samples = Target(), tf.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_mean(tf.square(target.variable - samples))
    constraint = {"leq_constraint": (tf.reduce_mean(tf.square(target.variable - 3.0)), 0.01)}
    optimizer.build_graph(loss=loss, target=target, input_ph_dict={"samples": samples},
                          **(constraint if isinstance(optimizer, ConjugateGradientOptimizer) else {}))
    values = {"samples": np.zeros((5, 2))}
    before = optimizer.loss(values)
    optimizer.optimize(values)
    assert before == pytest.approx(9.0) and optimizer.loss(values) < before


def test_distribution_samples_without_a_generator():
    distribution, info = DiagonalGaussian(2), {"mean": np.zeros((1000, 2)), "log_std": np.zeros(2)}
    draws = []
    for _ in range(2):
        set_seed(3)
        draws.append(distribution.sample(info))
    np.testing.assert_array_equal(*draws)
    np.testing.assert_allclose(draws[0].std(axis=0), 1.0, atol=0.1)
    assert (distribution.sample(info) != draws[0]).all()


def unpickle(cls, state):
    """Unpickles an object of the given class of the public code."""

    class Published:
        def __reduce__(self):
            return cls.__new__, (cls,), state

    return pickle.loads(pickle.dumps(Published()))


@pytest.mark.parametrize("cls, state, advice", [
    (MetaGaussianMLPPolicy, {"init_args": {"__args": (), "__kwargs": {}}, "network_params": {}},
     r"Transfer its weights instead: .*numpy.savez\('policy.npz', .*policy.load_npz\('policy.npz'\)"),
    (MetaPointEnvCorner, {"reward_type": "sparse", "corners": [], "goal": np.zeros(2)}, "Build a new object"),
    (normalize, {"__args": (), "__kwargs": {}, "_obs_mean": 0.0, "_obs_var": 1.0}, "Build a new object"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_published_pickles_are_refused_with_a_remedy(cls, state, advice):
    with pytest.raises(ValueError, match=f"{cls.__name__}: expected a pickle of this package.*{advice}"):
        unpickle(cls, state)


def test_published_pickles_of_baselines_load():
    baseline = unpickle(LinearFeatureBaseline, {"_coeffs": np.arange(6.0), "_reg_coeff": 1e-5})
    path = {"observations": np.ones((3, 1)), "returns": np.ones(3)}
    assert baseline.predict(path) == pytest.approx(6.0 + np.arange(3) * 0.02, abs=1e-2)
    baseline.log_diagnostics([path], "")


@pytest.mark.parametrize("processor, name", [
    (MetaSampleProcessor(ZeroBaseline(), normalize_adv=True), "advantages"),
    (MetaSampleProcessor(ZeroBaseline()), "rewards"), (DiceMetaSampleProcessor(ZeroBaseline(), T), "advantages")])
def test_rewards_too_large_to_normalize_raise_with_their_task(processor, name, recwarn):
    paths = make_sampler(make_policy()).obtain_samples()
    paths[1][0]["rewards"][0] = 1e200
    with pytest.raises(ValueError, match=f"task 1, {name}: expected numbers with a finite standard "
                                         "deviation, got absolute values up to .*e[+]"):
        processor.process_samples(paths)
    assert not [warning for warning in recwarn if "overflow" in str(warning.message)]


def test_published_module_contains_the_published_meta_point_env():
    """Paths of the only task start anywhere in the square; rewards are minus the distance; paths end at the goal."""
    env = point_env_2d.MetaPointEnv()
    assert env.sample_tasks(2) == [{}, {}] and env.get_task() == {}
    starts = np.array([env.reset()[0] for _ in range(2000)])
    np.testing.assert_allclose(starts.var(axis=0), 4.0 / 3.0, rtol=0.1)
    np.testing.assert_allclose(np.abs(starts).max(axis=0), 2.0, atol=0.01)
    position, _ = env.reset(seed=3)
    for step in range(40):
        action = -position + (0.0 if step == 39 else 0.05)
        position = position + np.clip(action, -0.1, 0.1)
        observation, reward, *ended, _ = env.step(action)
        np.testing.assert_allclose(observation, position, rtol=0, atol=1e-12)
        assert reward == pytest.approx(-np.hypot(*position)) and ended == [step == 39, False]


def test_other_navigation_env_keeps_its_earlier_name():
    """Existing scripts and settings with `MetaPointEnv` get the same environment as before."""
    for earlier in (envs.MetaPointEnv, envs.point_envs.MetaPointEnv, envs.get_env_class("MetaPointEnv")):
        assert earlier is envs.MetaPointEnvNavigation is not point_env_2d.MetaPointEnv
    assert corner_goals_point_env_2d.MetaPointEnv is envs.MetaPointEnvCornerGoals
    assert corner_goals_point_env_2d.MetaPointEnvCornerGoals is envs.MetaPointEnvCornerGoals
    assert point_env_2d_v2.MetaPointEnv is envs.MetaPointEnvV2
    assert point_env_2d.MetaPointEnv is envs.MetaPointEnvOrigin


def test_wall_rewards_use_the_position_without_walls_as_published():
    """For points that move outwards, positions and rewards equal those of the published rules."""
    n, rng = 40, np.random.default_rng(0)
    for reward_type in ("dense", "dense_squared", "sparse"):
        batched = MetaPointEnvWalls(reward_type=reward_type).make_batched(n)
        tasks = batched.sample_tasks(n, rng)
        batched.set_tasks(tasks)
        positions, pushes = batched.reset(np.arange(n), [rng] * n), rng.normal(size=(n, 2))
        for _ in range(40):
            actions = pushes + 0.3 * rng.normal(size=(n, 2))
            expected = [published_walls(*row, reward_type) for row in zip(positions, actions, tasks)]
            answer = batched.step(actions)
            positions = answer.observations
            np.testing.assert_allclose(positions, [position for position, _ in expected], rtol=1e-12)
            np.testing.assert_allclose(answer.rewards, [reward for _, reward in expected], rtol=1e-12, atol=1e-14)


def published_walls(position, action, task, reward_type):
    """Returns the new position and reward of one step of one point (0 where the published reward is None)."""
    moved = position + np.clip(action, -0.2, 0.2)
    before, after = (np.linalg.norm(point - task["goal"]) for point in (position, moved))
    rewards = {"dense": -after, "dense_squared": -after**2, "sparse": before - after if after < 2.0 else 0.0}
    for wall, gap in ((1.0, task["gap_1"]), (2.0, task["gap_2"])):
        if np.linalg.norm(position) < wall < np.linalg.norm(moved) and np.linalg.norm(moved - gap) > 1.0:
            return moved / (np.linalg.norm(moved) / wall + 1e-6), rewards[reward_type]
    return moved, rewards[reward_type]


class SnapshotConfig(NamedTuple):
    """The `SnapshotConfig` of garage."""

    snapshot_dir: str
    snapshot_mode: str
    snapshot_gap: int


def test_runner_trains_with_a_snapshot_config_in_a_with_block(tmp_path):
    """A script in the style of garage trains and writes rows and the requested snapshots."""
    env = MetaPointEnvNavigation()
    with LocalRunner(SnapshotConfig(str(tmp_path), "gap", 2)) as runner:
        policy = DeterministicMLPPolicy(2, 2, ())
        algo = CEM(EnvSpec.of(env), policy, ZeroBaseline(), n_samples=2, best_frac=0.5, max_path_length=3)
        runner.setup(algo, env)
        runner.train(n_epochs=3, batch_size=3)
    assert len(read_rows(tmp_path)) == 3
    assert (tmp_path / "itr_2.pkl").exists() and not (tmp_path / "itr_1.pkl").exists()


class Sampling(RLAlgorithm):
    """An algorithm that only collects paths."""

    sampler_cls, max_path_length = SingleTaskSampler, 5

    def __init__(self, policy):
        self.policy = policy

    def train(self, runner):
        for _ in runner.step_epochs():
            runner.step_path = runner.obtain_samples(runner.step_itr)
            runner.step_itr += 1


def test_runner_samples_with_a_policy_that_only_has_get_actions():
    runner, env = LocalRunner(), MetaPointEnvNavigation()
    runner.setup(Sampling(OnlyActions(2)), env)
    runner.train(1, 10)
    assert [path["actions"].shape for path in runner.step_path] == [(5, 2)] * 2
    runner.setup(Sampling(OnlyActions(2, 2)), env)
    with pytest.raises(ValueError, match=r"policy: expected actions of shape \(2,\), got \(2, 2\)"):
        runner.train(1, 10)
