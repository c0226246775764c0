"""Tests meta-testing: agreement with training, no side effects; seeds, tasks, step sizes; output files."""
import copy
import dataclasses
import html
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import meta_policy_search as mps
from meta_policy_search import Evaluation, MetaEvaluator, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.meta_algos import DICEMAML, VPGMAML
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor, MetaSampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.gym_import import gym
from tests.helpers.runs import read_csv
from tests.helpers.trainers import build_trainer

M, P, T = 4, 3, 6


def build(algo_cls=VPGMAML, baseline=None, nonlinearity=None, rollouts=P, n_itr=3, **arguments):
    """Returns a small trainer in the default graph, with large adaptation steps for visible effects."""
    hidden_sizes = () if nonlinearity is None else (4,)
    policy = MetaGaussianMLPPolicy(M, 2, 2, hidden_sizes=hidden_sizes, hidden_nonlinearity=nonlinearity)
    processor = (DiceMetaSampleProcessor(LinearTimeBaseline(), T) if algo_cls is DICEMAML else
                 MetaSampleProcessor(baseline or LinearFeatureBaseline(), normalize_adv=True))
    return build_trainer(algo_cls, (M, rollouts, T), n_itr, policy=policy, processor=processor,
                         **{"inner_lr": 1.0, **arguments})


@pytest.fixture(scope="module")
def trainer():
    """A trainer shared by tests that do not train."""
    with tf.Graph().as_default():
        set_seed(1)
        yield build(num_inner_grad_steps=2)


@pytest.fixture
def evaluator(trainer):
    return MetaEvaluator.from_trainer(trainer)


@pytest.fixture(autouse=True)
def quiet(_fresh_logger):
    logger.set_level(logger.DISABLED)
    yield
    logger.set_level(logger.INFO)


@pytest.fixture
def frozen(monkeypatch):
    """A trainer whose meta-updates have no effect."""
    trainer = build(rollouts=12, num_inner_grad_steps=2)
    monkeypatch.setattr(trainer.algo, "optimize_policy", lambda samples: None)
    return trainer


# Agreement with training -----------------------------------------------------------------------------------------


def test_evaluation_equals_a_training_iteration_with_its_seed(frozen):
    """With the random numbers of evaluation seed 5, an iteration has the returns of the evaluation after each step."""
    with seeding.evaluation_seed(5):
        frozen.perform_itr()
        row = logger.dumpkvs()
    evaluation = MetaEvaluator.from_trainer(frozen).evaluate(tasks=M, seeds=[5])
    returns = [row[f"Step_{step}-AverageReturn"] for step in range(3)]
    np.testing.assert_allclose(evaluation.mean_return.mean, returns, rtol=1e-12)
    assert row["AdaptationGain"] == pytest.approx(evaluation.gain.mean[-1], rel=1e-12)
    assert row["AdaptationGainCI95"] == pytest.approx(evaluation.gain.half_width[-1], rel=1e-9)


# Seeds, tasks and steps ------------------------------------------------------------------------------------------


def test_contents_and_defaults_of_an_evaluation(evaluator):
    evaluation = evaluator.evaluate(tasks=6, num_steps=3, seeds=(1, 2))
    assert evaluation.returns.shape == (2, 6, 4)
    assert [len(tasks) for tasks in evaluation.tasks] == [6, 6]
    assert evaluation.num_timesteps == 2 * 6 * 4 * P * T
    np.testing.assert_array_equal(evaluation.timesteps, np.broadcast_to(np.arange(4) * P * T, (2, 6, 4)))
    np.testing.assert_array_equal(evaluation.mean_timesteps, np.arange(4) * P * T)
    assert (evaluation.seeds, evaluation.rollouts_per_meta_task, evaluation.max_path_length) == ((1, 2), P, T)
    assert evaluation.name == "policy" and evaluation.step_sizes is None and not evaluation.are_given
    default = evaluator.evaluate()
    assert default.returns.shape == (1, 40, 3)  # 40 tasks and the adaptation steps of training
    assert evaluation == evaluation != default and len({evaluation}) == 1  # compared as objects


