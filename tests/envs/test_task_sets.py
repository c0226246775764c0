"""Tests the fixed training and test tasks. `python tests/envs/test_task_sets.py` writes their file."""
import json

import numpy as np
import pytest

from meta_policy_search.envs import load_tasks, make_env, registry
from meta_policy_search.envs.registry import BUILT_IN

OTHERS = {
    "AntRandDirecEnv", "HalfCheetahRandDirecEnv", "HumanoidRandDirecEnv", "Walker2DRandDirecEnv", "MetaPointEnvCorner",
    "MetaPointEnvCornerGoals", "MetaPointEnvMomentum", "MetaPointEnvOrigin",  # discrete tasks
    "MetaTabularMDPEnv",  # too large: 550 numbers per task
    "MetaWorldML1", "MetaWorldML10", "MetaWorldML25", "MetaWorldML45",  # argument `split`
    "MetaPointEnv",  # alias
}
NAMES = sorted(set(BUILT_IN) - OTHERS)


def draw(env):
    """Draws the tasks of each split from the task distribution of an environment."""
    return {split: env.sample_tasks(100, np.random.default_rng(seed)) for split, seed in registry.SEEDS.items()}


def rounded(value):
    """Returns a task as numbers, lists and dicts, with seven digits."""
    if isinstance(value, dict):
        return {name: rounded(numbers) for name, numbers in value.items()}
    value = np.asarray(value).tolist()
    return [rounded(item) for item in value] if isinstance(value, list) else float(f"{value:.7g}")


def write_task_sets():
    """Writes the file of the tasks."""
    sets = {name: {split: [*map(rounded, tasks)] for split, tasks in draw(make_env(name)).items()} for name in NAMES}
    lines = [f"{json.dumps(name)}: {json.dumps(tasks, separators=(',', ':'))}" for name, tasks in sets.items()]
    registry._FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def test_every_environment_has_fixed_tasks_or_is_listed_as_an_exception():
    assert sorted(registry._read()) == NAMES and OTHERS < set(BUILT_IN)
    for name in sorted(OTHERS - {"MetaTabularMDPEnv"}):  # few different tasks, own splits, or an alias
        if not name.startswith("MetaWorld") and BUILT_IN[name].__name__ == name:
            assert len({str(task) for task in make_env(name).sample_tasks(50, np.random.default_rng(0))}) <= 4


@pytest.mark.parametrize("name", NAMES)
def test_fixed_tasks_are_those_of_the_documented_seeds(name):
    env = make_env(name)
    for split, drawn in draw(env).items():
        for i, (task, expected) in enumerate(zip(load_tasks(name, split), drawn, strict=True)):
            if i < 3 or "RandParams" not in name:  # compiling constants of many models takes long
                env.set_task(task)
            assert isinstance(task, dict) == isinstance(expected, dict)
            for key in expected if isinstance(expected, dict) else [...]:
                value, other = (np.asarray(each if key is ... else each[key]) for each in (task, expected))
                np.testing.assert_allclose(value, other, rtol=1e-6)
                assert value.dtype == np.float64
    assert len({str(task) for split in registry.SEEDS for task in load_tasks(name, split)}) == 200


def test_names_are_found_without_regard_to_case():
    assert load_tasks("half-cheetah-rand-vel-env", "test") == load_tasks("HalfCheetahRandVelEnv", "test")
    with pytest.raises(ValueError, match="split: expected one of 'train', 'test', got 'dev'"):
        load_tasks("HalfCheetahRandVelEnv", "dev")
    with pytest.raises(ValueError, match="env: AntRandDirecEnv has no fixed tasks"):
        load_tasks("AntRandDirecEnv", "test")


if __name__ == "__main__":
    write_task_sets()
