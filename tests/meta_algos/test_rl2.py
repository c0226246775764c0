"""RL^2: its loss and gradient against a NumPy reference, its samples on all executors, its runs and their mistakes."""
import copy

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.baselines.base import ValueHeadBaseline
from meta_policy_search.cli import runs
from meta_policy_search.cli.main import main
from meta_policy_search.envs import TrialEnv, normalize
from meta_policy_search.envs.normalized_env import get_averages
from meta_policy_search.envs.trial_env import split_episodes
from meta_policy_search.policies import CategoricalRecurrentPolicy, GaussianRecurrentPolicy
from meta_policy_search.sessions import VariableSet
from tests.helpers.numpy_reference import central_differences, log_density, split
from tests.helpers.runs import assert_same
from tests.helpers.sampling import sampler_of
from tests.helpers.small_world import relative_error, set_theta, shapes_of

M, O, A, H = 2, 3, 2, 4
LENGTHS = ((3, 5), (4,))  # of the trials of each task
CLIP_EPS, VALUE_COEF, ENTROPY_COEF = 0.15, 0.7, 0.1
POLICIES = [CategoricalRecurrentPolicy, GaussianRecurrentPolicy]
TINY = {"episodes_per_trial": 3, "max_path_length": 4, "meta_batch_size": 3, "rollouts_per_meta_task": 2,
        "hidden_size": 4, "num_ppo_steps": 2, "num_minibatches": 2, "progress_bar": False, "log_formats": ["csv"]}
CONTINUOUS, DISCRETE = "MetaPointEnvCorner", "MetaTabularMDPEnv"


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def outputs(theta, shapes, observations):
    """Outputs of the action head `[T, A]` and of the value head `[T]` along a trial, step by step."""
    input_kernel, recurrent_kernel, bias, *heads = split(theta, shapes)
    action_kernel, action_bias, value_kernel, value_bias = heads[:4]
    state, states = np.zeros(H), []
    for observation in observations:
        of_input, of_state = observation @ input_kernel + bias, state @ recurrent_kernel
        reset, update = sigmoid(of_input[:H] + of_state[:H]), sigmoid(of_input[H:2 * H] + of_state[H:2 * H])
        candidate = np.tanh(of_input[2 * H:] + reset * of_state[2 * H:])
        state = update * state + (1.0 - update) * candidate
        states.append(state)
    return (np.array(states) @ action_kernel + action_bias, (np.array(states) @ value_kernel + value_bias)[:, 0],
            heads[4:])


def densities(policy_class, outputs, log_std, actions):
    """Log-density of the actions `[T]`, and entropy of each step."""
    if policy_class is CategoricalRecurrentPolicy:
        log_prob = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
        return log_prob[np.arange(len(actions)), actions], -(np.exp(log_prob) * log_prob).sum(axis=1)
    entropy = np.sum(log_std + 0.5 * np.log(2 * np.pi * np.e))
    return log_density(actions, outputs, log_std), np.full(len(actions), entropy)


def standardized(returns):
    """The returns of trials minus their mean at each step, divided by the standard deviation of the differences."""
    differences = [values - np.array([np.mean([other[t] for other in returns if len(other) > t])
                                      for t in range(len(values))]) for values in returns]
    scale = np.sqrt(np.mean(np.concatenate(differences) ** 2))
    return [values / scale for values in differences]


def reference_loss(policy_class, shapes, trials):
    targets = standardized([trial["returns"] for trial in trials])

    def loss(theta):
        terms = []
        for trial, target in zip(trials, targets):
            of_actions, values, log_std = outputs(theta, shapes, trial["observations"])
            density, entropy = densities(policy_class, of_actions, *(log_std or [None]), trial["actions"])
            ratio, advantages = np.exp(density - trial["old_density"]), trial["advantages"]
            surrogate = np.minimum(ratio * advantages, np.clip(ratio, 1 - CLIP_EPS, 1 + CLIP_EPS) * advantages)
            terms.append(-surrogate + VALUE_COEF * 0.5 * (values - target) ** 2 - ENTROPY_COEF * entropy)
        return np.mean(np.concatenate(terms))

    return loss


def draw_trials(policy_class, rng):
    """Trials of policies whose likelihood ratio to others is moderate, as a list for each task."""

    def draw(length):
        noise = rng.normal(size=(length, A)).astype("f").astype(float)
        if policy_class is CategoricalRecurrentPolicy:
            log_prob = 0.3 * noise - np.log(np.exp(0.3 * noise).sum(axis=1, keepdims=True))
            infos, actions = {"log_prob": log_prob}, rng.integers(A, size=length)
            old_density = log_prob[np.arange(length), actions]
        else:
            infos = {"mean": 0.2 * noise, "log_std": np.full((length, A), 0.1)}
            actions = rng.normal(size=(length, A)).astype("f").astype(float)
            old_density = log_density(actions, 0.2 * noise, np.full(A, 0.1))
        return {"observations": rng.normal(size=(length, O)), "actions": actions, "agent_infos": infos,
                "advantages": rng.normal(size=length), "returns": rng.normal(size=length), "old_density": old_density}

    return [[draw(length) for length in lengths] for lengths in LENGTHS]


