"""Tests `vary`: the tasks of a Gymnasium environment set some of its parameters."""
import copy
import inspect
import json
import re
import sys
from pathlib import Path

import cloudpickle
import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium import spaces

import meta_policy_search as mps
from meta_policy_search.cli.main import main
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.envs.mujoco_envs.engines.camera import renderer_of
from meta_policy_search.envs.varied_env import derived_assignments, parameters_from_json, recompute, varied_parameters
from meta_policy_search.run import build_trainer
from tests.helpers.commands import mistake, train_members_here

SMALL = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 8, "hidden_sizes": (4,),
         "log_formats": ["csv"], "progress_bar": False}
CHEETAH = {"body_mass": (0.75, 1.25), "dof_damping": (0.5, 2.0), "geom_friction": (0.5, 2.0), "gravity": (0.5, 1.5)}


class Rail(gymnasium.Env):
    """A point on a rail: `goal` is an argument of the constructor, `gain` an attribute that determines `speed`."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,))
    action_space = spaces.Box(-1.0, 1.0, (1,))
    metadata = {"render_modes": ["rgb_array"]}
    builds = 0

    def __init__(self, goal=0.0, start=0.0, size=1):
        Rail.builds += 1
        self.goal, self.gain, self.start, self.unused = goal, 1.0, start, None
        self.squared_goal = goal ** 2
        self.speed = 3.0 * self.gain
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,))
        self.render_mode, self.noise, self.color = None, 1.0, "red"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.noise = self.start, self.np_random.normal()
        return self.observe(), {}

    def step(self, action):
        self.x += self.speed * float(action[0])
        distance = abs(self.x - self.goal)
        return self.observe(), -distance + 0.1 * self.noise, distance > 50.0, False, {"is_success": distance < 0.5}

    def observe(self):
        return np.full(self.observation_space.shape, self.x, np.float32)

    def render(self):
        return None if self.render_mode is None else np.zeros((2, 2, 3), np.uint8)


def path(env, actions=None):
    """Returns observations, ends and rewards of up to 30 random actions."""
    actions = env.action_space if actions is None else actions
    env.reset(seed=0)
    actions.seed(0)
    answers = [env.step(actions.sample())]
    while len(answers) < 30 and not answers[-1][2]:
        answers.append(env.step(actions.sample()))
    return np.array([[*observation, terminated, reward] for observation, reward, terminated, _, _ in answers])


# Tasks


def test_tasks_are_drawn_from_ranges_lists_and_functions():
    """A tuple is a range, a list contains the values, and a function draws from the generator."""
    env = mps.vary(Rail, goal=(1.0, 2.0), gain=[0.5, 1.0, 2.0], start=lambda rng: rng.normal(5.0))
    tasks = env.sample_tasks(200, np.random.default_rng(1))
    assert tasks == env.sample_tasks(200, np.random.default_rng(1)) and list(tasks[0]) == ["goal", "gain", "start"]
    goals, gains, starts = np.array([list(task.values()) for task in tasks]).T
    assert 1.0 <= goals.min() < 1.05 and 1.95 < goals.max() < 2.0 and set(gains) == {0.5, 1.0, 2.0}
    assert abs(starts.mean() - 5.0) < 4.0 / np.sqrt(200)
    assert {task["gain"] for task in mps.vary(Rail, gain=range(1, 3)).sample_tasks(20)} == {1, 2}


def test_task_sets_arguments_and_attributes():
    """Given a pendulum with an argument `g` and an attribute `l`, then its paths are those of Gymnasium with both."""
    env = mps.vary("Pendulum-v1", g=(5.0, 15.0), l=[0.5, 1.0, 2.0])
    assert env.get_task() is None
    for task in ({"g": 9.0, "l": 0.5}, {"l": 2.0, "g": 20.0}):
        env.set_task(task)
        expected = gymnasium.make("Pendulum-v1", g=task["g"])
        expected.unwrapped.l = task["l"]
        np.testing.assert_array_equal(path(env), path(expected))
        assert env.get_task() == task


def test_environment_is_only_rebuilt_for_other_arguments():
    env = mps.vary(Rail, goal=(1.0, 2.0), gain=(1.0, 2.0))
    before = Rail.builds
    for goal, gain, builds in ((1.0, 1.0, 1), (1.0, 2.0, 1), (1.5, 2.0, 2), (1.5, 1.0, 2)):
        env.set_task({"goal": goal, "gain": gain})
        assert Rail.builds - before == builds
        assert (env.wrapped_env.goal, env.wrapped_env.squared_goal, env.wrapped_env.gain) == (goal, goal ** 2, gain)


def test_functions_that_create_environments_can_have_arguments():
    """Arguments of the function, and those that it passes on as `**kwargs`, are parameters."""
    def make(bonus=0.0, **kwargs):
        return gymnasium.wrappers.TransformReward(Rail(**kwargs), lambda reward: reward + bonus)

    env = mps.vary(make, bonus=(1.0, 2.0), goal=(1.0, 2.0))
    env.set_task({"bonus": 1.5, "goal": 0.0})
    np.testing.assert_allclose(path(env)[:, -1], path(Rail())[:, -1] + 1.5)


@pytest.mark.parametrize("tasks, message", [
    ([None, 5.0, {"g": 9.0}, {"g": 9.0, "l": 1.0, "m": 1.0}], "task: expected a dict with the keys g, l, got"),
    ([{"g": np.nan, "l": 1.0}, {"g": 9.0, "l": np.array([1.0, np.nan])}, {"g": (1.0, [np.nan]), "l": 1.0}],
     "[gl]: expected a value without NaN, got ")])
def test_invalid_tasks_are_refused(tasks, message):
    env = mps.vary("Pendulum-v1", g=(5.0, 15.0), l=(0.5, 2.0))
    for task in tasks:
        with pytest.raises(ValueError, match=message):
            env.set_task(task)
        assert env.get_task() is None and env.wrapped_env.unwrapped.g == 10.0


def test_dict_tasks_can_be_observed_in_the_order_of_their_keys():
    env = mps.normalize(mps.vary(Rail, goal=(1.0, 2.0), gain=(3.0, 4.0)), observe_task=True)
    env.set_task({"goal": 1.5, "gain": 3.5})
    assert env.observation_space.shape == (3,)
    np.testing.assert_array_equal(env.reset(seed=0)[0], [0.0, 3.5, 1.5])
    with pytest.raises(TypeError, match="observe_task: expected an environment with numeric tasks"):
        mps.normalize(mps.vary("CartPole-v1", kinematics_integrator=["euler", "semi-implicit"]), observe_task=True)


# MuJoCo


@pytest.fixture(scope="module")
def cheetah():
    return mps.vary("HalfCheetah-v5", **CHEETAH)


def test_model_quantities_are_multiplied(cheetah):
    """Each task multiplies the original quantities, whatever the task before was."""
    original, model = gymnasium.make("HalfCheetah-v5").unwrapped.model, cheetah.wrapped_env.unwrapped.model
    for factor in (2.0, 0.5):
        cheetah.set_task({name: factor for name in CHEETAH})
        for name in ("body_mass", "dof_damping", "geom_friction"):
            np.testing.assert_allclose(getattr(model, name), factor * getattr(original, name))
        np.testing.assert_allclose(model.opt.gravity, [0.0, 0.0, -9.81 * factor])
        np.testing.assert_allclose(model.body_subtreemass[0], factor * original.body_subtreemass[0])  # derived
    factors = np.arange(1.0, 9.0)
    cheetah.set_task({**{name: 1.0 for name in CHEETAH}, "body_mass": factors})
    np.testing.assert_allclose(model.body_mass, factors * original.body_mass)


def test_factor_of_one_does_not_change_the_paths(cheetah):
    cheetah.set_task({name: 0.5 for name in CHEETAH})
    changed = path(cheetah)
    cheetah.set_task({name: 1.0 for name in CHEETAH})
    np.testing.assert_array_equal(path(cheetah), path(gymnasium.make("HalfCheetah-v5")))
    assert not np.array_equal(path(cheetah), changed)


def test_copy_multiplies_the_original_quantities(cheetah):
    task = {**{name: 1.0 for name in CHEETAH}, "gravity": 0.5}
    cheetah.set_task(task)
    for clone in (copy.deepcopy(cheetah), cloudpickle.loads(cloudpickle.dumps(cheetah))):
        np.testing.assert_array_equal(path(clone), path(cheetah))
        clone.set_task({**task, "gravity": 2.0})
        np.testing.assert_allclose(clone.wrapped_env.unwrapped.model.opt.gravity[2], -2.0 * 9.81)


def test_arguments_and_options_of_a_mujoco_environment():
    env = mps.vary("Swimmer-v5", frame_skip=[4, 5], density=(0.5, 2.0))
    env.set_task({"frame_skip": 5, "density": 0.5})
    expected = gymnasium.make("Swimmer-v5", frame_skip=5)
    expected.unwrapped.model.opt.density *= 0.5
    np.testing.assert_array_equal(path(env), path(expected))
    assert isinstance(env.wrapped_env.unwrapped.model, mujoco.MjModel)


# Errors


@pytest.mark.parametrize("parameters, complaint", [
    ({}, "parameters: expected at least one parameter to vary, got none"),
    ({"goals": (0.0, 1.0)}, "goals: expected an argument of the constructor, an attribute or a MuJoCo quantity of "
                            "Rail; did you mean 'goal'?; parameters: goal"),
    ({"_seed": (0.0, 1.0)}, "_seed: expected an argument of the constructor"),
    ({"re": (0.0, 1.0)}, "re: expected an argument of the constructor, an attribute or a MuJoCo quantity of "
                              "Rail; parameters: goal"),  # suggests no method
    ({"goal": (2.0, 1.0)}, "goal: expected a tuple (low, high) of finite numbers with low < high and a finite diff"),
    ({"goal": (0.0, 0.5, 1.0)}, "goal: expected a tuple (low, high) of finite numbers"),
    ({"goal": (False, True)}, "goal: expected a list of values, such as [False, True], because a tuple is a range"),
    ({"goal": [1.0, np.nan]}, "goal: Rail fails with values among [1.0, nan]: ValueError: goal: expected a val"),
    ({"unused": (0.0, 1.0)}, "unused: expected values that change the paths, got the same paths for [0.0, 1.0]. If "
                             "Rail reads unused only when it is built"),
    ({"noise": (0.0, 1.0)}, "noise: expected values that change the paths"),  # `reset` overwrites it
    ({"goal": lambda rng: 3.0}, "goal: expected values that change the paths, got the same paths for [3.0, 3.0"),
    ({"goal": ["a", "b"]}, "goal: Rail fails with values among ['a', 'b']: TypeError: "),
    ({"size": [1, 2]}, "size: Rail fails with values among [1, 2]: ValueError: task: expected the spaces Box("),
])
def test_parameters_without_effect_and_invalid_distributions_are_refused(parameters, complaint):
    with pytest.raises(ValueError) as error:
        mps.vary(Rail, **parameters)
    assert str(error.value).startswith(complaint) and len(str(error.value)) < 400


@pytest.mark.parametrize("value", [3.0, "abc", {"values": [1, 2]}, [], None])
def test_distribution_of_another_type_is_refused(value):
    with pytest.raises(TypeError, match=r"goal: expected a tuple \(low, high\), a list of values or a function"):
        mps.vary(Rail, goal=value)


def test_function_without_an_argument_is_refused():
    with pytest.raises(TypeError, match=r"goal: expected a function \(rng\) -> value, got one with the arguments \(\)"):
        mps.vary(Rail, goal=lambda: 1.0)


def test_effect_in_later_steps_is_found():
    """The time limit ends episodes only after some steps; far states are reached because actions are repeated."""
    def make(end=10):
        return gymnasium.wrappers.TimeLimit(Rail(), end)

    assert mps.vary(make, end=[60, 80]).parameters == {"end": [60, 80]}


@pytest.mark.parametrize("wrapper, name", [(gymnasium.wrappers.TransformReward, "reward"),
                                           (lambda env, f: gymnasium.wrappers.TransformObservation(env, f, None),
                                            "observation")])
def test_nan_of_an_environment_is_reported(wrapper, name):
    def make(goal=0.0):
        return wrapper(Rail(goal), lambda value: value * np.nan)

    with pytest.raises(ValueError, match=rf"goal: Rail fails with values among \[1.0, 2.0\]: .*the {name} is NaN"):
        mps.vary(make, goal=(1.0, 2.0))


def test_masses_must_be_positive(cheetah):
    """Gravity may point upwards."""
    task = {name: 1.0 for name in CHEETAH}
    for factor in (0.0, -1.0, np.array([1.0] * 7 + [-1.0])):
        with pytest.raises(ValueError, match="body_mass: expected factors above 0, got "):
            cheetah.set_task({**task, "body_mass": factor})
    cheetah.set_task({**task, "gravity": -1.0})
    assert cheetah.wrapped_env.unwrapped.model.opt.gravity[2] == 9.81


@pytest.mark.parametrize("name, shape, factor", [
    ("gravity", "(3,)", [1.0, 2.0]), ("gravity", "(3,)", np.ones((2, 3))), ("gravity", "(3,)", "large"),
    ("geom_friction", "(9, 3)", np.ones(9)), ("body_mass", "(8,)", [1.0, [2.0]]), ("body_mass", "(8,)", np.inf),
])
def test_infinite_and_wrong_factors_are_refused_before_anything_changes(cheetah, name, shape, factor):
    cheetah.set_task({name: 1.0 for name in CHEETAH})
    before, model = cheetah.get_task(), cheetah.wrapped_env.unwrapped.model
    masses = model.body_mass.copy()
    message = f"{name}: expected a finite factor or an array of factors of shape {shape}, got {factor!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        cheetah.set_task({**dict.fromkeys(CHEETAH, 2.0), name: factor})
    np.testing.assert_array_equal(model.body_mass, masses)
    assert cheetah.get_task() == before


@pytest.mark.parametrize("name, hint", [
    ("body_mas", " .* did you mean 'body_mass'?"), ("body_parentid", " .* or a MuJoCo quantity")])
def test_mujoco_quantities_are_suggested_and_integer_arrays_are_none(name, hint):
    with pytest.raises(ValueError, match=f"{name}: expected an argument{hint}"):
        mps.vary("Swimmer-v5", **{name: (0.5, 1.5)})


def test_imports_of_mujoco_environments_are_requirements():
    """`pip install` of this package installs all packages that Gymnasium's MuJoCo environments import."""
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco"
    setup = (Path(mps.__file__).parents[1] / "setup.py").read_text().partition("EXTRAS")[0]
    text = "".join(file.read_text() for file in folder.glob("*.py"))
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, flags=re.MULTILINE))
    for name in imported - sys.stdlib_module_names - {"glfw", "packaging"}:  # of mujoco, of matplotlib
        assert re.search(rf'"{name}[>=]=', setup), name


