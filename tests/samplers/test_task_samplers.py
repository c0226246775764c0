"""Task samplers choose the tasks of an iteration, and their state is part of a run."""
from functools import partial

import gymnasium
import numpy as np
import pytest
from scipy import stats

import meta_policy_search as mps
from meta_policy_search import MetaGaussianMLPPolicy, MetaSampler, RoML, TaskSampler, WorstTaskSampler
from meta_policy_search.envs import available_envs, get_env_class, make_env, normalize, vary
from meta_policy_search.envs.compat import adapt_env
from tests.helpers.runs import read_rows

TINY = {"meta_batch_size": 4, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}
DENSE_CORNER = partial(make_env, "MetaPointEnvCorner", reward_type="dense")


class Cube:
    """Tasks are points of the unit cube."""

    def __init__(self, size):
        self.task_dimensions = size

    def tasks_at(self, points):
        return list(points)

    def sample_tasks(self, n, rng):
        return list(rng.random((n, self.task_dimensions)))


def iterate(sampler, returns_of, size=1, num_iterations=300, num_tasks=20):
    """Returns the tasks of all iterations after the first hundred, float64 `[n, size]`."""
    sampler.bind(Cube(size))
    rng, found = np.random.default_rng(0), []
    for _ in range(num_iterations):
        tasks = sampler.sample(num_tasks, rng)
        sampler.update(tasks, np.array([returns_of(task) for task in tasks]))
        found.append(tasks)
    return np.array(found[100:]).reshape(-1, size)


# Distributions -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("alpha", [0.05, 0.25])
@pytest.mark.parametrize("returns_of, size", [(lambda task: -task[0], 1), (lambda task: task.sum(), 3)],
                         ids=["large values", "small sums"])
def test_means_of_roml_approach_the_mean_of_the_worst_tasks(returns_of, size, alpha):
    uniform = np.random.default_rng(1).random((20_000, size))
    returns = np.array([returns_of(task) for task in uniform])
    worst = uniform[returns <= np.quantile(returns, alpha)].mean(axis=0)
    tasks = iterate(RoML(alpha=alpha), returns_of, size)
    np.testing.assert_allclose(tasks.reshape(-1, 20, size)[:, 4:].mean(axis=(0, 1)), worst, atol=0.03)
    np.testing.assert_allclose(tasks.reshape(-1, 20, size)[:, :4].mean(axis=(0, 1)), 0.5, atol=0.03)


def test_an_update_of_roml_equals_the_weighted_mean_of_the_worst_tasks():
    """Two updates by hand: ten tasks with equal weights, then ten tasks with the ratio of the densities."""
    sampler = RoML(alpha=0.3, batch_size=10, original_fraction=0.2, min_fraction=0.1, soft_update=0.5)
    sampler.bind(Cube(1))
    rng = np.random.default_rng(3)
    tasks = np.array(sampler.sample(10, rng))[:, 0]
    sampler.update(list(tasks[:, None]), tasks)
    mean = 0.5 * 0.5 + 0.5 * np.sort(tasks)[:3].mean()
    np.testing.assert_allclose(sampler.get_state()[0], [mean])
    tasks = np.array(sampler.sample(10, rng))[:, 0]
    weights = 1.0 / (0.2 + 0.8 * stats.beta.pdf(1.0 - tasks, (1.0 - mean) / mean, 1.0))
    sampler.update(list(tasks[:, None]), tasks)
    order = np.argsort(tasks)
    count = max(1, np.searchsorted(np.cumsum(weights[order]), 0.3 * weights.sum()) + 1)
    worst = order[:count]
    expected = 0.5 * mean + 0.5 * (weights[worst] @ tasks[worst]) / weights[worst].sum()
    np.testing.assert_allclose(sampler.get_state()[0], [expected])


def test_roml_draws_few_tasks_that_are_less_likely_than_the_worst():
    """The worst 5% are at an edge: of the tasks that are drawn from there, most are about equally likely."""
    tasks = iterate(RoML(original_fraction=0.0), lambda task: -task[0], num_iterations=600)
    assert 0.75 < np.mean(tasks > 0.95) < 0.95 and np.mean(tasks > 1.0 - 1e-4) < 0.02