def as_samples(trials):
    joined = {key: np.concatenate([trial[key] for trial in trials])
              for key in ("observations", "actions", "advantages", "returns")}
    infos = {key: np.concatenate([trial["agent_infos"][key] for trial in trials]) for key in trials[0]["agent_infos"]}
    return {**joined, "agent_infos": infos, "path_lengths": np.array([len(trial["returns"]) for trial in trials])}


@pytest.mark.gradients
@pytest.mark.parametrize("policy_class", POLICIES)
def test_loss_and_gradient(policy_class):
    # given trials of unequal length, and parameters other than those that sampled them
    policy = policy_class(M, O, A, hidden_size=H)
    algo = mps.RL2(policy, M, clip_eps=CLIP_EPS, value_coef=VALUE_COEF, entropy_coef=ENTROPY_COEF)
    theta, trials = set_theta(policy), draw_trials(policy_class, np.random.default_rng(0))
    # when loss and gradient are computed in the graph
    values = algo.input_values([as_samples(of_task) for of_task in trials])
    loss, gradient = algo.optimizer.loss(values), algo.optimizer.gradient(values)
    # then they are those of the loop over steps
    expected = reference_loss(policy_class, shapes_of(policy), [trial for of_task in trials for trial in of_task])
    assert loss == pytest.approx(expected(theta), rel=1e-4)
    assert relative_error(gradient, central_differences(expected, theta)) < 1e-3


@pytest.mark.parametrize("policy_class", POLICIES)
def test_the_actor_acts_as_the_graph_says(policy_class):
    policy = policy_class(M, O, A, hidden_size=H)
    set_theta(policy)
    observations = np.random.default_rng(0).normal(size=(6, M, O))
    steps = [policy.get_actions(now[:, None])[1] for now in observations]
    algo = mps.RL2(policy, M)
    session = VariableSet(algo.policy.get_params()).session()
    info, values = session.run(policy.trial_info_sym(np.swapaxes(observations, 0, 1).astype("f")))
    for name, expected in {**info, "value": values}.items():
        actual = np.array([[of_task[0][name] for of_task in step] for step in steps])
        actual = np.swapaxes(actual, 0, 1)
        np.testing.assert_allclose(actual, np.broadcast_to(expected, actual.shape), atol=1e-5)
    policy.reset()
    again = policy.get_actions(observations[0][:, None])[1]
    np.testing.assert_array_equal(again[0][0]["value"], steps[0][0][0]["value"])
    with pytest.raises(ValueError, match="call reset"):
        policy.get_action(observations[0, 0])


def collect(env_name, **arguments):
    mps.set_seed(3)
    env = mps.TrialEnv(mps.normalize(mps.make_env(env_name)), episodes_per_trial=3, max_path_length=4)
    policy_class = CategoricalRecurrentPolicy if hasattr(env.action_space, "n") else GaussianRecurrentPolicy
    policy = policy_class.for_env(env, meta_batch_size=4, hidden_size=5)
    policy.set_flat_params(0.5 * np.random.default_rng(0).normal(size=len(policy.get_flat_params())))
    with sampler_of(env, policy, rollouts_per_meta_task=3, meta_batch_size=4, max_path_length=env.trial_length,
                    **arguments) as sampler:
        return [sampler.obtain_samples() for _ in range(2)]


@pytest.mark.parametrize("env_name", [CONTINUOUS, DISCRETE])
@pytest.mark.parametrize("arguments", [
    {"executor": mps.MetaIterativeEnvExecutor}, {"envs_per_task": 2},
    pytest.param({"parallel": True}, marks=pytest.mark.thorough)], ids=str)
def test_all_executors_collect_the_same_trials(env_name, arguments):
    assert_same(collect(env_name, **arguments), collect(env_name))