def test_evaluation_depends_only_on_its_seed_and_differs_from_training(trainer, evaluator):
    both = evaluator.evaluate(tasks=5, seeds=(1, 2))
    set_seed(77)
    second = evaluator.evaluate(tasks=5, seeds=[2])
    np.testing.assert_array_equal(second.returns[0], both.returns[1])
    np.testing.assert_array_equal(second.tasks[0], both.tasks[1])
    assert (both.returns[0] != both.returns[1]).all()
    # training with the same seed has other tasks (16 draws from 4 corners) and start states
    many = evaluator.evaluate(tasks=16, seeds=[1]).tasks[0]
    set_seed(1)
    sampler = MetaSampler(trainer.env, trainer.policy.with_meta_batch_size(16), P, 16, T)
    sampler.update_tasks()
    assert np.any(np.array(sampler.tasks) != many)


def test_returns_of_a_task_do_not_depend_on_the_other_tasks(evaluator):
    """If the number of tasks differs from training, the first two tasks have the returns of an evaluation of two."""
    tasks = [[2.0, 2.0], [-2.0, 2.0], [2.0, -2.0], [-2.0, -2.0], [2.0, 2.0]]
    five, two = evaluator.evaluate(tasks), evaluator.evaluate(tasks[:2])
    np.testing.assert_allclose(five.returns[:, :2], two.returns, rtol=1e-4)
    np.testing.assert_array_equal(five.tasks, [tasks])


def test_given_tasks_are_averaged_over_seeds_and_sampled_tasks_are_not(evaluator):
    sampled = evaluator.evaluate(tasks=3, seeds=(1, 2))
    np.testing.assert_array_equal(sampled.task_returns, sampled.returns.reshape(6, 3))
    given = evaluator.evaluate(tasks=sampled.tasks[0], seeds=(1, 2))
    np.testing.assert_array_equal(given.returns[0], sampled.returns[0])
    np.testing.assert_allclose(given.task_returns, given.returns.mean(axis=0))


def test_deterministic_returns_are_those_of_the_mean_actions_after_the_same_adaptation(evaluator):
    """Given the recorded start of each path, then mean actions from there give the measured returns."""
    task = np.array([2.0, 2.0])
    evaluation = evaluator.evaluate([task], num_steps=1, deterministic=np.True_)
    recording = evaluator.record([task], num_steps=1)
    before, env, totals = evaluator.policy.with_meta_batch_size(1), recording.env, np.zeros(2)
    env.set_task(task)
    env.reset()
    for step, policy in enumerate((before, recording.policy)):
        for path in recording.rounds[step][0]:
            observation = env._batched.states[0] = path["observations"][0]
            for _ in range(T):
                observation, reward, *_ = env.step(policy.act(observation, deterministic=True))
                totals[step] += reward / P
    np.testing.assert_allclose(evaluation.returns[0, 0], totals, rtol=1e-5)
    assert "without the noise of the policy" in str(evaluation)
    with pytest.raises(TypeError, match="^path: expected a path, got Evaluation$"):
        evaluation.plot(evaluation)
    assert evaluation.num_timesteps == 2 * evaluator.evaluate([task], num_steps=1).num_timesteps


def test_fixed_tasks_of_an_environment_are_evaluated_by_name():
    """Given an environment with 100 test tasks, then "test" selects them."""
    run = mps.MetaEvaluator(VPGMAML(MetaGaussianMLPPolicy(1, 2, 2, hidden_sizes=()), meta_batch_size=1),
                            mps.MetaPointEnvNavigation(), MetaSampleProcessor(LinearFeatureBaseline()), 1, 2)
    np.testing.assert_array_equal(run.evaluate("test").tasks[0], mps.load_tasks("MetaPointEnvNavigation", "test"))
    with pytest.raises(ValueError, match="tasks: expected a number, .*, got 'tests'; did you mean 'test'"):
        run.evaluate("tests")


def test_more_rollouts_longer_paths_and_worker_processes(trainer):
    evaluator = MetaEvaluator.from_trainer(trainer, rollouts_per_meta_task=5, max_path_length=2, envs_per_task=2)
    evaluation = evaluator.evaluate(tasks=2, num_steps=1)
    assert evaluation.num_timesteps == 2 * 2 * 5 * 2
    evaluator = MetaEvaluator.from_trainer(trainer, rollouts_per_meta_task=5, max_path_length=2, parallel=True)
    np.testing.assert_array_equal(evaluator.evaluate(tasks=2, num_steps=1).returns, evaluation.returns)