def test_copies_write_no_warnings_about_models(cheetah, monkeypatch, tmp_path, capfd):
    """MuJoCo 4 warns about the models of Gymnasium. Later warnings, such as those about divergence, are kept."""
    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(None)
    try:
        env = copy.deepcopy(cheetah)
        assert mujoco.get_mju_user_warning() is None
    finally:
        mujoco.set_mju_user_warning(before)
    env.close()
    assert "".join(capfd.readouterr()) == "" and not list(tmp_path.iterdir())


# JSON


@pytest.mark.parametrize("given, parameters", [
    ({"g": [5, 15.0]}, {"g": (5, 15.0)}),
    ({"g": [5.0, 10.0, 15.0]}, {"g": [5.0, 10.0, 15.0]}),
    ({"g": {"values": [5.0, 15.0]}}, {"g": [5.0, 15.0]}),
    ({"kind": ["a", "b"], "flag": [False, True]}, {"kind": ["a", "b"], "flag": [False, True]}),
])
def test_two_numbers_are_a_range_in_json(given, parameters):
    """`params.json` contains the same JSON types, so that it reproduces the environment."""
    assert parameters_from_json(given) == parameters
    env = object.__new__(mps.VariedEnv)
    env.parameters = parameters
    assert json.loads(json.dumps(varied_parameters(env))) == given