def test_trials_are_processed_for_all_tasks_together():
    (paths, _), processor = collect(DISCRETE), mps.TrialSampleProcessor()
    samples = processor.process_samples(paths)
    advantages = np.concatenate([task["advantages"] for task in samples])
    assert np.mean(advantages) == pytest.approx(0.0, abs=1e-6) and np.std(advantages) == pytest.approx(1.0, abs=1e-3)
    returns = np.stack([path["returns"] for of_task in paths.values() for path in of_task])
    values = np.stack([path["agent_infos"]["value"] for of_task in paths.values() for path in of_task])
    scale = np.sqrt(np.mean((returns - returns.mean(axis=0)) ** 2))
    np.testing.assert_allclose(processor.baseline.predict(paths[0][0]), returns.mean(axis=0) + scale * values[0])
    assert [len(task["rewards"]) for task in samples] == [3 * 12] * 4


def test_a_run_is_evaluated_by_episode_and_plotted(tmp_path, capsys):
    run = mps.train(DISCRETE, "rl2", n_itr=1, dump_path=tmp_path / "run", **TINY)
    evaluation = run.evaluate(tasks=4, seeds=(1, 2))
    assert evaluation.returns.shape == (2, 4, 3)
    assert evaluation.timesteps[0, 0].tolist() == [0, 4, 8] and evaluation.num_timesteps == 2 * 4 * 2 * 12
    assert evaluation.trial_return.mean == pytest.approx(evaluation.returns.sum(axis=2).mean())
    assert f"Return of a trial of 3 episodes: {evaluation.trial_return.mean:.2f}" in str(evaluation)
    short = mps.load_evaluator(tmp_path / "run", max_path_length=2).evaluate(tasks=4)
    assert short.max_path_length == 2 and short.num_timesteps <= evaluation.num_timesteps // 4
    assert "worst quarter" in str(evaluation) and "worst quarter" not in str(short)  # 8 and 4 different tasks
    with pytest.raises(ValueError, match="env: expected a TrialEnv for the policy in .*, got MetaTabularMDPEnv; RL2"):
        mps.load_evaluator(tmp_path / "run", env=mps.MetaTabularMDPEnv())
    assert main(["evaluate", str(tmp_path / "run"), "--num_tasks", "2"]) == 0
    assert "of a trial of 3 episodes" in capsys.readouterr().out
    listed = runs.read_run(str(tmp_path / "run"))
    assert listed["gain"] == pytest.approx(float(run.progress["Step_0-LastEpisodeReturn"][0]
                                                 - run.progress["Step_0-FirstEpisodeReturn"][0]))
    again = mps.load_evaluator(tmp_path / "run").evaluate(tasks=4, seeds=(1, 2))
    np.testing.assert_array_equal(again.returns, evaluation.returns)
    assert run.evaluate(tasks=4, num_steps=11).returns.shape == (1, 4, 12)  # longer trials than in training
    evaluation.save(tmp_path / "evaluation")
    run.plot(tmp_path / "curve.png")
    assert (tmp_path / "evaluation" / "adaptation_curve.png").exists() and (tmp_path / "curve.png").exists()


@pytest.mark.slow
def test_rl2_learns_bandits(tmp_path):
    """Given 40 iterations with 12,500 steps each, then a trial of 10 pulls of 5 arms pays clearly more than 5."""
    run = mps.train(mps.MetaBernoulliBanditEnv(5), "rl2", n_itr=40, dump_path=tmp_path / "run", log_formats=["csv"],
                    episodes_per_trial=10, max_path_length=1, meta_batch_size=250, rollouts_per_meta_task=5,
                    hidden_size=32, learning_rate=3e-3, progress_bar=False)
    assert run.evaluate(500).trial_return.mean > 6.0


def test_mistakes_are_explained_in_one_line(tmp_path):
    recurrent, plain = CategoricalRecurrentPolicy(M, O, A, hidden_size=H), mps.MetaCategoricalMLPPolicy(M, O, A)
    algo = mps.RL2(recurrent, M)
    sample = as_samples(draw_trials(CategoricalRecurrentPolicy, np.random.default_rng(0))[0])
    for error, message, call in (
            (ValueError, "episodes_per_trial: expected an integer of at least 1, got 0",
             lambda: mps.train(DISCRETE, "rl2", dump_path=tmp_path / "a", episodes_per_trial=0)),
            (TypeError, "policy: expected a MetaPolicy .*, got CategoricalRecurrentPolicy",
             lambda: mps.ProMP(recurrent, meta_batch_size=M)),
            (TypeError, "policy: expected a RecurrentPolicy .*, got MetaCategoricalMLPPolicy",
             lambda: mps.RL2(plain, M)),
            (ValueError, "meta_batch_size", lambda: mps.RL2(recurrent, M + 1)),
            (ValueError, "RL2 has no inner steps", lambda: algo.adapt([sample] * M)),
            (ValueError, "samples of one step", lambda: algo.optimize_policy([[sample] * M] * 2)),
            (ValueError, "expected an entry 'returns'",
             lambda: algo.optimize_policy([[{k: v for k, v in sample.items() if k != "returns"}] * M])),
            (ValueError, r"expected an entry 'value', as a RecurrentPolicy returns it, got \[\]",
             lambda: ValueHeadBaseline().predict({"observations": np.zeros((2, 1))})),
            (TypeError, "unknown setting 'inner_lr' for RL2",
             lambda: mps.train(DISCRETE, "rl2", dump_path=tmp_path / "a", inner_lr=0.1)),
            (ValueError, "num_minibatches: expected at most the number of trials, 6, got 7",
             lambda: mps.train(DISCRETE, "rl2", dump_path=tmp_path / "a", **{**TINY, "num_minibatches": 7})),
            (TypeError, "env: expected TrialEnv as the outermost wrapper, got NormalizedEnv",
             lambda: mps.train(normalize(TrialEnv(mps.MetaPointEnvNavigation(), 2, 4)), "rl2",
                               dump_path=tmp_path / "a"))):
        with pytest.raises(error, match=message) as raised:
            call()
        assert "\n" not in str(raised.value) and not list(tmp_path.iterdir())