# Step sizes ------------------------------------------------------------------------------------------------------


def test_last_step_size_applies_to_all_later_steps(trainer, evaluator, monkeypatch):
    taken, adapt = [], VPGMAML.adapt
    monkeypatch.setattr(VPGMAML, "adapt", lambda *args, **kwargs: (taken.append(kwargs), adapt(*args, **kwargs)))
    evaluation = evaluator.evaluate(tasks=2, num_steps=4, step_sizes=(0.1, 0.05))
    assert taken == [{"step_size": size} for size in (0.1, 0.05, 0.05, 0.05)]
    assert evaluation.step_sizes == (0.1, 0.05, 0.05, 0.05)


@pytest.mark.parametrize("trainable", [False, True])
def test_given_step_size_replaces_that_of_the_algorithm(trainable):
    """For step size s, theta' - theta is s / alpha times its value for the algorithm's step size alpha."""
    trainer = build(trainable_inner_step_size=trainable, inner_lr=0.5)
    trainer.sampler.update_tasks()
    samples = trainer.sample_processor.process_samples(trainer.sampler.obtain_samples())
    start = trainer.policy.stacked_param_values()
    moved = []
    for arguments in ({}, {"step_size": 1.5}, {"step_size": 0.5}):
        trainer.policy.switch_to_pre_update()
        trainer.algo.adapt(samples, **arguments)
        adapted = trainer.policy.stacked_param_values()
        moved.append(np.concatenate([(adapted[name] - start[name]).ravel() for name in start]))
    own, longer, same = moved
    assert np.abs(own).max() > 0.01
    np.testing.assert_allclose(longer, 3.0 * own, atol=1e-5)
    np.testing.assert_allclose(same, own, atol=1e-6)


# Output ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def evaluation():
    """Returns a hand-made evaluation of two tasks with returns 0 and 2 before, 10 and 14 after one step."""
    return Evaluation("data/run", np.array([[[0.0, 10.0], [2.0, 14.0]]]), ([np.array([1.0, 2.0]), {"a": 1}],), False,
                      (7,), (0.1,), 20, 100, 8000, np.array([[[0, 200], [0, 300]]]))


def test_consoles_and_notebooks_show_the_table(evaluation):
    assert repr(evaluation) == evaluation.table()
    assert evaluation._repr_html_() == f"<pre>{html.escape(evaluation.table())}</pre>"


T_975_1 = 12.7062047  # Student's t with one degree of freedom


def test_table_shows_the_worst_quarter_and_few_tasks():
    """Given eight tests of two tasks, then each task has a row; eight tasks have one row of the two lowest returns."""
    returns = np.array([[[float(i), 10.0 * i] for i in range(8)]])
    evaluation = Evaluation("run", returns, ([-1.0, 1.0] * 4,), False, (7,), None, 20, 100, 1, np.zeros((1, 8, 2), int))
    np.testing.assert_allclose(evaluation.worst_quarter, [0.5, 5.0])
    rows = {row[:-2]: row[-2:] for row in (tuple(line.split()) for line in str(evaluation).splitlines()[2:-1])}
    assert ("worst", "quarter") not in rows
    assert rows["task", "-1.00"] == ("3.00", "30.00") and rows["task", "1.00"] == ("4.00", "40.00")
    evaluation = dataclasses.replace(evaluation, tasks=([1e-4, 2e-4] * 4,))  # different tasks with equal labels
    assert [line.split()[-1] for line in str(evaluation).splitlines() if "task 0.00" in line] == ["30.00", "40.00"]
    *_, worst, _ = str(dataclasses.replace(evaluation, tasks=([*map(float, range(8))],))).splitlines()
    assert worst.split() == ["worst", "quarter", "0.50", "5.00"]


@pytest.mark.parametrize("trained_steps, said", [
    (1, "+10.00 in 1 step (trained for 1)"), (2, "-5.00 in 2 steps (trained for 2)"),
    (5, "-5.00 in 2 steps (trained for 5)"), (None, "-5.00 in 2 steps"),
])
def test_last_line_reports_the_number_of_steps_of_training(trained_steps, said):
    """If the second step reduces the return, the last line reports this only for policies trained for two steps."""
    evaluation = Evaluation("data/run", np.array([[[0.0, 10.0, -5.0]]]), ([1],), True, (7,), None, 20, 100, 1,
                            np.zeros((1, 1, 3), int), trained_steps)
    *_, returns, gained, last = evaluation.table().splitlines()
    assert returns.split() == ["data/run", "0.00", "10.00", "-5.00"] and gained.split() == ["gained", "+10.00", "-5.00"]
    assert last == f"Adaptation changes the return by {said}"


