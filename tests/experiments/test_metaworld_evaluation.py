"""Tests the evaluation with Meta-World's own code: its inputs, results and invalid arguments."""
import copy
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import metaworld_evaluation, pro_mp
from experiments.metaworld_evaluation import GradientAdaptation, MetaWorldAgent, evaluate_on_metaworld, make_test_envs
from meta_policy_search.envs import MetaEnv, MetaPointEnv, MetaWorldML1, MetaWorldML10, meta_world, normalize
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.samplers.utils import rollout
from meta_policy_search.utils import logger

metaworld = pytest.importorskip("metaworld", reason="needs the extra metaworld")
from metaworld.evaluation import Timestep  # noqa: E402 - what may not be there


def normalized(env):
    env = normalize(env, normalize_obs=True, normalize_reward=True, scale_reward=2.0, normalization_scale=5.0)
    env.averages = {"observations": (np.linspace(0.0, 1.0, 39), np.full(39, 2.0)), "rewards": (0.5, 3.0)}
    return env


class Noting(MetaRLAlgorithm):
    """Records its inputs; its policies act with numbers recorded for each task."""

    def __init__(self):
        self.explored, self.num_made = [], 0

    def get_exploration_policy(self):
        self.num_made += 1
        return NotingPolicy("explores", self.num_made - 1)

    def get_initial_policy(self):
        return self.get_exploration_policy().become("initial")

    def adapt_policy(self, exploration_policy, exploration_trajectories):
        self.explored.append((exploration_policy, exploration_trajectories))
        return exploration_policy.become("adapted")

    def next_exploration_policy(self, adapted_policy):
        return adapted_policy.become("explores further")

    def train(self, runner):
        raise NotImplementedError


class NotingPolicy:
    def __init__(self, role, task):
        self.role, self.task, self.seen, self.begun = role, task, [], 0

    def become(self, role):
        return NotingPolicy(role, self.task)

    def reset(self):
        self.begun += 1

    def get_action(self, observation):
        self.seen.append(observation)
        action = action_of(self.task, len(self.seen))
        return action, {"mean": action + 1.0, "log_std": np.zeros(4)}


def action_of(task, call):
    return np.linspace(-6.0, 6.0, 4) + task + 0.1 * call


class Replay(MetaEnv):
    """Replays a list of observations for any action and records the actions."""

    def __init__(self, observations, rewards):
        env = MetaWorldML1()
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.observations, self.rewards, self.actions = iter(observations), iter(rewards), []

    def sample_tasks(self, n_tasks):
        return [None] * n_tasks

    def set_task(self, task):
        pass

    def reset(self):
        return next(self.observations), {}

    def step(self, action):
        self.actions.append(action)
        return next(self.observations), next(self.rewards), False, False, {}


def evaluator_of(algo, env, **more):
    return SimpleNamespace(env=env, algo=algo, sample_processor=None, trained_steps=None, **more)


def test_exploration_data_equal_those_of_training():
    """For two tasks with two episodes, the paths of Meta-World's code equal those of the environment of the run."""
    num_tasks, length, rng = 2, 4, np.random.default_rng(0)
    algo, env = Noting(), normalized(MetaWorldML1())
    agent = MetaWorldAgent(evaluator_of(algo, env))
    observations = rng.normal(size=(2, length + 1, num_tasks, 39))  # of both episodes
    rewards, taken = rng.normal(size=(2, length, num_tasks)), []
    agent.init()
    for episode in range(2):
        for t in range(length):
            actions, infos = agent.adapt_action(observations[episode, t])
            taken.append(actions)
            ends = np.full(num_tasks, t == length - 1)
            agent.step(Timestep(observations[episode, t], actions, rewards[episode, t], ends & False, ends, infos))
    agent.adapt()
    for m, (policy, trajectories) in enumerate(algo.explored):
        assert (policy.role, policy.task, policy.begun) == ("explores", m, 1 + 2)
        assert trajectories.lengths.tolist() == [length, length] and not trajectories.terminals.any()
        for episode, path in enumerate(trajectories.to_paths()):
            replay = Replay(observations[episode, :, m], rewards[episode, :, m])
            actor = NotingPolicy("explores", m)
            actor.seen = [None] * length * episode
            expected = rollout(normalized(replay), actor, max_path_length=length)
            for key in ("observations", "actions", "rewards"):
                np.testing.assert_allclose(path[key], expected[key], rtol=1e-12, err_msg=key)
            np.testing.assert_allclose(path["agent_infos"]["mean"], expected["agent_infos"]["mean"])
            given = np.array(taken)[length * episode:length * (episode + 1), m]
            np.testing.assert_allclose(given, replay.actions, rtol=1e-12)
            assert np.abs(given).max() == 1.0  # actions outside [-1, 1] are clipped, as in the environment