@pytest.mark.parametrize("value, complaint", [
    (3, r"g: expected a tuple .*, got 3. In JSON, two numbers \[low, high\] are a range, and {\"values\": \[...\]} co"),
    ({"values": 3}, "g: expected a tuple .*, got 3. In JSON, two numbers"),
    ([2, 1], r"g: expected a tuple .*, got \(2, 1\). In JSON, two numbers"),
])
def test_messages_about_json_name_its_notation(value, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        parameters_from_json({"g": value})


def test_parameters_of_wrapped_environments_are_found():
    env = mps.normalize(mps.vary(Rail, goal=(1.0, 2.0), gain=range(1, 3), start=[0.0, 1.0, 2.0]))
    assert varied_parameters(env) == {"goal": [1.0, 2.0], "gain": {"values": [1, 2]}, "start": [0.0, 1.0, 2.0]}
    assert varied_parameters(mps.MetaPointEnvCorner()) is None


@pytest.mark.thorough(but="gymnasium:Pendulum-v1")
@pytest.mark.parametrize("env", ["Pendulum-v1", "gymnasium:Pendulum-v1", "tests.envs.test_varied_env:Rail"])
def test_train_varies_named_environments(env):
    vary = {"goal": [1.0, 2.0]} if "Rail" in env else {"g": [5.0, 15.0]}
    trainer = build_trainer(env, vary=vary, meta_batch_size=2, rollouts_per_meta_task=2)
    settings = trainer.spec.settings
    assert (settings["env"], settings["vary"]) == (env, vary) and "vary" in trainer.spec.given
    assert trainer.env.wrapped_env.parameters == {name: tuple(value) for name, value in vary.items()}


def test_vary_needs_the_name_of_an_environment_and_a_dict():
    with pytest.raises(TypeError, match="vary: expected none for an environment that exists, got {'x': 1}"):
        build_trainer(mps.MetaPointEnvCorner(), vary={"x": 1})
    with pytest.raises(TypeError, match=r"vary: expected a dict such as {\"g\": \[5.0, 15.0\]}, got \[1\]"):
        build_trainer("Pendulum-v1", vary=[1])
    with pytest.raises(ValueError, match=r"vary: expected at least one parameter, such as {\"g\": .*, got {}"):
        build_trainer("Pendulum-v1", vary={})
    with pytest.raises(TypeError, match=r"expected a meta-environment .*; meta_policy_search.vary adds tasks to a Gym.*"
                                        r"the argument vary of train \(--vary on the command line\)"):
        build_trainer("Pendulum-v1")


# Runs


@pytest.mark.thorough
def test_run_is_resumed_adapted_and_reproduced(tmp_path):
    """Given a run of three iterations, then two iterations resumed for a third, and a run with its `params.json`, are
    equal."""
    env = mps.vary("Pendulum-v1", g=(5.0, 15.0), l=[0.5, 1.0])
    whole = mps.train(env, "vpg_maml", dump_path=tmp_path / "whole", **{**SMALL, "n_itr": 3})
    mps.train(env, "vpg_maml", dump_path=tmp_path / "parts", **SMALL)
    parts = mps.load_run(tmp_path / "parts").resume(3)
    params = json.loads((tmp_path / "whole" / "params.json").read_text())["settings"]
    assert params["vary"] == {"g": [5.0, 15.0], "l": {"values": [0.5, 1.0]}}
    again = mps.train(params["env"], "vpg_maml", vary=params["vary"], dump_path=tmp_path / "again",
                      **{**SMALL, "n_itr": 3})
    for run in (parts, again):
        np.testing.assert_array_equal(run.progress["Step_1-AverageReturn"], whole.progress["Step_1-AverageReturn"])
    task = {"g": 9.0, "l": 2.0}
    adapted = [run.adapt(task, rollouts=2) for run in (whole, again)]
    assert adapted[0].act(np.ones(3), True) == adapted[1].act(np.ones(3), True)
    assert whole.evaluate([task]).tasks == ([task],)


# Five environments that become task distributions and train


class Picture(Rail):
    """Observes an image."""

    observation_space = spaces.Box(0, 255, (96, 96, 3), np.uint8)

    def __init__(self, goal=0.0):
        super().__init__(goal)
        self.observation_space = Picture.observation_space

    def observe(self):
        raise AssertionError("no observation is made")


def timed(**kwargs):
    """Observes a dict of the pendulum's observation and the time."""
    return gymnasium.wrappers.TimeAwareObservation(gymnasium.make("Pendulum-v1", **kwargs), flatten=False)


@pytest.mark.thorough
@pytest.mark.parametrize("env, parameters, size", [
    pytest.param("HalfCheetah-v5", CHEETAH, 17, id="MuJoCo"),
    pytest.param(timed, {"g": (5.0, 15.0), "m": [0.5, 1.0, 2.0]}, 4, id="Dict"),
    pytest.param("FrozenLake-v1", {"success_rate": (0.3, 0.9)}, 16, id="discrete"),
    pytest.param("tests.envs.test_varied_env:OtherPackage/Rail-v0", {"goal": (1.0, 2.0)}, 1, id="other package"),
])
def test_environment_becomes_a_task_distribution_and_trains(env, parameters, size, tmp_path):
    varied = mps.vary(env, **parameters)
    assert varied.observation_space.shape == (size,)
    run = mps.train(varied, "vpg_maml", dump_path=tmp_path / "run", **SMALL)
    assert np.isfinite(run.progress["Step_1-AverageReturn"]).all() and len(run.progress["Itr"]) == 2


gymnasium.register("OtherPackage/Rail-v0", entry_point=Rail, max_episode_steps=5)


def test_images_are_refused_with_a_hint():
    complaint = "env.observation_space: expected observations of at most 5,000 numbers, got 27,648 in Box"
    with pytest.raises(ValueError, match=rf"{complaint}\(0, 255, \(96, 96, 3\), uint8\). Reduce images with a wrapper"):
        mps.vary(Picture, goal=(1.0, 2.0))
    with pytest.raises(ValueError, match="env.observation_space: expected observations of at most 5,000 numbers"):
        mps.SingleTaskEnv(Picture())


# Images of environments


def test_copies_keep_the_render_mode_of_functions_without_this_argument():
    """Given a class without an argument `render_mode`, then copies and other tasks have the mode that was set."""
    env = adapt_env(mps.normalize(mps.vary(Rail, goal=(1.0, 2.0))))
    env.render_mode = "rgb_array"
    for each in (env, copy.deepcopy(env)):
        each.set_task({"goal": 1.5})
        assert each.render().shape == (2, 2, 3) and each.unwrapped.wrapped_env.goal == 1.5


@pytest.mark.thorough
def test_mujoco_environments_are_rendered_while_tensorflow_is_loaded():
    """TensorFlow and software OpenGL crash in the same process."""
    env = adapt_env(mps.normalize(mps.vary("HalfCheetah-v5", gravity=(0.5, 1.5))))
    env.render_mode = "rgb_array"
    env.reset(seed=0)
    render = renderer_of(env)
    try:
        first = render()
    except RuntimeError as error:  # no OpenGL
        pytest.skip(str(error))
    for _ in range(10):
        env.step(env.action_space.high)
    assert first.shape == (480, 480, 3) and first.dtype == np.uint8 and (first != render()).any()


@pytest.mark.thorough
def test_command_line_varies_parameters(tmp_path, capsys, monkeypatch):
    """Flags, sweeps and evaluations accept parameters and tasks as JSON."""
    train_members_here(monkeypatch)
    small = "--n_itr 1 --meta_batch_size 2 --rollouts_per_meta_task 2 --max_path_length 5 --plot_gap none".split()
    vary = {"g": [5.0, 15.0], "l": {"values": [0.5, 1.0]}}
    assert main(["train", "vpg_maml", "--env", "gymnasium:Pendulum-v1", "--vary", json.dumps(vary), *small,
                 "--dump_path", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "--tasks", '[{"g": 9.0, "l": 0.7}]', "--rollouts", "2"]) == 0
    assert json.loads((tmp_path / "run" / "evaluation" / "evaluation.json").read_text())[0]["tasks"] == [
        [{"g": 9.0, "l": 0.7}]]
    sizes = {"env": "gymnasium:Pendulum-v1", "n_itr": 1, "meta_batch_size": 2, "rollouts_per_meta_task": 2}
    grid = {"algorithm": "vpg_maml", "settings": {**sizes, "max_path_length": 5}, "grid": {"vary": [{"m": [1, 2]}]}}
    (tmp_path / "grid.json").write_text(json.dumps(grid))
    assert main(["sweep", str(tmp_path / "grid.json"), "--output", str(tmp_path / "sweep")]) == 0
    (folder,) = (tmp_path / "sweep").glob("vary=*")
    assert varied_parameters(mps.load_run(folder).env) == {"m": [1, 2]}
    assert "g: expected a tuple (low, high)" in mistake(
        main, capsys, "train", "promp", "--env", "Pendulum-v1", "--vary", '{"g": [2, 1]}', *small)


# Attributes that a constructor computes -----------------------------------------------------------------------------


def numeric_attributes(env):
    """Returns the public numeric attributes of an environment by name."""
    values = {name: inspect.getattr_static(env, name) for name in dir(env) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, (int, float)) and value not in (0, True)}


