"""Tests environments whose paths depend on more than task, random numbers and actions."""
import random
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest

from meta_policy_search import MetaBernoulliBanditEnv, MetaPointEnvCorner, SingleTaskEnv, check_env, normalize, vary
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from tests.helpers.sampling import BatchedWanderer, Drift, EnvWithRareInfos, Scripted, Wanderer

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.parametrize("env", [MetaPointEnvCorner(), normalize(MetaPointEnvCorner(), normalize_obs=True), Wanderer(),
                                 EnvWithRareInfos(), Scripted(), MetaBernoulliBanditEnv()],
                         ids=lambda env: type(env).__name__)
def test_valid_environments_pass(env):
    check_env(env)


class Own(Scripted):
    """Draws from a private generator."""

    def __init__(self, generator):
        super().__init__()
        self.noise = generator

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, self.noise.random(), *rest


class Global(Scripted):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, np.random.random(), *rest


class Lasting(Scripted):
    """Counts the steps of all paths."""

    steps = 0

    def step(self, action):
        self.steps += 1
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"age": self.steps}


class Counting(Scripted):
    """Counts its paths."""

    paths = 0

    def reset(self, **arguments):
        self.paths += 1
        return super().reset(**arguments)


class Late(Counting):
    """Reports an info from the second path on."""

    def step(self, action):
        *answer, _ = super().step(action)
        return (*answer, {"late": 1} if self.paths > 1 else {})


class RunningMean(Scripted):
    """Subtracts the mean of all observations so far, as wrappers that normalize do; samplers do not notice this."""

    total, count = 0.0, 0

    def observation(self):
        observation = super().observation()
        self.total, self.count = self.total + observation, self.count + 1
        return observation - self.total / self.count


class Remembering(Scripted):
    """Keeps the smallest task."""

    def set_task(self, task):
        self.task = min(task, getattr(self, "task", task))


class Shared(BatchedWanderer):
    """Its rewards depend on other environments."""

    def step(self, actions, env_ids=None):
        answer = super().step(actions, env_ids)
        return answer._replace(rewards=np.full(len(answer.rewards), answer.rewards.mean()))


class Unlike(Wanderer):
    """The vectorized environment behaves differently."""

    batched_class = BatchedWanderer

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward + 1.0, *rest

    @replaces("step")
    def make_batched(self, num_envs):
        return self.batched_class(num_envs)


class WithoutTask(Drift):
    def set_task(self, task):
        pass


class Outside(Drift):
    observation_space = gymnasium.spaces.Box(-0.2, 0.2, (2,), np.float64)


class OtherType(Scripted):
    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)


class Nan(Drift):  # Gymnasium's check has another message
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, np.nan, *rest


class Unseeded(Drift):
    def reset(self, *, seed=None, options=None):
        self.position = np.zeros(2)
        return self.position.copy(), {}


class WithoutArgument(Drift):
    def sample_tasks(self):
        return [np.zeros(2)]


class OwnGenerator(Drift):
    def sample_tasks(self, n_tasks, rng=None):
        return [np.random.default_rng().normal(size=2) for _ in range(n_tasks)]


class Wind:
    def __init__(self, speed):
        self.speed = speed


class TaskObjects(Drift):
    """Two sampled tasks are never equal, because their class has no comparison."""

    def sample_tasks(self, n_tasks):
        return [Wind(np.random.normal(size=2)) for _ in range(n_tasks)]

    def set_task(self, task):
        super().set_task(task.speed)


class FourValues(Drift):
    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, info


class ThreeValues(Drift):
    def reset(self, **options):
        return (*super().reset(**options), None)


class SetsNoTask(Drift):
    def set_task(self):
        pass


def test_plain_environment_of_gymnasium_passes():
    check_env(Drift())
    check_env(TaskObjects())
    check_env(vary("Pendulum-v1", g=(5.0, 15.0), l=(0.5, 1.0)))  # an argument and an attribute
    check_env(SingleTaskEnv(gymnasium.make("Pendulum-v1")), num_steps=3)


@pytest.mark.parametrize(("env", "error", "message"), [
    (Own(np.random.default_rng(0)), ValueError, "after 1 steps the reward is .* after other paths, .*self.np_random"),
    (Own(np.random.RandomState(0)), ValueError, "the reward is .* after other paths"),
    (Own(random.Random(0)), ValueError, "the reward is .* after other paths"),
    (Global(), ValueError, "the reward is .* in another copy"),
    (Lasting(), ValueError, "after 1 steps the env_infos.*age.* after other paths"),
    (Late(), ValueError, "after 1 steps the env_infos.*late.* is 1 after other paths, but was None in the first run"),
    (RunningMean(), ValueError, "after other paths, .*state in reset"),
    (Remembering(), ValueError, "after a path in another task"),
    (type("SharedEnv", (Wanderer,), {"batched_class": Shared})(), ValueError,
     "the reward is .* together with other copies"),
    (Unlike(), ValueError, "the reward is .* without make_batched"),
    (WithoutTask(), ValueError, "WithoutTask.set_task: expected an effect of the task, got equal observations and rew"),
    (Outside(), ValueError, "Outside: expected observations in Box.*, got float.* after . steps"),
    (OtherType(), ValueError, "OtherType: expected observations in Box.*float32.*, got float64 .* at the start"),
    (Nan(), ValueError, "Nan: expected finite observations and rewards, got .* and nan after 1 steps"),
    ("Drift", TypeError, r"env: expected a meta-environment, got the name 'Drift': pass make_env\('Drift'\)"),
    (Unseeded(), ValueError, "Unseeded: the check of Gymnasium found: .*seed"),
    (WithoutArgument(), TypeError, r"WithoutArgument.sample_tasks: expected the arguments \(n_tasks\) .*got \(\)"),
    (OwnGenerator(), ValueError, "OwnGenerator.sample_tasks: expected the same tasks from generators with"),
    (FourValues(), ValueError, r"FourValues: .* \(expected 5, got 4\) \(reset returns 2 values, step 5\)"),
    (ThreeValues(), ValueError, "ThreeValues: observation: expected an array of real numbers, got .*array.*, None"),
    (SetsNoTask(), TypeError, r"SetsNoTask.set_task: expected the arguments \(task\), got \(\)"),
])
def test_faults_are_named(env, error, message):
    with pytest.raises(error, match=message):
        check_env(env)