def test_roml_samples_coordinates_with_its_means():
    sampler, means = RoML(original_fraction=0.0), np.array([0.2, 0.5, 0.9])
    sampler.bind(Cube(3))
    sampler.set_state((means, np.empty((0, 0)), []))
    points = np.array(sampler.sample(5_000, np.random.default_rng(0)))
    distributions = [stats.beta(1.0, 4.0), stats.uniform(), stats.beta(9.0, 1.0)]
    for column, distribution in zip(points.T, distributions, strict=True):
        assert stats.kstest(column, distribution.cdf).pvalue > 1e-3
    densities = np.prod([one.pdf(column) for column, one in zip(points.T, distributions, strict=True)], axis=0)
    np.testing.assert_allclose(sampler.get_state()[1][:, 3], 1.0 / densities, rtol=1e-6)


def test_worst_tasks_are_repeated():
    """Half of the tasks are from the quarter with the lowest returns; all repetitions have occurred before."""
    tasks = iterate(WorstTaskSampler(), lambda task: -task[0])[:, 0].reshape(-1, 20)
    assert 0.8 < tasks[:, :10].mean() < 0.95 and np.mean(tasks[:, :10] > 0.6) > 0.95
    np.testing.assert_allclose(tasks[:, 10:].mean(), 0.5, atol=0.02)
    assert set(tasks[50, :10]) <= set(tasks[:50, 10:].ravel())


def test_repeated_tasks_are_the_hardest_while_the_policy_improves():
    """Returns increase by 1 per iteration, so the lowest returns are those of the oldest tasks."""
    sampler, rng, repeated = WorstTaskSampler(), np.random.default_rng(0), []
    sampler.bind(Cube(1))
    for itr in range(200):
        tasks = sampler.sample(20, rng)
        repeated.append(tasks[:10])
        sampler.update(tasks, itr - np.array(tasks)[:, 0])
    assert np.mean(repeated[20:]) > 0.8


def test_an_iteration_has_at_least_one_new_task():
    tasks = iterate(WorstTaskSampler(repeated=0.9), lambda task: -task[0], num_tasks=1)
    assert len(set(tasks[:, 0])) == len(tasks)


@pytest.mark.parametrize("sampler, expected", [
    (WorstTaskSampler(fraction=1.0), (0.48, 0.55)), (WorstTaskSampler(repeated=0.0), (0.48, 0.52)),
    (WorstTaskSampler(memory=20), (0.65, 0.72)), (WorstTaskSampler(repeated=0.9), (0.75, 0.9)),
    (RoML(original_fraction=1.0), (0.48, 0.52)), (RoML(original_fraction=0.0), (0.93, 1.0)),
    (RoML(min_fraction=0.9), (0.5, 0.8)), (RoML(batch_size=10_000), (0.48, 0.52)),
    (RoML(soft_update=0.999), (0.5, 0.6)),
], ids=repr)
def test_every_argument_has_an_effect(sampler, expected):
    mean = iterate(sampler, lambda task: -task[0]).mean()
    assert expected[0] < mean < expected[1]


@pytest.mark.parametrize("name", [
    name for name in available_envs() if not name.startswith("MetaWorld")
    and getattr(get_env_class(name)(), "task_dimensions", 0)])