def test_each_phase_uses_its_policies():
    """With two adaptation steps, the exploring policy of the second step was adapted in the first."""
    algo = Noting()
    agent = MetaWorldAgent(evaluator_of(algo, MetaWorldML1()))
    seen, done = np.zeros((3, 39)), np.ones(3, bool)
    for roles in (["explores"] * 3, ["explores further"] * 3):
        actions, infos = agent.adapt_action(seen)
        agent.step(Timestep(seen, actions, np.zeros(3), ~done, done, infos))
        agent.adapt()
        assert [policy.role for policy, _ in algo.explored[-3:]] == roles
    agent.reset(done)
    assert algo.num_made == 3  # one per task
    np.testing.assert_allclose(agent.eval_action(seen)[2], np.clip(action_of(2, 1) + 1.0, -1.0, 1.0))  # mean action
    agent.init()
    agent.reset(done)
    agent.eval_action(seen)
    assert algo.num_made == 6 and len(algo.explored) == 6


@pytest.mark.thorough
def test_gradient_step_in_one_task_equals_that_of_the_algorithm(run_folder):
    evaluator = mps.load_evaluator(run_folder)
    method = GradientAdaptation(evaluator.algo, evaluator.sample_processor)
    policies = [method.get_exploration_policy() for _ in range(2)]
    env = evaluator.env
    env.set_task(env.sample_tasks(1)[0])
    spec, paths = mps.EnvSpec.of(env), [[rollout(env, policy, max_path_length=5)] for policy in policies]
    adapted = [method.adapt_policy(policy, mps.TrajectoryBatch.from_paths(spec, of_task))
               for policy, of_task in zip(policies, paths, strict=True)]
    together = evaluator.algo.with_meta_batch_size(2)
    together.adapt([copy.deepcopy(evaluator.sample_processor).process_samples({0: of_task})[0] for of_task in paths])
    for policy, expected in zip(adapted, together.policy.policies_params_vals, strict=True):
        (values,) = policy.algo.policy.policies_params_vals
        for name, value in values.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7)
            assert (value != evaluator.algo.policy.get_param_values()[name]).any()


class Reaching:
    """Moves to the goal in one task and stands still in the others."""

    def __init__(self, envs, goal):
        self.envs, self.goal = envs, goal

    def init(self):
        pass

    adapt = init

    def step(self, timestep):
        pass

    reset = step

    def adapt_action(self, observations):
        return self.eval_action(observations), {}

    def eval_action(self, observations):
        actions = np.zeros((len(observations), 4))
        for action, observation, env in zip(actions, observations, self.envs.envs):
            if np.allclose(env.unwrapped._target_pos, self.goal):
                action[:3] = np.clip(10.0 * (self.goal - observation[:3]), -1.0, 1.0)
        return actions


@pytest.mark.thorough
def test_environments_equal_those_of_metaworld(monkeypatch):
    base = meta_world.scene_class("reach-v3")
    monkeypatch.setattr(metaworld.sawyer_xyz_env.SawyerMocapBase, "reset_mocap_welds", base.reset_mocap_welds)
    theirs = metaworld.make_ml_envs_test("reach-v3", seed=3, meta_batch_size=1, total_tasks_per_cls=4)
    ours = make_test_envs(MetaWorldML1("reach-v3", split="test", seed=3), 4, seed=3)
    assert_same_wrappers(theirs.envs[0], ours.envs[0])
    for envs in (theirs, ours):
        envs.call("toggle_sample_tasks_on_reset", False)
    for _ in range(3):  # goals repeat
        for envs in (theirs, ours):
            envs.call("sample_tasks")
        np.testing.assert_array_equal(*(envs.get_attr("_target_pos") for envs in (theirs, ours)))
        np.testing.assert_array_equal(theirs.reset()[0], ours.reset()[0])
        actions = np.random.default_rng(0).uniform(-1.0, 1.0, (1, 4))
        for _ in range(3):
            np.testing.assert_array_equal(theirs.step(actions)[0], ours.step(actions)[0])