def test_a_trial_observes_what_happened_and_restarts_its_episodes():
    env = mps.TrialEnv(mps.MetaBernoulliBanditEnv(2), episodes_per_trial=2, max_path_length=2)
    env.set_task([0.0, 1.0])
    observation, _ = env.reset(seed=1)
    assert observation.tolist() == [1, 0, 0, 0, 0] and env.observation_space.contains(observation)
    steps = [env.step(action) for action in (1, 0, 1, 1)]
    assert [step[0].tolist() for step in steps] == [  # observation, action, reward, end of an episode
        [1, 0, 1, 1, 0], [1, 1, 0, 0, 1], [1, 0, 1, 1, 0], [1, 0, 1, 1, 1]]
    assert [(step[1], step[2], step[3], step[4]["episode"]) for step in steps] == [
        (1.0, False, False, 0), (0.0, False, False, 0), (1.0, False, False, 1), (1.0, True, False, 1)]


def test_episodes_start_at_the_start_of_the_environment():
    for path in (path for paths in collect(DISCRETE)[0].values() for path in paths):
        episodes = split_episodes(path)
        assert [len(episode["rewards"]) for episode in episodes] == [4, 4, 4]
        assert all(episode["observations"][0, 0] == 1.0 for episode in episodes)  # state 0
        assert path["terminated"]


class Penalized(TrialEnv):
    make_batched = None

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, reward - 1_000.0, *rest)


def test_evaluations_use_the_subclass_of_the_trial_environment(tmp_path):
    env = Penalized(normalize(mps.MetaPointEnvNavigation()), 2, 4)
    settings = {name: value for name, value in TINY.items() if name not in ("episodes_per_trial", "max_path_length")}
    run = mps.train(env, "rl2", 1, dump_path=tmp_path / "run", **settings)
    assert run.evaluate(tasks=2).trial_return.mean < -7_000.0


def test_evaluations_do_not_change_running_averages(tmp_path):
    """Training is the same with and without evaluations, evaluations are repeatable, and paths can be replayed."""
    settings = {**TINY, "normalize_obs": True, "normalize_reward": True, "obs_alpha": 0.1, "reward_alpha": 0.1}
    plain, evaluated = (mps.train(CONTINUOUS, "rl2", 3, dump_path=tmp_path / name, callbacks=callbacks, **settings)
                        for name, callbacks in (("plain", []), ("evaluated", [mps.EvalCallback(1, tasks=2)])))
    np.testing.assert_array_equal(*(run.policy.get_flat_params() for run in (plain, evaluated)))
    before = copy.deepcopy(get_averages(plain.env))
    returns = [plain.evaluate(tasks=2).returns for _ in range(2)]
    np.testing.assert_array_equal(*returns)
    recording = plain.adapt(rollouts=2).recording
    for episode in range(3):
        assert len(list(recording.replay(episode, task=0, path=1))) > 1
    np.testing.assert_equal(get_averages(plain.env), before)


def test_invalid_arguments_do_not_change_the_recurrent_state(tmp_path):
    run = mps.train("MetaPointEnvNavigation", "rl2", 1, dump_path=tmp_path / "run", **TINY)
    one, other = run.adapt(rollouts=1), run.adapt(rollouts=1)
    with pytest.raises(TypeError, match="deterministic: expected True or False, got 1"):
        one.act([0.5, -0.5], deterministic=1)
    np.testing.assert_array_equal(one.act([0.5, -0.5], True), other.act([0.5, -0.5], True))
    with pytest.raises(ValueError, match="step_size: expected .*, got -1"):
        mps.adapt(run.policy, run.env, step_size=-1)
