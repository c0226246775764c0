"""Tests constructors of environments: `inspect.signature`, docstring, `repr` and recorded settings agree."""
import copy
import inspect
import pickle
import re

import pytest

from meta_policy_search.envs import (
    GymnasiumMetaEnv,
    MetaBernoulliBanditEnv,
    MetaPointEnvCorner,
    NormalizedEnv,
    SingleTaskEnv,
    available_envs,
    get_env_class,
    mujoco_envs,
    normalize,
)
from meta_policy_search.utils.serializable import constructor_signature, present_arguments

CLASSES = [get_env_class(name) for name in available_envs() if name not in mujoco_envs.__all__]


@pytest.mark.parametrize("cls", [*CLASSES, NormalizedEnv, GymnasiumMetaEnv, SingleTaskEnv], ids=lambda c: c.__name__)
def test_every_argument_is_in_the_signature_and_in_the_docstring(cls):
    parameters = constructor_signature(cls).parameters.values()
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)
    section = inspect.getdoc(cls).partition("\nArgs:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^    (\w+): ", section, re.MULTILINE) == [p.name for p in parameters]


def test_unknown_arguments_are_refused():
    for cls in (MetaPointEnvCorner, MetaBernoulliBanditEnv, NormalizedEnv):
        with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
            cls(color="red")


@pytest.mark.parametrize("env, text, changed", [
    (MetaPointEnvCorner(), "MetaPointEnvCorner()", {}),
    (MetaPointEnvCorner("dense"), "MetaPointEnvCorner(reward_type='dense')", {"reward_type": "dense"}),
    (MetaBernoulliBanditEnv(3), "MetaBernoulliBanditEnv(num_arms=3)", {"num_arms": 3}),
])
def test_repr_and_settings_show_the_arguments(env, text, changed):
    for same in (env, copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert repr(same) == str(same) == text and present_arguments(same, only_changed=True) == changed
    assert repr(normalize(env, scale_reward=0.5)) == f"NormalizedEnv(env={text}, scale_reward=0.5)"
