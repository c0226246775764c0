"""Tests the evaluation with Meta-World's own code: its inputs, results and invalid arguments."""
import copy
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import metaworld_evaluation, pro_mp
from experiments.metaworld_evaluation import MetaWorldAgent, evaluate_on_metaworld, make_test_envs
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


class Noting:
    """An algorithm that records the samples of its adaptation steps; its policy acts with numbers of task and call."""

    def __init__(self):
        self.explored, self.num_made, self.calls, self.policy = [], 0, 0, self

    def with_meta_batch_size(self, meta_batch_size):
        self.num_made += 1
        return self

    def adapt(self, samples):
        self.explored.append(samples)

    def get_actions(self, observations):
        self.calls += 1
        return zip(*(NotingPolicy(task, self.calls - 1).get_actions(rows) for task, rows in enumerate(observations)),
                   strict=True)


class NotingPolicy:
    """The policy of one task, after some calls."""

    def __init__(self, task, calls=0):
        self.task, self.calls = task, calls

    def reset(self):
        pass

    def get_action(self, observation):
        self.calls += 1
        action = action_of(self.task, self.calls)
        return action, {"mean": action + 1.0, "log_std": np.zeros(4)}

    def get_actions(self, observations):
        action, info = self.get_action(*observations)
        return action[None], [info]


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
    return SimpleNamespace(env=env, algo=algo, sample_processor=SimpleNamespace(process_samples=dict),
                           trained_steps=None, **more)


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
    (explored,) = algo.explored
    for m, paths in explored.items():
        assert [len(path["rewards"]) for path in paths] == [length, length]
        for episode, path in enumerate(paths):
            assert not path["terminated"]
            replay = Replay(observations[episode, :, m], rewards[episode, :, m])
            actor = NotingPolicy(m, length * episode)
            expected = rollout(normalized(replay), actor, max_path_length=length)
            for key in ("observations", "actions", "rewards"):
                np.testing.assert_allclose(path[key], expected[key], rtol=1e-12, err_msg=key)
            np.testing.assert_allclose(path["agent_infos"]["mean"], expected["agent_infos"]["mean"])
            given = np.array(taken)[length * episode:length * (episode + 1), m]
            np.testing.assert_allclose(given, replay.actions, rtol=1e-12)
            assert np.abs(given).max() == 1.0  # actions outside [-1, 1] are clipped, as in the environment


def test_adapted_policies_explore_further_and_act_with_their_mean():
    """With two adaptation steps, the second one continues from the first. `init` starts again."""
    algo = Noting()
    agent = MetaWorldAgent(evaluator_of(algo, MetaWorldML1()))
    seen, done = np.zeros((3, 39)), np.ones(3, bool)
    for _ in range(2):
        actions, infos = agent.adapt_action(seen)
        agent.step(Timestep(seen, actions, np.zeros(3), ~done, done, infos))
        agent.adapt()
        assert [len(paths) for paths in algo.explored[-1].values()] == [1, 1, 1]
    agent.reset(done)
    assert algo.num_made == 1 and len(algo.explored) == 2
    np.testing.assert_allclose(agent.eval_action(seen)[2], np.clip(action_of(2, 3) + 1.0, -1.0, 1.0))  # mean action
    agent.init()
    agent.reset(done)
    agent.eval_action(seen)  # without exploration
    assert algo.num_made == 2


@pytest.mark.thorough
def test_gradient_step_equals_that_of_the_algorithm(run_folder):
    evaluator, rng = mps.load_evaluator(run_folder), np.random.default_rng(0)
    agent = MetaWorldAgent(evaluator)
    together, processor = evaluator.algo.with_meta_batch_size(2), copy.deepcopy(evaluator.sample_processor)
    steps = []
    for t in range(5):
        observations, rewards, ends = rng.normal(size=(2, 39)), rng.normal(size=2), np.full(2, t == 4)
        actions, infos = agent.adapt_action(observations)
        agent.step(Timestep(observations, actions, rewards, ends & False, ends, infos))
        steps.append({**infos, "rewards": rewards})
    agent.adapt()
    columns = {key: np.stack([step[key] for step in steps], axis=1) for key in steps[0]}
    paths = {m: [{**{key: columns[key][m] for key in ("observations", "actions", "rewards")}, "env_infos": {},
                  "agent_infos": {key: columns[key][m] for key in ("mean", "log_std")},
                  "last_observation": columns["observations"][m, -1], "terminated": False}] for m in range(2)}
    together.adapt(processor.process_samples(paths))
    for values, expected in zip(*(algo.policy.policies_params_vals for algo in (agent._algo, together)), strict=True):
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
    assert result.success_rate == 0.0 and [len(paths) for paths in algo.explored] == [5]


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


def test_searches_are_refused():
    class Search(MetaRLAlgorithm):
        get_exploration_policy = adapt_policy = None

    with pytest.raises(TypeError, match="evaluator: expected a policy that adapts by gradient steps, got one of Sea"):
        MetaWorldAgent(evaluator_of(Search(), MetaWorldML1()))