CLASSIC_CONTROL = ("CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0")
ATTRIBUTES = [(env, name) for env in CLASSIC_CONTROL for name in numeric_attributes(gymnasium.make(env).unwrapped)]


@pytest.mark.parametrize("env_id, name", ATTRIBUTES)
def test_physics_with_a_varied_attribute_are_those_of_a_constructor_that_had_the_value(env_id, name):
    """Given a subclass in which the attribute has the value during the constructor, then both paths are equal."""
    original = gymnasium.make(env_id).unwrapped
    value = type(getattr(original, name))(2 * getattr(original, name))

    class Reference(type(original)):
        def __setattr__(self, key, assigned):
            super().__setattr__(key, value if key == name else assigned)

    setattr(Reference, name, value)
    env = copy.deepcopy(original)
    derived = derived_assignments(env, [name])
    setattr(env, name, value)
    recompute(env, derived)
    actions = original.action_space
    np.testing.assert_array_equal(path(env, actions), path(Reference(), actions))


class Accumulated(Rail):
    def __init__(self):
        super().__init__()
        self.speed += self.gain


class WithArgument(Rail):
    def __init__(self, factor=2.0):
        super().__init__()
        self.speed = factor * self.gain


def test_attributes_that_the_constructor_computes_from_a_parameter_are_recomputed():
    env = mps.vary(Rail, gain=(1.0, 2.0))
    env.set_task({"gain": 1.5})
    assert (env.wrapped_env.gain, env.wrapped_env.speed) == (1.5, 4.5)


