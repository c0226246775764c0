"""Tests the environment registry."""
import importlib.util

import pytest

from meta_policy_search import envs
from meta_policy_search.envs import MetaEnv, available_envs, find_env, get_env_class, make_env
from meta_policy_search.envs.compat import check_meta_env
from meta_policy_search.envs.registry import BUILT_IN


def test_every_name_creates_a_meta_environment():
    assert available_envs() == sorted(available_envs())
    names = [name for name in available_envs() if name in BUILT_IN]
    assert {"MetaPointEnvCorner", "HalfCheetahRandDirecEnv", "HumanoidRandDirec2DEnv"} <= set(names)
    for name in names:
        env_class = get_env_class(name)
        assert env_class.__name__ == {"MetaPointEnv": "MetaPointEnvNavigation"}.get(name, name)
        assert issubclass(env_class, MetaEnv)
        if "MetaWorld" in name and importlib.util.find_spec("metaworld") is None:
            continue
        check_meta_env(make_env(name))


@pytest.mark.parametrize("package", [envs.point_envs, envs.discrete_envs, envs.mujoco_envs])
def test_every_environment_is_registered(package):
    assert set(package.__all__) <= set(available_envs())
    for name in package.__all__:
        assert get_env_class(name) is getattr(package, name)


@pytest.mark.parametrize("name", ["CartPole-v1", "gymnasium:CartPole-v1", "cartpole-v1"])
def test_ids_of_gymnasium_are_names(name):
    """The module of MODULE:ID is imported, and registers the id."""
    assert find_env(name) == name.replace("cartpole", "CartPole")
    env = make_env(name, max_episode_steps=3, render_mode="rgb_array")
    assert (env.spec.id, env.spec.max_episode_steps, env.render_mode) == ("CartPole-v1", 3, "rgb_array")


@pytest.mark.parametrize("name", ["gymnasium:CartPole-v7", "gymnasium:registry", "gymnasium:make", "ALE/Nothing-v0"])
def test_other_names_of_gymnasium_are_refused(name):
    with pytest.raises(ValueError, match="env: expected .* got '" + name):
        find_env(name)


def test_unknown_name_without_similar_ones_asks_for_the_module():
    with pytest.raises(ValueError, match="got 'DriftEnv'. Write your own class as MODULE:NAME$"):
        make_env("DriftEnv")


@pytest.mark.parametrize("name", ["MetaPointEnvCorners", "", None, "MetaEnv"])
def test_unknown_name_is_refused_with_similar_names(name):
    for function in (get_env_class, make_env):
        with pytest.raises(ValueError, match="env: expected one of .* names.*, got") as error:
            function(name)
        assert ("such as" in str(error.value)) != ("did you mean" in str(error.value))
        assert len(str(error.value)) < 240


def test_suggestions_contain_the_latest_version_of_each_environment():
    with pytest.raises(ValueError, match="'HalfCheetahRandDirecEnv', 'HalfCheetah-v5', (?!'HalfCheetah-v)"):
        get_env_class("half_cheetah_direction")