def test_references_have_the_same_tasks():
    of_two, of_three = (Evaluation("data/run", np.zeros((1, number, 2)), ([1] * number,), True, (7,), None, 20, 100, 1,
                                   np.zeros((1, number, 2), int)) for number in (2, 3))
    with pytest.raises(ValueError, match="references: expected evaluations in the same tasks"):
        of_two.table(of_three)


def test_written_files(evaluation, tmp_path):
    reference = Evaluation("random", np.array([[[1.0, 1.0]]]), ([object()],), True, (7,), None, 20, 100, 4000,
                           np.array([[[0, 400]]]))
    assert evaluation.save(tmp_path / "new" / "folder", reference) == str(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "adaptation_curve.png", "evaluation.json", "return_over_timesteps.png", "returns.csv"]
    # means
    rows = read_csv(folder / "returns.csv")
    assert [(row["policy"], row["step"]) for row in rows] == [
        ("data/run", "0"), ("data/run", "1"), ("random", "0"), ("random", "1")]
    numbers = [[float(row[key]) for key in ("timesteps", "return", "return_ci95", "gain", "gain_ci95")] for row in rows]
    np.testing.assert_allclose(numbers, [
        [0.0, 1.0, T_975_1, 0.0, 0.0], [250.0, 12.0, 2 * T_975_1, 11.0, T_975_1], [0.0, 1.0, np.nan, 0.0, np.nan],
        [400.0, 1.0, np.nan, 0.0, np.nan]])
    # all values
    ours, theirs = json.loads((folder / "evaluation.json").read_text())
    assert ours["returns"] == evaluation.returns.tolist() and ours["tasks"] == [[[1.0, 2.0], {"a": 1}]]
    assert (ours["name"], ours["seeds"], ours["step_sizes"], ours["num_timesteps"]) == ("data/run", [7], [0.1], 8000)
    assert ours["mean_return"] == [1.0, 12.0] and ours["gain"] == [0.0, 11.0]
    np.testing.assert_allclose(ours["mean_return_ci95"], [T_975_1, 2 * T_975_1])
    assert ours["timesteps"] == [[[0, 200], [0, 300]]]
    assert theirs["tasks"][0][0].startswith("<object object at")  # values that JSON cannot represent
    assert theirs["mean_return_ci95"] is None and theirs["step_sizes"] is None


# Invalid arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, error, message", [
    ({"tasks": 0}, ValueError, "tasks: expected an integer of at least 1, got 0"),
    ({"tasks": []}, ValueError, r"tasks: expected a list of at least one task, or a number of tasks, got \[\]"),
    ({"tasks": 1.5}, TypeError, "tasks: expected an integer of at least 1, got 1.5"),
    ({"tasks": [[1.0, 2.0, 3.0]]}, ValueError, r"task 0: expected one of the corners .*, got"),
    ({"num_steps": 0}, ValueError, "num_steps: expected an integer of at least 1, got 0"),
    ({"step_sizes": [0.1] * 3}, ValueError, "step_sizes: expected 1 to num_steps=2 numbers, got"),
    ({"step_sizes": [0.1, -0.1]}, ValueError, r"step_sizes\[1\]: expected a finite number above 0, got -0.1"),
    ({"seeds": 1}, TypeError, "seeds: expected a list of integers, got 1"),
    ({"step_sizes": 0.1}, TypeError, "step_sizes: expected a list of numbers or None, got 0.1"),
    ({"seeds": [1, 1]}, ValueError, r"seeds: expected at least one seed, without duplicates, got \(1, 1\)"),
])
def test_invalid_evaluation_arguments_are_refused(evaluator, arguments, error, message):
    with pytest.raises(error, match=message):
        evaluator.evaluate(**arguments)