@pytest.mark.parametrize("env", [Accumulated, WithArgument])
def test_a_parameter_is_refused_if_a_derived_attribute_cannot_be_recomputed(env):
    with pytest.raises(ValueError, match=f"gain: the constructor of {env.__name__} computes speed from it in a way "):
        mps.vary(env, gain=(1.0, 2.0))


# Tasks that fail ---------------------------------------------------------------------------------------------------


class Limited(Rail):
    """Refuses values of `limited` above 5."""

    allowed = 1.0

    def __init__(self, size=1.0):
        super().__init__()
        self.size = size

    @property
    def limited(self):
        return self.allowed

    @limited.setter
    def limited(self, value):
        if value > 5.0:
            raise ValueError("limited: expected at most 5")
        self.allowed = value

    def step(self, action):
        self.x += self.size * self.gain * self.limited * float(action[0])
        return np.array([self.x]), self.x, False, False, {}


def test_a_task_that_fails_changes_nothing():
    env = mps.vary(Limited, size=(1.0, 2.0), gain=(1.0, 2.0), limited=(1.0, 2.0))
    task = {"size": 1.0, "gain": 1.5, "limited": 2.0}
    env.set_task(task)
    inner = env.wrapped_env
    with pytest.raises(ValueError, match="limited: expected at most 5"):
        env.set_task({"size": 2.0, "gain": 2.0, "limited": 9.0})
    assert env.wrapped_env is inner and env.get_task() == task
    assert {name: getattr(inner, name) for name in task} == task and inner.speed == 4.5
    env.set_task({**task, "size": 2.0})
    assert env.wrapped_env.size == 2.0 and env.wrapped_env.gain == 1.5


def test_an_environment_with_tasks_needs_no_method_close():
    class Plain:
        observation_space, action_space = Rail.observation_space, Rail.action_space

        def __init__(self, size=1.0):
            self.size = size

        def reset(self, seed=None, options=None):
            return np.zeros(1), {}

        def step(self, action):
            return self.size * np.asarray(action, float), 0.0, False, False, {}

    env = mps.vary(Plain, size=(1.0, 2.0))
    env.set_task({"size": 1.5})
    assert env.wrapped_env.size == 1.5


def test_distributions_are_copied_and_tasks_are_finite():
    values = [1.0, 2.0]
    env = mps.vary(Rail, gain=values)
    values[0] = 7.0
    assert env.parameters == {"gain": [1.0, 2.0]}
    assert env.tasks_at(np.ones((1, 1))) == [{"gain": 2.0}]
    with pytest.raises(ValueError, match="gain: expected a tuple .* and a finite difference"):
        mps.vary(Rail, gain=(-1.7e308, 1.7e308))


def test_the_time_limit_of_a_task_is_visible():
    env = mps.vary("Pendulum-v1", max_episode_steps=[5, 7])
    env.set_task({"max_episode_steps": 7})
    assert env.max_episode_steps == 7
