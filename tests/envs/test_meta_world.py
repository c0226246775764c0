"""Tests Meta-World's benchmarks as meta-environments."""
import copy
import gc
import pickle
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import pro_mp
from meta_policy_search import MetaWorldML10
from meta_policy_search.envs import MetaWorldML1, MetaWorldML25, MetaWorldML45, make_env, meta_world, normalize
from meta_policy_search.envs.interface import PhysicsError
from meta_policy_search.envs.meta_world import MetaWorldTask

BENCHMARKS = [MetaWorldML1, MetaWorldML10, MetaWorldML25, MetaWorldML45]


@pytest.fixture(scope="module")
def package():
    """Imports Meta-World, or skips the test without it."""
    return pytest.importorskip("metaworld")


pytestmark = pytest.mark.usefixtures("package")


def walk(env, steps, seed=0):
    """Returns observations, rewards and infos of random actions."""
    rng = np.random.default_rng(seed)
    return [env.step(rng.normal(size=4)) for _ in range(steps)]


def run_path(env, seed=0):
    return [env.reset()[0], *walk(env, 20, seed)]


def test_ml1_trains_and_tests_on_different_goals_of_one_task_type():
    train, test = (MetaWorldML1("push-v3", split) for split in ("train", "test"))
    assert train.env_names == test.env_names == ["push-v3"]
    assert len(train.tasks) == len(test.tasks) == 50 == len(set(train.tasks))
    assert not set(train.tasks) & set(test.tasks)
    assert MetaWorldML1("push-v3").tasks == train.tasks != MetaWorldML1("push-v3", seed=1).tasks
    assert MetaWorldML1("push-v3", "test", seed=2**32 - 1).tasks == train.tasks  # NumPy's seeds end there
    assert train.get_task() == train.tasks[0]
    assert {task.env_name for task in train.tasks} == {"push-v3"}


@pytest.mark.parametrize("benchmark, count, both", [
    (MetaWorldML10, 10, set()), pytest.param(MetaWorldML25, 25, {"basketball-v3"}, marks=pytest.mark.thorough),
    pytest.param(MetaWorldML45, 45, set(), marks=pytest.mark.slow)])
def test_other_benchmarks_train_and_test_on_different_task_types(benchmark, count, both):
    train, test = (benchmark(split=split) for split in ("train", "test"))
    assert (len(train.env_names), len(test.env_names)) == (count, 5)
    assert set(train.env_names) & set(test.env_names) == both and not set(train.tasks) & set(test.tasks)
    assert [task.env_name for task in train.tasks] == [name for name in train.env_names for _ in range(50)]
    env = normalize(test)
    env.set_task(env.sample_tasks(1, np.random.default_rng(0))[0])
    assert env.reset()[0].shape == (39,) and env.get_task().env_name in test.env_names


def test_task_types_and_their_tasks_are_equally_likely():
    env, rng = MetaWorldML10(), np.random.default_rng(0)
    tasks = env.sample_tasks(5000, rng)
    counts = [sum(task.env_name == name for task in tasks) for name in env.env_names]
    assert min(counts) > 500 - 4 * 22 and max(counts) < 500 + 4 * 22  # standard deviation sqrt(5000 * 0.1 * 0.9) = 21
    assert set(tasks) == set(env.tasks)  # 5,000 draws omit one of 500 equally likely tasks with probability 0.02
    assert env.sample_tasks(5, np.random.default_rng(1)) == env.sample_tasks(5, np.random.default_rng(1))


def draw_as_the_package_does(package, kind, seed):
    """Returns the goals of Meta-World's tasks, drawn with 50 simulator resets."""
    simulator = meta_world.scene_class(kind)(("any", "task"))
    simulator._freeze_rand_vec, simulator._set_task_called = False, True
    before = np.random.get_state()
    np.random.seed(seed)
    places = []
    for _ in range(50):
        simulator.reset()
        places.append(tuple(simulator._last_rand_vec))
    np.random.set_state(before)
    return places


@pytest.mark.parametrize("kind", ["reach-v3", "pick-place-v3"])
@pytest.mark.thorough(but="reach-v3")
def test_tasks_equal_those_of_metaworld(package, kind):
    """For equal seeds, the tasks equal those of Meta-World, and the global generator is unchanged."""
    np.random.seed(5)
    meta_world.draw_tasks.cache_clear()
    drawn = [[task.rand_vec for task in MetaWorldML1(kind, split, seed=7).tasks] for split in ("train", "test")]
    after = np.random.random()
    np.random.seed(5)
    assert after == np.random.random()
    assert drawn == [draw_as_the_package_does(package, kind, seed) for seed in (7, 8)]
    try:
        benchmark = package.ML1(kind, seed=7)  # requires an old MuJoCo version
    except ValueError:
        return
    assert drawn == [[tuple(pickle.loads(task.data)["rand_vec"]) for task in tasks]
                     for tasks in (benchmark.train_tasks, benchmark.test_tasks)]