@pytest.mark.parametrize("arguments, error, message", [
    ({"algo": "ProMP"}, TypeError, r"algo: expected a MetaAlgo \(such as ProMP\) or a MetaRLAlgorithm, got"),
    ({"env": gym.Env()}, TypeError, "env: expected a meta-environment"),
    ({"sample_processor": None}, TypeError, "sample_processor: expected an object with process_samples, got None"),
    ({"parallel": 1}, ValueError, "parallel: expected True .one process per core., False, 'ray' or options of Ray, "),
])
def test_invalid_evaluator_arguments_are_refused(trainer, arguments, error, message):
    with pytest.raises(error, match=message):
        MetaEvaluator.from_trainer(trainer, **arguments)


@pytest.mark.filterwarnings("ignore:overflow")
def test_non_finite_step_raises_and_restores_the_random_state(evaluator):
    state = seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist()
    with pytest.raises((FloatingPointError, ValueError), match="finite"):
        evaluator.evaluate(tasks=2, step_sizes=[1e38])
    assert (seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist()) == state


# Algorithms that adapt to each task separately ---------------------------------------------------------------------


def test_running_averages_are_constant_in_evaluations():
    env = mps.normalize(mps.MetaPointEnvCorner(reward_type="dense"), normalize_obs=True, normalize_reward=True)
    evaluator = MetaEvaluator.from_trainer(build_trainer(env=env))
    averages = copy.deepcopy(env.averages)
    recording = evaluator.record(tasks=2, num_steps=2)
    for step in range(3):  # a replay fails if the averages have changed before a step
        assert len(list(recording.replay(step, task=1, path=1))) > 1
    np.testing.assert_equal(evaluator.env.averages, averages)


class Constant:
    """A user-defined policy."""

    obs_dim = action_dim = 2

    def __init__(self, action):
        self.action = action

    def get_actions(self, observations):
        return np.tile(self.action, (len(observations), 1)), {}


class ReversesDirection(MetaRLAlgorithm):
    """Explores to the right, then moves to the left."""

    def get_exploration_policy(self):
        return Constant(np.array([0.1, 0.0]))

    def adapt_policy(self, exploration_policy, exploration_trajectories):
        assert len(exploration_trajectories) == P
        return Constant(-exploration_trajectories.actions[0])

    def train(self, runner):
        raise NotImplementedError


def test_user_defined_algorithm(trainer):
    """The returns show that the algorithm reverses its direction after exploring; it explores with its own policy."""
    evaluator = MetaEvaluator(ReversesDirection(), trainer.env, rollouts_per_meta_task=P, max_path_length=T)
    evaluation = evaluator.evaluate([[-2.0, 2.0]])
    assert evaluation.returns.shape == (1, 1, 2)  # one step by default
    assert evaluation.returns[0, 0, 1] > evaluation.returns[0, 0, 0] + 0.5
    assert evaluation.num_timesteps == 2 * P * T and evaluation.timesteps.tolist() == [[[0, P * T]]]
    assert evaluator.policy.action.tolist() == [0.1, 0.0]
    with pytest.raises(ValueError, match=r"step_sizes: expected None for ReversesDirection, got \[0.1\]"):
        evaluator.evaluate(step_sizes=[0.1])


def test_figure_over_environment_steps(evaluation):
    reference = Evaluation("search", np.array([[[1.0, 2.0], [2.0, 3.0]]]), ([1, 2],), True, (7,), None, 20, 100, 1,
                           np.array([[[0, 100], [0, 140]]]))
    axes = Figure().subplots()
    assert evaluation.plot_timesteps(None, reference, ax=axes) is axes.figure
    assert [line.get_xdata().tolist() for line in axes.lines if line.get_linestyle() != "None"] == [
        [0.0, 250.0], [0.0, 120.0]]
    assert axes.get_xlabel().startswith("environment steps") and "95% interval" in axes.get_title()


@pytest.mark.parametrize("algo", ["vpg_maml", "rl2"])
def test_evaluations_close_their_copies_of_the_environment(algo, tmp_path):
    opened, closed = [], []

    class Simulator(mps.MetaPointEnvNavigation):
        make_batched = None

        def __deepcopy__(self, memo):
            opened.append(1)
            return Simulator()

        def close(self):
            closed.append(1)

    run = mps.train(Simulator(), algo, 1, meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=3,
                    progress_bar=False, dump_path=tmp_path / "run")
    opened.clear(), closed.clear()
    run.evaluate(tasks=2)
    assert 0 < len(opened) == len(closed)
