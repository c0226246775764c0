"""Each MuJoCo environment has a complete docstring."""
import inspect
import re

import pytest

from meta_policy_search.envs import RandomEnv, mujoco_envs
from meta_policy_search.envs.mujoco_envs.base import MujocoMetaEnv

SECTIONS = ("Observation", "Action", "Reward", "Tasks", "Start", "End", "Logs", "Args")
ENV_CLASSES = [getattr(mujoco_envs, name) for name in mujoco_envs.__all__]
ENGINE = ["engine", "inertials", "num_threads", "render_mode"]


def sections_of(env_class):
    """Returns title and text of each section of the docstring."""
    _, *rest = re.split(r"^([A-Z]\w*):$", inspect.getdoc(env_class), flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


def without_step_duration(text):
    return re.sub(r"held for \d+ simulation steps", "held", text)


@pytest.mark.parametrize("env_class", ENV_CLASSES)
def test_all_sections_exist(env_class):
    sections = sections_of(env_class)
    assert [title for title in SECTIONS if title not in sections] == []
    assert re.search(r"index +observation", sections["Observation"])


@pytest.mark.parametrize("env_class", [*ENV_CLASSES, RandomEnv, MujocoMetaEnv])
def test_every_argument_is_in_the_signature_and_documented(env_class):
    parameters = inspect.signature(env_class).parameters.values()
    assert not [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    documented = re.findall(r"^    (\w+(?:, \w+)*): ", sections_of(env_class)["Args"], flags=re.MULTILINE)
    assert ", ".join(documented).split(", ") == [p.name for p in parameters]


@pytest.mark.parametrize("env_class, by_position, by_name", [
    (mujoco_envs.AntRandGoalEnv, ["goal"], [*ENGINE, "contact_forces"]),
    (mujoco_envs.HalfCheetahRandDirecEnv, ["goal_direction"], ENGINE),
    (mujoco_envs.SwimmerRandVelEnv, ["min_velocity", "max_velocity"], ENGINE),
    (mujoco_envs.HopperRandParamsEnv, ["log_scale_limit", "rand_params"], ENGINE),
])
def test_arguments_are_in_the_documented_order(env_class, by_position, by_name):
    parameters = inspect.signature(env_class).parameters.values()
    assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == by_position
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == by_name


@pytest.mark.parametrize("robot", ["Ant", "HalfCheetah", "Humanoid", "Walker2D"])
def test_environments_of_a_robot_have_equal_descriptions(robot):
    """Observation, action and start are documented in each class; this test keeps the copies equal."""
    first, *others = [sections_of(cls) for cls in ENV_CLASSES if cls.__name__.startswith(robot)]
    assert others
    for sections in others:
        assert sections["Start"] == first["Start"]
        assert without_step_duration(sections["Action"]) == without_step_duration(first["Action"])
        if "qpos[" in sections["Observation"]:  # the goal ant also observes its position
            assert sections["Observation"] == first["Observation"]


@pytest.mark.parametrize("env_class", ENV_CLASSES)
def test_tables_have_the_sizes_of_the_spaces(env_class):
    """The tables number all entries of observation and action."""
    env, sections = env_class(), sections_of(env_class)
    for title, space in (("Observation", env.observation_space), ("Action", env.action_space)):
        assert f"float64 `[{space.shape[0]}]`" in sections[title]
        indices = re.findall(r"^    (\d+)(?:-(\d+))?  ", sections[title], flags=re.MULTILINE)
        covered = [i for first, last in indices for i in range(int(first), int(last or first) + 1)]
        assert covered == list(range(space.shape[0])) or title == "Action" and not indices