@pytest.mark.parametrize("task, complaint", [
    (MetaWorldTask("reach", (0.0,) * 6), "task: expected a kind of task .*, got 'reach'; did you mean 'reach-v3'"),
    (MetaWorldTask("reach-v3", (0.0,) * 5), r"task: rand_vec: expected finite numbers of shape \(6,\), got"),
    ("reach-v3", r"task: expected a MetaWorldTask \(env_name, rand_vec\), got 'reach-v3'"),
])
def test_invalid_task_is_refused(task, complaint):
    env = MetaWorldML1()
    with pytest.raises(ValueError, match=complaint):
        env.set_task(task)
    assert env.get_task() == env.tasks[0]


def test_tasks_of_the_package_and_from_json_are_accepted():
    env = MetaWorldML1()
    for task in (env.tasks[3], MetaWorldML1("push-v3").tasks[4]):
        for other in (meta_world.package_task(task), [task.env_name, list(task.rand_vec)]):
            env.set_task(other)
            assert env.get_task() == task


def test_goal_is_hidden_and_observation_holds_the_previous_step():
    env = MetaWorldML1()
    observation, info = env.reset()
    assert info == {} and env.observation_space.contains(observation)
    np.testing.assert_array_equal(observation[:18], observation[18:36])
    for following, *_ in walk(env, 5):
        np.testing.assert_array_equal(following[18:36], observation[:18])
        np.testing.assert_array_equal(following[36:], 0.0)
        observation = following


def test_path_ends_after_500_steps_and_not_on_success():
    """A controller that knows the goal succeeds with the highest rewards, and its path continues to the time limit."""
    env = MetaWorldML1()
    observation, _ = env.reset()
    goal = np.array(env.get_task().rand_vec[3:])
    answers = []
    for _ in range(500):
        observation, *rest = env.step(np.append(np.clip(10.0 * (goal - observation[:3]), -1, 1), 0.0))
        answers.append(rest)
    rewards, terminated, truncated, infos = zip(*answers)
    assert not any(terminated) and truncated.index(True) == 499
    successes = [info["success"] for info in infos]
    assert all(type(success) is bool for success in successes)
    assert not successes[0] and successes[-1] and 10.0 >= rewards[-1] > 9.0 > rewards[0] > 0.0
    assert all(type(value) is float for name, value in infos[0].items() if name != "success")


def test_new_task_takes_effect_with_the_next_path():
    env, other = MetaWorldML1(), MetaWorldML1()
    for one in (env, other):
        one.reset()
    env.set_task(env.tasks[7])
    assert walk(env, 3)[-1][1] == walk(other, 3)[-1][1]
    env.reset(), other.reset()
    assert walk(env, 3)[-1][1] != walk(other, 3)[-1][1]


def test_diverged_simulation_raises_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = MetaWorldML1()
    env.reset()
    env._simulator.data.qvel[0] = np.nan
    with pytest.raises(PhysicsError, match="the simulation of MetaWorldTask.*reach-v3.* diverged .*BADQVEL"):
        env.step(np.zeros(4))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["door-close-v3", "shelf-place-v3"])
def test_path_depends_only_on_its_task(kind):
    assert_depends_on_its_task_alone(kind)


@pytest.mark.slow
def test_path_of_any_task_type_depends_only_on_its_task(package):
    for kind in package.env_dict.ALL_V3_ENVIRONMENTS:
        assert_depends_on_its_task_alone(kind)


def assert_depends_on_its_task_alone(kind):
    """After other paths and tasks, or with a shared model, a path equals that of a new simulator."""
    env = MetaWorldML1(kind)
    first, second = env.tasks[:2]
    env.set_task(first)
    fresh = run_path(env)
    np.testing.assert_equal(run_path(env), fresh)

    other = MetaWorldML1(kind)
    other.set_task(second)
    run_path(other, seed=1)
    other.set_task(first)
    other.reset()
    assert other._simulator.model is env._simulator.model
    walk(other, 50, seed=2)
    np.testing.assert_equal(run_path(other), fresh)
    np.testing.assert_equal(run_path(copy.deepcopy(env)), fresh)


def test_models_are_released_with_their_task():
    """Copies with the same task share a model, which is released when they get another task."""
    gc.collect()
    models = meta_world._models
    before = len(models)
    envs = [MetaWorldML1("door-open-v3", seed=11) for _ in range(3)]
    for env in envs:
        env.reset()
    assert len({id(env._simulator.model) for env in envs}) == 1
    assert len({id(env._simulator.data) for env in envs}) == 3
    assert len(models) == before + 1
    for count, env in zip((2, 2, 1), envs):
        env.set_task(env.tasks[5])
        env.reset()
        assert len(models) == before + count


