"""Faulty environments raise an error that names the place, or have no effect on other data."""
import sys
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest

from meta_policy_search.samplers.errors import EnvWorkerError
from meta_policy_search.samplers.utils import rollout
from tests.helpers.runs import assert_same
from tests.helpers.sampling import BatchedWanderer, Scripted, Wanderer, flagged, parallel, sampler_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class ChangingInfo(Scripted):
    """Its info changes shape at the step whose number equals the task."""

    def __init__(self, before, after):
        super().__init__()
        self.before, self.after = before, after

    def step(self, action):
        observation, reward, terminated, truncated, _ = super().step(action)
        value = self.after if self.step_number == self.task + 1 else self.before
        return observation, reward, terminated, truncated, {"contact": value}


@pytest.mark.parametrize(("before", "after"), [([1, 2, 3], [7]), (1.0, [7.0, 7.0]), ([1, 2], None)])
@pytest.mark.parametrize("arguments", [{}, {"envs_per_task": 1}, {"executor": parallel(3)}],
                         ids=["together", "apart", "processes"])
@pytest.mark.thorough(but=("together-before0-after0", "together-1.0-after1", "together-before2-None",
                           "apart-before0-after0", "processes-before0-after0"))
def test_info_with_changing_shape_is_refused_and_named(before, after, arguments):
    with sampler_of(ChangingInfo(before, after), **arguments) as sampler:
        with pytest.raises(ValueError, match=r"(?s)^(?=.*contact.*: expected shape .* got ).*task 1, path 0, step 2"):
            sampler.obtain_samples()


def test_info_that_changes_shape_in_all_environments_at_once_is_refused():
    env = ChangingInfo([1, 2, 3], [7])
    env.tasks = (2, 2, 2)
    with sampler_of(env) as sampler, pytest.raises(ValueError, match=r"task 0, path 0, step 2: .*contact.*\(12, 3\)"):
        sampler.obtain_samples()


def test_single_path_names_the_step_and_the_infos():
    env = ChangingInfo([1, 2, 3], [7])
    env.set_task(2)
    with pytest.raises(ValueError, match=r"^step 2: env_infos: contact: expected shape \(3,\) .* got \(1,\)"):
        rollout(env, SimpleNamespace(get_action=lambda observation: (np.zeros(1), {})))


class Leaving(Scripted):
    def step(self, action):
        if self.step_number == self.task:
            sys.exit(0)
        return super().step(action)


class LeavingEarly(Scripted):
    def sample_tasks(self, n_tasks):
        sys.exit(0)


@pytest.mark.parametrize("executor", [None, parallel(2)])
def test_environment_that_exits_raises_with_its_place(executor):
    with sampler_of(Leaving(), executor=executor) as sampler:
        with pytest.raises(EnvWorkerError, match=r"SystemExit in step: 0(.|\n)*task 1, path 0, step 2"):
            sampler.obtain_samples()


def test_environment_that_exits_while_sampling_tasks_raises():
    with sampler_of(LeavingEarly()) as sampler, pytest.raises(EnvWorkerError, match=r"sample_tasks .*sys.exit\(0\)"):
        sampler.obtain_samples()


@pytest.mark.parametrize("kind", [int, np.uint8, float, object])
def test_flags_of_a_vectorized_environment_can_be_zeros_and_ones(kind):
    expected = sampler_of(Wanderer()).obtain_samples()
    flags = list if kind is object else lambda over: over.astype(kind)
    assert_same(list(sampler_of(flagged(flags)).obtain_samples().values()), list(expected.values()))


@pytest.mark.parametrize("flags", [lambda over: over[:, None], lambda over: False])
def test_other_flags_are_refused(flags):
    with sampler_of(flagged(flags)) as sampler, pytest.raises(EnvWorkerError, match="terminated: expected shape"):
        sampler.obtain_samples()


def test_rewards_and_infos_of_a_vectorized_environment_require_one_row_per_copy():
    class Columns(BatchedWanderer):
        def step(self, actions, env_ids=None):
            answer = super().step(actions, env_ids)
            return answer._replace(rewards=answer.rewards[:, None])

    class Constant(BatchedWanderer):
        def step(self, actions, env_ids=None):
            return super().step(actions, env_ids)._replace(env_infos={"gravity": np.array([9.8])})

    for batched, message in ((Columns, r"rewards: expected shape \(12,\)"), (Constant, r"gravity.*shape \(12,\)")):
        env = type("Env", (Wanderer,), {"batched_class": batched})()
        with sampler_of(env) as sampler, pytest.raises(ValueError, match=message):
            sampler.obtain_samples()


class Moving(Scripted):
    """Moves the goal, a list in the task, at every step."""

    def sample_tasks(self, n_tasks):
        return [{"goal": [float(i)]} for i in range(n_tasks)]

    def reset(self, *, seed=None, options=None):
        return np.zeros(2), {}

    def step(self, action):
        self.task["goal"][0] += 1.0
        return np.zeros(2), self.task["goal"][0], False, False, {}


def test_environments_receive_copies_of_the_tasks():
    sampler = sampler_of(Moving())
    sampler.update_tasks()
    before = repr(sampler.tasks)
    paths = sampler.obtain_samples()
    assert repr(sampler.tasks) == before
    assert paths[0][0]["rewards"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]  # one step moves one goal