def assert_same_wrappers(one, other):
    while one is not one.unwrapped:
        assert type(one) is type(other)
        for name in ("_max_episode_steps", "sample_tasks_on_reset", "terminate_on_success"):
            assert getattr(one, name, None) == getattr(other, name, None), name
        one, other = one.env, other.env
    assert isinstance(other, type(one)) and other.task_name == one.task_name


# The script


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run of the reach task; tests must not change it."""
    from meta_policy_search.tf_compat import tf

    folder = str(tmp_path_factory.mktemp("runs") / "reach")
    logger.reset()
    with tf.Graph().as_default() as graph:
        assert pro_mp.main(["--env", "MetaWorldML1", "--smoke", "--n_itr", "1", "--dump_path", folder]) == 0
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return folder


@pytest.mark.thorough
def test_script_reports_the_counts_of_metaworld(run_folder, capsys):
    small = ["--num_goals", "2", "--adaptation_episodes", "2", "--evaluation_episodes", "2", "--max_path_length", "4"]
    assert metaworld_evaluation.main([run_folder, *small]) == 0
    title, *table = capsys.readouterr().out.splitlines()
    assert title == f"{run_folder}, iteration 0, metaworld {version('metaworld')}, mujoco {version('mujoco')}"
    assert [line.split()[-2:] for line in table[:1] + table[2:]] == [["0", "1"], ["0.000", "0.000"], ["0.000", "0.000"]]
    assert table[1].startswith("mean return ") and table[3].startswith("  reach-v3 ")


@pytest.mark.slow
def test_evaluation_depends_on_its_seed_and_sizes(run_folder):
    evaluator = mps.load_evaluator(run_folder)
    sizes = {"num_goals": 2, "adaptation_episodes": 2, "evaluation_episodes": 1, "max_path_length": 4}
    np.random.seed(5)
    first = evaluate_on_metaworld(evaluator, **sizes)
    after = np.random.random()
    np.random.seed(5)
    assert after == np.random.random()
    assert evaluate_on_metaworld(evaluator, **sizes) == first and first.adaptation_steps == 1
    others = [{"seed": 2}, {"split": "train"}, {"adaptation_steps": 2}, {"num_goals": 3},
              {"adaptation_episodes": 3}, {"max_path_length": 5}]
    returns = [evaluate_on_metaworld(evaluator, **{**sizes, **other}).mean_return for other in others]
    assert len({first.mean_return, *returns}) == 1 + len(others)


@pytest.mark.thorough
def test_task_types_are_counted_separately():
    algo = Noting()
    evaluator = evaluator_of(algo, normalize(MetaWorldML10(), normalization_scale=1.0))
    result = evaluate_on_metaworld(evaluator, num_goals=1, adaptation_episodes=1, evaluation_episodes=1,
                                   max_path_length=2)
    assert list(result.success_rates) == MetaWorldML10(split="test").env_names
    assert result.success_rate == 0.0 and len(algo.explored) == 5


@pytest.mark.thorough
def test_goals_are_counted_separately(monkeypatch):
    """If a policy succeeds on one of two goals, the rounds name the goal, and their mean is the success rate."""
    env = MetaWorldML1(split="test")
    agent = Reaching(None, np.array(env.tasks[1].rand_vec[3:]))

    def make_and_tell(*arguments):
        agent.envs = make_test_envs(*arguments)
        return agent.envs

    monkeypatch.setattr(metaworld_evaluation, "make_test_envs", make_and_tell)
    monkeypatch.setattr(metaworld_evaluation, "MetaWorldAgent", lambda *_: agent)
    result = evaluate_on_metaworld(evaluator_of(None, env), num_goals=2, adaptation_episodes=1, max_path_length=90)
    assert (result.rounds, result.success_rate, result.success_rates) == ([0.0, 1.0], 0.5, {"reach-v3": 0.5})


# Invalid arguments


@pytest.mark.parametrize("arguments, complaint", [
    ({"num_goals": 51}, "num_goals: expected at most 50, got 51"),
    ({"num_goals": 0}, "num_goals: expected an integer of at least 1, got 0"),
    ({"split": "all"}, "split: expected one of 'train', 'test', got 'all'"),
    ({"seed": -1}, "seed: expected an integer of at least 0, got -1"),
])
def test_arguments_are_checked(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        evaluate_on_metaworld(evaluator_of(Noting(), MetaWorldML1()), **arguments)


def test_other_environments_are_refused():
    with pytest.raises(TypeError, match="evaluator: expected a Meta-World environment .* got Meta"):
        evaluate_on_metaworld(evaluator_of(Noting(), normalize(MetaPointEnv())))