def test_uniform_points_give_the_task_distribution(name):
    env = make_env(name)
    points = np.random.default_rng(0).random((5_000, env.task_dimensions))
    at_points, sampled = (np.array([np.ravel(task) for task in tasks]) for tasks in (
        env.tasks_at(points), env.sample_tasks(5_000, np.random.default_rng(1))))
    for one, other in zip(at_points.T, sampled.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-4
    for task in env.tasks_at(points[:3]):
        env.set_task(task)
        np.testing.assert_allclose(env.get_task(), task)


def test_points_of_a_varied_environment():
    env = vary("Pendulum-v1", g=(5.0, 15.0), l=[0.5, 1.0])
    assert env.task_dimensions == 2
    assert env.tasks_at(np.array([[0.0, 0.0], [0.5, 0.6]])) == [{"g": 5.0, "l": 0.5}, {"g": 10.0, "l": 1.0}]
    assert vary("Pendulum-v1", g=lambda rng: rng.uniform(5.0, 15.0)).task_dimensions == 0


# Training ----------------------------------------------------------------------------------------------------------

def sampler_of(env, task_sampler):
    policy = MetaGaussianMLPPolicy(4, env.observation_space.shape[0], env.action_space.shape[0], hidden_sizes=(4,))
    return MetaSampler(env, policy, 2, 4, 5, task_sampler=task_sampler)


@pytest.mark.parametrize("task_sampler", ["worst", {"name": "roml", "batch_size": 10}], ids=["worst", "roml"])
@pytest.mark.thorough(but="roml")
def test_run_depends_on_the_task_sampler_and_a_resumed_run_is_equal(task_sampler, tmp_path):
    def train(name, n_itr, **settings):
        return mps.train("MetaPointEnvNavigation", "vpg_maml", n_itr, dump_path=tmp_path / name, progress_bar=False,
                         **{**TINY, **settings})

    whole = train("whole", 4, task_sampler=task_sampler)
    train("part", 2, task_sampler=task_sampler)
    resumed = mps.load_run(tmp_path / "part").resume(n_itr=4)
    uniform = train("uniform", 4)
    for column in ("Step_1-AverageReturn", "AdaptationGain"):
        np.testing.assert_array_equal(resumed.progress[column], whole.progress[column])
        assert whole.progress[column][0] == uniform.progress[column][0] or task_sampler != "worst"
        assert whole.progress[column][3] != uniform.progress[column][3]
    np.testing.assert_array_equal(resumed.policy.get_flat_params(), whole.policy.get_flat_params())
    assert ("TaskMean-1" in whole.progress) == (task_sampler != "worst") and "TaskMean-0" not in uniform.progress


def test_own_task_sampler_chooses_the_tasks_and_gets_the_returns():
    """The returns are those after adaptation."""
    got = []

    class Fixed(TaskSampler):
        def sample(self, n, rng):
            return [(0.1 * i, 0.0) for i in range(n)]

        def update(self, tasks, returns):
            got.append((tasks, returns))

    run = mps.train("MetaPointEnvNavigation", "vpg_maml", 2, task_sampler=Fixed(), progress_bar=False, **TINY)
    tasks, returns = got[-1]
    np.testing.assert_allclose(tasks, [(0.1 * i, 0.0) for i in range(4)])
    np.testing.assert_allclose(np.mean(returns), run.progress["Step_1-AverageReturn"][-1])


def test_training_does_not_change_the_task_sampler_of_the_user():
    sampler = WorstTaskSampler()
    mps.train("MetaPointEnvNavigation", "vpg_maml", 2, task_sampler=sampler, progress_bar=False, **TINY)
    assert sampler.get_state() == ([], 0)


def test_task_samplers_forget_what_does_not_fit_another_environment():
    for sampler in (WorstTaskSampler(), RoML(batch_size=10)):
        iterate(sampler, lambda task: -task[0], num_iterations=1)
        sampler.bind(Cube(2))
        for _ in range(2):
            tasks = np.array(sampler.sample(20, np.random.default_rng(1)))
            assert tasks.shape == (20, 2)
            sampler.update(list(tasks), tasks.sum(axis=1))
    means, *_ = sampler.get_state()
    sampler.bind(Cube(2))
    assert sampler.get_state()[0] is means and (means != 0.5).all()


@pytest.mark.thorough(but="uniform-make0-2")
@pytest.mark.parametrize("task_sampler, make, n_itr", [
    ("uniform", DENSE_CORNER, 2), ({"name": "roml", "batch_size": 4}, lambda: make_env("MetaPointEnvNavigation"), 3)])
def test_a_callback_can_assign_an_environment_with_other_tasks(task_sampler, make, n_itr, tmp_path):
    """Given a curriculum whose later goals are not tasks of the first environment, then resumed runs are equal."""
    def move_goals(trainer, row):
        if trainer.itr == 1:
            env = make()
            env.goal_range, env.first_task = 3.0, (3.0, 3.0)
            trainer.env = normalize(env)

    def train(name, n_itr):
        return mps.train(make(), "vpg_maml", n_itr, callbacks=[move_goals], dump_path=tmp_path / name,
                         progress_bar=False, task_sampler=task_sampler, **TINY)

    whole, part = train("whole", 4), train("part", n_itr)
    resumed = mps.load_run(part.folder).resume(4, callbacks=[move_goals])
    assert read_rows(resumed.folder) == read_rows(whole.folder)
    np.testing.assert_array_equal(resumed.policy.get_flat_params(), whole.policy.get_flat_params())
    np.testing.assert_array_equal(resumed.trainer.sampler.tasks, whole.trainer.sampler.tasks)
    assert np.abs(whole.trainer.sampler.tasks).max() > 2.0


def test_tasks_by_default_are_those_of_the_environment():
    env = normalize(make_env("MetaPointEnvNavigation"))
    sampler = sampler_of(env, "uniform")
    sampler.update_tasks()
    expected = env.sample_tasks(4, mps.utils.seeding.rng_for(mps.utils.seeding.Stream.TASKS, 0))
    np.testing.assert_array_equal(sampler.tasks, expected)
    assert type(sampler.task_sampler) is TaskSampler


@pytest.mark.parametrize("value, error, message", [
    ("rom", ValueError, "task_sampler: expected one of 'uniform', 'worst', 'roml', got 'rom'; did you mean 'roml'"),
    ({"name": "roml", "alpa": 0.1}, ValueError, "task_sampler: expected one of .*, got 'alpa'; did you mean 'alpha'"),
    ({"name": "roml", "alpha": 0.0}, ValueError, r"alpha: expected a number in \(0, 1\], got 0.0"),
    (3, TypeError, "task_sampler: expected one of uniform, worst, roml, or a TaskSampler, got 3"),
    (RoML, TypeError, "task_sampler: expected .* or a TaskSampler, got the class RoML"),
    (type("Own", (TaskSampler,), {"sample": lambda self, n: []})(), TypeError,
     r"Own.sample: expected the arguments \(n, rng\), got \(n\)"),
])
def test_invalid_task_samplers_are_reported(value, error, message):
    with pytest.raises(error, match=message):
        sampler_of(make_env("MetaPointEnvNavigation"), value)


def test_roml_refuses_an_environment_that_overrides_only_the_sampling_of_tasks():
    class Corners(mps.MetaPointEnvNavigation):
        def sample_tasks(self, n_tasks, rng=None):
            return [np.full(2, 4.0)] * n_tasks

    with pytest.raises(ValueError, match="RoML uses tasks_at, but Corners overrides only sample_tasks; override"):
        sampler_of(normalize(Corners()), "roml")


class Goal(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
    task_dimensions = 1

    def sample_tasks(self, n_tasks, rng):
        return self.tasks_at(rng.random((n_tasks, 1)))

    def tasks_at(self, points):
        return points[:, 0].tolist()

    def set_task(self, task):
        pass


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gymnasium.wrappers.TimeLimit(env, 5)])
def test_roml_finds_the_tasks_of_a_wrapped_environment(wrap):
    sampler = RoML(original_fraction=1.0)
    sampler.bind(adapt_env(normalize(wrap(Goal()))))
    assert sampler.sample(3, np.random.default_rng(0)) == np.random.default_rng(0).random(3).tolist()


def test_refused_environment_is_not_assigned():
    env = normalize(make_env("MetaPointEnvNavigation"))
    sampler = sampler_of(env, "roml")
    message = ("task_sampler: RoML requires an environment with task_dimensions and tasks_at, got MetaPointEnvCorner; "
               "WorstTaskSampler works for any tasks")
    with pytest.raises(ValueError, match=message):
        sampler_of(make_env("MetaPointEnvCorner"), "roml")
    with pytest.raises(ValueError, match=message):
        sampler.env = normalize(make_env("MetaPointEnvCorner"))
    assert sampler.env is env and type(sampler.sampled_env.unwrapped) is type(env.unwrapped)


def test_a_state_can_be_restored_twice():
    sampler, rng = RoML(batch_size=8), np.random.default_rng(0)
    sampler.bind(Cube(1))
    sampler.update(sampler.sample(4, rng), np.zeros(4))
    state = sampler.get_state()
    for _ in range(2):
        sampler.set_state(state)
        assert len(sampler.get_state()[2]) == 4
        sampler.update(sampler.sample(3, rng), np.zeros(3))