@pytest.mark.thorough
@pytest.mark.slow
def test_rendering_shows_the_scene_and_changes_no_state():
    """Images of a door task show the green goal and the red arm at its position, the right way up."""
    env, reference = (normalize(MetaWorldML1("door-open-v3", render_mode=mode)) for mode in ("rgb_array", None))
    pictures = []
    for one in (env, reference):
        one.set_task(one.tasks[0])
        one.reset()
    for _ in range(2):
        try:
            pictures.append(env.render())
        except RuntimeError as error:  # no OpenGL
            pytest.skip(str(error))
        np.testing.assert_equal(walk(env, 10), walk(reference, 10))
    for picture in pictures:
        assert picture.shape == (480, 480, 3) and picture.dtype == np.uint8
        red, green, _ = picture.astype(int).transpose(2, 0, 1)
        assert (green > red + 100).sum() > 20
        assert np.ptp(picture[:100]) < 60 < np.ptp(picture[-100:])  # plain background above, base of the arm below
    assert (pictures[0] != pictures[1]).mean() > 0.001
    env.set_task(env.tasks[1])
    env.reset()
    assert (env.render() != pictures[0]).any()
    env.close()
    assert (env.render() != pictures[0]).any()
    env.close()


def test_rendering_error_names_the_missing_extra():
    env = MetaWorldML1()
    env.reset()
    with pytest.raises(RuntimeError, match=r'render: .*MetaWorldML1\(render_mode="rgb_array"\)'):
        env.render()
    with pytest.raises(RuntimeError, match=r"render: call reset\(\) first"):
        MetaWorldML1(render_mode="rgb_array").render()


@pytest.mark.thorough
def test_runs_trained_without_rendering_can_be_rendered(tmp_path):
    sizes = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 3, "hidden_sizes": (4,)}
    mps.train("MetaWorldML1", n_itr=1, dump_path=tmp_path / "run", log_formats=["csv"], progress_bar=False, **sizes)
    env = mps.load_evaluator(tmp_path / "run", render_mode="rgb_array").env
    assert env.render_mode == env.unwrapped.render_mode == "rgb_array" and env.metadata["render_fps"] == 80
    assert mps.load_evaluator(tmp_path / "run").env.render_mode is None


@pytest.mark.slow
def test_documented_evaluations_run_on_test_tasks(tmp_path, capsys):
    folder = str(tmp_path / "run")
    assert pro_mp.main(["--env", "MetaWorldML1", "--normalization_scale", "1", "--smoke", "--n_itr", "1",
                        "--dump_path", folder]) == 0
    page = (Path(__file__).resolve().parents[2] / "docs" / "meta_world.rst").read_text()
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page, flags=re.MULTILINE)
    (make, block, of_the_package), names = map(textwrap.dedent, blocks), {}
    exec(make, {})
    for long, short in (("data/reach", folder), ("tasks[:20]", "tasks[:2]")):
        assert block.count(long) == 1
        block = block.replace(long, short)
    exec(block, names)
    capsys.readouterr()
    for long, short in (("data/reach", folder), ("num_goals=10", "num_goals=1, max_path_length=2"), ("=10", "=1")):
        assert long in of_the_package
        of_the_package = of_the_package.replace(long, short)
    exec(of_the_package, {})
    assert "success_rate=0.0" in (said := capsys.readouterr().out) and "{'reach-v3': " in said
    evaluation = names["evaluation"]
    assert evaluation.returns.shape == (1, 2, 2) and list(evaluation.tasks[0]) == MetaWorldML1(split="test").tasks[:2]


@pytest.mark.parametrize("arguments, complaint", [
    ({"env_name": "reach"}, "env_name: expected a kind of task of Meta-World .*, got 'reach'; did you mean 'reach-v3'"),
    ({"env_name": None}, r"env_name: expected a kind of .* \(assembly-v3, .*window-close-v3\), got None"),
    ({"split": "validation"}, "split: expected one of 'train', 'test', got 'validation'"),
    ({"reward_function_version": "v3"}, "reward_function_version: expected one of 'v1', 'v2', got 'v3'"),
])
def test_arguments_are_checked(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        MetaWorldML1(**arguments)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_missing_package_error_names_the_command_to_install(benchmark, monkeypatch):
    monkeypatch.setitem(sys.modules, "metaworld", None)
    with pytest.raises(ImportError, match='run `pip install "metaworld>=3.0,<3.1"`'):
        make_env(benchmark.__name__)
