"""Tests `Run.adapt` and `adapt`: the adapted policy acts, measures its return, and leaves the run unchanged."""
import copy
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.evaluation import adapted_policy
from meta_policy_search.utils import seeding
from tests.test_run import TINY

TASK = np.array([-2.0, 2.0])
TRIALS = {"episodes_per_trial": 3, "max_path_length": 4, "meta_batch_size": 2, "rollouts_per_meta_task": 2,
          "hidden_size": 4, "log_formats": ["csv"], "progress_bar": False}


def make_env():
    return mps.MetaPointEnvCorner("dense")


def train(folder, callbacks=()):
    return mps.train(make_env(), "vpg_maml", 2, dump_path=folder, callbacks=callbacks, log_formats=["csv"],
                     inner_lr=0.5, num_inner_grad_steps=2, **TINY)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two iterations; tests must not change it."""
    return train(tmp_path_factory.mktemp("run") / "a")


@pytest.fixture(scope="module")
def rl2_run(tmp_path_factory):
    """A run of one iteration with large random weights, so that actions depend on the hidden state."""
    run = mps.train(make_env(), "rl2", 1, dump_path=tmp_path_factory.mktemp("rl2") / "a", **TRIALS)
    run.policy.set_flat_params(0.5 * np.random.default_rng(0).normal(size=len(run.policy.get_flat_params())))
    return run


@pytest.fixture
def policy():
    return mps.MetaGaussianMLPPolicy(3, obs_dim=2, action_dim=2, hidden_sizes=(4,))


@pytest.fixture
def env():
    return mps.normalize(make_env())


class HalvingProcessor(mps.MetaSampleProcessor):
    def process_samples(self, paths_meta_batch, log=False, log_prefix=""):
        for path in [path for paths in paths_meta_batch.values() for path in paths]:
            path["rewards"] *= 0.5
        return super().process_samples(paths_meta_batch, log, log_prefix)


def test_rewards_that_a_processor_changes_are_recorded_as_the_environment_returned_them(tmp_path):
    class HalvingMAML(mps.VPGMAML):
        sample_processor_cls = HalvingProcessor

    run = mps.train(make_env(), HalvingMAML, 1, dump_path=tmp_path / "a", log_formats=["csv"], **TINY)
    adapted = run.adapt(TASK, rollouts=2)
    assert list(adapted.recording.replay(step=0, task=0))  # raises an error if the rewards differ
    np.testing.assert_array_equal(adapted.returns, run.evaluate([TASK]).returns[0, 0])


@pytest.mark.thorough
def test_policy_of_a_run_is_adapted_as_in_an_evaluation(run, tmp_path):
    adapted = run.adapt(TASK, rollouts=2)
    np.testing.assert_array_equal(adapted.returns, run.evaluate([TASK]).returns[0, 0])
    np.testing.assert_array_equal(adapted.returns, mps.load_run(run.folder).adapt(TASK, rollouts=2).returns)
    np.testing.assert_array_equal(adapted.env.get_task(), TASK)
    assert repr(adapted).startswith("<AdaptedPolicy in task (-2.00, 2.00), returns ")
    # it acts with the adapted parameters
    np.savez(tmp_path / "adapted.npz", **adapted.params)
    observation = np.array([0.3, -0.2])
    np.testing.assert_allclose(adapted.policy.act(observation, deterministic=True), mps.load_policy(
        tmp_path / "adapted.npz").act(observation, deterministic=True), rtol=1e-5)
    assert (adapted.act(observation, True) != run.act(observation, True)).any()
    assert (adapted.act(observation) != adapted.act(observation)).any()
    adapted.observe(1.0, done=True)  # does nothing


def test_actions_and_observations_have_the_units_of_the_environment(env):
    """Given an environment with normalized observations and rewards, then `act` equals acting in the wrapper."""
    wrapped = mps.normalize(make_env(), normalize_obs=True, scale_reward=2.0)
    wrapped.averages["observations"] = np.array([0.5, -0.5]), np.array([4.0, 9.0])
    policy = mps.MetaGaussianMLPPolicy(1, obs_dim=2, action_dim=2, hidden_sizes=(4,))
    adapted = mps.adapt(policy, wrapped, TASK, rollouts=2, max_path_length=3)
    in_training = adapted.recording.env
    np.testing.assert_array_equal(in_training.get_task(), TASK)
    adapted.env.reset(seed=1), in_training.reset(seed=1)
    step = adapted.env.step(adapted.act([0.3, -0.2], deterministic=True))
    expected = in_training.step(adapted.policy.act([(0.3 - 0.5) / 2.0, (-0.2 + 0.5) / 3.0], deterministic=True))
    np.testing.assert_allclose((step[0] - [0.5, -0.5]) / [2.0, 3.0], expected[0], rtol=1e-6)
    assert 2.0 * step[1] == pytest.approx(expected[1])
    assert adapted.env.action_space.contains(adapted.act([0.3, -0.2]))
    with pytest.raises(ValueError, match=r"observation: expected shape \(2,\), got \(3,\)"):
        adapted.act([0.3, -0.2, 1.0])


def test_objects_that_are_no_evaluator_are_refused(run):
    for wrong in (run, SimpleNamespace(algo=run.trainer.algo)):
        with pytest.raises(TypeError, match="expected a MetaEvaluator of a MetaAlgo, got a [A-Za-z]+; for a run, "):
            mps.adapt_with(wrong)


def test_task_steps_paths_and_seed_are_arguments(run):
    first = run.adapt(num_steps=1, rollouts=3, seed=1)
    assert first.returns.shape == (2,) and len(first.recording.rounds[0][0]) == 3
    np.testing.assert_array_equal(first.returns, run.adapt(first.task, 1, 3, seed=1).returns)
    assert len({tuple(run.adapt(num_steps=1, rollouts=1, seed=seed).task) for seed in range(5)}) > 1
    with pytest.raises(ValueError, match="num_steps: expected an integer of at least 1, got 0"):
        run.adapt(num_steps=0)
    with pytest.raises(ValueError, match="^seed: expected an integer of at least 0, got -1"):
        run.adapt(seed=-1)
    for adapt in (run.adapt, lambda rollouts: mps.adapt(run.policy, run.env, rollouts=rollouts)):
        with pytest.raises(ValueError, match="^rollouts: expected an integer of at least 1, got 0"):
            adapt(rollouts=0)
    with pytest.raises(ValueError, match="corner"):
        run.adapt(np.array([9.0, 9.0]))


def test_returns_are_measured_with_new_paths(run):
    adapted = run.adapt(TASK, num_steps=1, seed=3)
    measured = adapted.evaluate(rollouts=20, seed=3)  # seed of the adaptation: the recorded paths before adaptation
    assert measured["before"].mean == pytest.approx(adapted.returns[0])
    new = adapted.evaluate(rollouts=20)
    assert new["before"].mean != measured["before"].mean and new["after"].mean != adapted.returns[1]
    assert new["gain"].mean == pytest.approx(new["after"].mean - new["before"].mean)
    np.testing.assert_array_equal(new, adapted.evaluate(20, seed=4))
    other = mps.load_run(run.folder)
    other.policy.set_params(adapted.params)
    assert new["after"].mean == pytest.approx(other.adapt(TASK, rollouts=20, seed=4).returns[0])
    assert new["after"].half_width > 0.0 and np.isnan(adapted.evaluate(rollouts=1)["after"].half_width)


def test_video_shows_the_recorded_episodes(run, tmp_path):
    from tests.helpers.videos import read_video

    run.adapt(TASK, num_steps=1, rollouts=1).record(tmp_path / "video.mp4", fps=4)
    meta, pictures = read_video(tmp_path / "video.mp4")
    assert meta["fps"] == 4.0 and len(pictures) == 1 + TINY["max_path_length"]
    assert run.env.render_mode is None


def test_existing_video_is_replaced_only_on_request(run, tmp_path, monkeypatch):
    """Given an existing file, then nothing is rendered without `overwrite=True`."""
    adapted, written = run.adapt(TASK, rollouts=1), []
    monkeypatch.setattr(adapted_policy, "write_video", lambda recording, path, fps: written.append(path))
    path = tmp_path / "video.mp4"
    adapted.record(path)
    path.touch()
    with pytest.raises(ValueError, match="path: expected a file that does not exist, got .*overwrite=True"):
        adapted.record(path)
    adapted.record(path, overwrite=True)
    assert written == [path] * 2


@pytest.mark.thorough
def test_training_with_adaptations_gives_equal_weights(run, tmp_path):
    """Given a callback that adapts, then weights and random states equal those of the run without it."""

    def adapt(trainer, row):
        if trainer.itr:
            return
        state = seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist(), trainer.policy.get_state()
        adapted = mps.Run(trainer, tmp_path).adapt(rollouts=2)
        adapted.act(np.zeros(2))
        adapted.evaluate(2)
        mps.adapt(trainer.policy, trainer.env, rollouts=2, max_path_length=2).act(np.zeros(2))
        assert state == (seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist(),
                         trainer.policy.get_state())

    with_adaptations = train(tmp_path / "run", [adapt])
    for name, value in run.policy.get_param_values().items():
        np.testing.assert_array_equal(with_adaptations.policy.get_param_values()[name], value)


@pytest.mark.thorough
def test_policy_without_a_run_takes_policy_gradient_steps(policy, env):
    algo = mps.VPGMAML(policy, inner_lr=0.3, meta_batch_size=3)
    processor = mps.MetaSampleProcessor(mps.LinearFeatureBaseline(), normalize_adv=True)
    expected = mps.MetaEvaluator(algo, env, processor, 4, 6).evaluate([TASK], num_steps=2)
    num_operations = len(policy.get_params()["mean_network/output/kernel"].graph.get_operations())
    adapted = mps.adapt(policy, env, TASK, num_steps=2, rollouts=4, step_size=0.3, max_path_length=6)
    np.testing.assert_array_equal(adapted.returns, expected.returns[0, 0])
    graph = policy.get_params()["mean_network/output/kernel"].graph
    assert len(graph.get_operations()) == num_operations and adapted.policy.get_params() is not policy.get_params()


@pytest.mark.thorough(but="{'adapt_params': 'head'}", ci="{'step_size': 0.5}")
@pytest.mark.parametrize("arguments", [
    {"step_size": 0.5}, {"max_path_length": 7}, {"adapt_params": "head"}, {"seed": 2},
    {"sample_processor": mps.MetaSampleProcessor(mps.ZeroBaseline(), discount=0.5)}], ids=str)
def test_each_setting_of_the_step_has_an_effect(arguments, policy, env):
    given = {"rollouts": 3, "max_path_length": 5, "step_size": 0.2}
    default, changed = (mps.adapt(policy, env, TASK, **{**given, **more}).params for more in ({}, arguments))
    first, last = (f"mean_network/{name}/kernel" for name in ("hidden_0", "output"))
    assert (default[first] != policy.get_param_values()[first]).any() and (default[first] != changed[first]).any()
    if "adapt_params" in arguments:
        np.testing.assert_array_equal(changed[first], policy.get_param_values()[first])
        np.testing.assert_array_equal(changed[last], default[last])


def test_other_policies_are_refused(env):
    with pytest.raises(TypeError, match="expected a MetaPolicy .* or a RecurrentPolicy, got a GaussianMLPPolicy"):
        mps.adapt(mps.GaussianMLPPolicy(2, 2), env)


def test_recurrent_policy_continues_the_recorded_trial(rl2_run, monkeypatch):
    """Given the recorded observations and actions, then `act` repeats inputs and outputs of the last episode."""
    adapted = rl2_run.adapt(TASK, rollouts=2)
    np.testing.assert_allclose(adapted.returns, rl2_run.evaluate([TASK]).returns[0, 0])
    episode, act = adapted.recording.rounds[-1][0][0], adapted.policy.act
    for t in range(len(episode["rewards"])):
        seen = []
        monkeypatch.setattr(adapted.policy, "act", lambda observation, deterministic, t=t, seen=seen: (
            seen.extend([observation, act(observation, deterministic)]) or episode["actions"][t]))
        adapted.act(episode["observations"][t, :2], deterministic=True)
        np.testing.assert_array_equal(seen[0], episode["observations"][t])
        np.testing.assert_allclose(seen[1], episode["agent_infos"]["mean"][t], atol=1e-5)
        adapted.observe(episode["rewards"][t])
    assert np.abs(episode["agent_infos"]["mean"][0] - rl2_run.policy.get_action(episode["observations"][0])[1]["mean"]
                  ).max() > 0.01  # the hidden state matters
    rl2_run.policy.reset()


def test_recurrent_policy_acts_and_measures_its_return(rl2_run):
    state = seeding.get_process_state()["seeding"]
    adapted = rl2_run.adapt(num_steps=4, rollouts=2)
    assert adapted.returns.shape == (5,) and seeding.get_process_state()["seeding"] == state
    np.testing.assert_equal(adapted.params, rl2_run.policy.get_param_values())
    observation, _ = adapted.env.reset(seed=1)
    for wrong, message in ((np.zeros(3), r"expected shape \(2,\), got \(3,\)"),
                           (adapted.env.reset(seed=1), "expected the first value of `reset` or `step`, got all of")):
        with pytest.raises(ValueError, match=f"observation: {message}"):
            adapted.act(wrong)
    for done in (np.False_, True, False):
        observation, reward, *_ = adapted.env.step(adapted.act(observation))
        with pytest.raises(RuntimeError, match="act: expected a call of `observe` after each action"):
            adapted.act(observation)
        adapted.observe(reward, done)
        with pytest.raises(RuntimeError, match="observe: expected a call of `act` before"):
            adapted.observe(reward, done)
    assert adapted.evaluate(2, seed=1)["after"].mean == pytest.approx(adapted.returns[-1])
    assert adapted.evaluate(3)["before"].mean != adapted.returns[0]


def test_recurrent_policy_observes_rewards_of_the_environment_as_in_training(rl2_run):
    """Given a wrapper that scales rewards and actions, then the policy sees the reward and action of the wrapper."""
    wrapped = mps.normalize(make_env(), scale_reward=0.5)
    policy = mps.GaussianRecurrentPolicy.for_env(mps.TrialEnv(wrapped, max_path_length=3), meta_batch_size=1,
                                                   hidden_size=4)
    adapted, seen = mps.adapt(policy, wrapped, TASK, num_steps=1, rollouts=1, max_path_length=3), []
    act = adapted.policy.act
    adapted.policy.act = lambda observation, deterministic: seen.append(act(observation, deterministic)) or (
        seen.append(observation) or seen[-2])
    action = adapted.act([0.1, 0.2])
    np.testing.assert_allclose(action, wrapped.unscaled_actions(seen[0]))
    with pytest.raises(ValueError, match="reward: expected a finite number, got nan"):
        adapted.observe(np.nan)
    adapted.observe(-3.0)
    adapted.act([0.1, 0.2])
    np.testing.assert_allclose(seen[-1][2:], [*seen[0], -1.5, 0.0], rtol=1e-6)  # action, reward, end


def test_end_of_episode_and_reward_are_observed(rl2_run):
    adapted, means = rl2_run.adapt(TASK, rollouts=1), []
    for reward, done in ((0.0, False), (9.0, False), (0.0, True)):
        other = copy.copy(adapted)
        other.policy = copy.copy(adapted.policy)
        other.policy._rng = np.random.default_rng(1)
        other.act(np.zeros(2))
        other.observe(reward, done)
        means.append(other.act(np.zeros(2), deterministic=True))
    assert np.abs(means[0] - means[1]).max() > 1e-3 and np.abs(means[0] - means[2]).max() > 1e-3


@pytest.mark.parametrize("env_name", ["MetaPointEnvCorner", "MetaTabularMDPEnv"])
def test_episodes_of_recorded_trials_can_be_replayed(env_name):
    env = mps.normalize(mps.make_env(env_name))
    cls = mps.CategoricalRecurrentPolicy if env_name == "MetaTabularMDPEnv" else mps.GaussianRecurrentPolicy
    policy = cls.for_env(mps.TrialEnv(env), meta_batch_size=2, hidden_size=4)
    adapted = mps.adapt(policy, env, rollouts=3, max_path_length=5)  # wraps the environment
    assert isinstance(adapted, mps.AdaptedRecurrentPolicy) and len(adapted.recording.rounds) == 2
    for step in range(2):
        for path in range(3):
            assert len(list(adapted.recording.replay(step, 0, path))) == 6  # an error if a reward differs
