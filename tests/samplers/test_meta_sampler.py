"""Tests the sampler: equal data from all executors, path contents, seeds, faults and state."""
import os
import resource
import sys
import threading
import time

import cloudpickle
import numpy as np
import pytest
import threadpoolctl

from meta_policy_search import Actor, BatchableMetaEnv, MetaPointEnvCorner, logger, normalize, set_seed
from meta_policy_search.envs import MetaBernoulliBanditEnv
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampler, Sampler, rollout_loop
from meta_policy_search.samplers.errors import EnvWorkerError, NotFiniteError
from meta_policy_search.samplers.vectorized_env_executor.local import MetaIterativeEnvExecutor
from meta_policy_search.types import BatchedStep
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.statistics import task_timesteps
from tests.helpers.processes import workers_of
from tests.helpers.runs import assert_same
from tests.helpers.sampling import (
    BatchedWanderer,
    Ending,
    EnvWithRareInfos,
    FixedPolicy,
    M,
    P,
    Scripted,
    T,
    Wanderer,
    flat_paths,
    make_policy,
    parallel,
    paths_of,
    sampler_of,
    two_iterations,
)
from tests.helpers.threads import blas_threads

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # keeps workers from importing this file and pytest

# Equal data


@pytest.mark.parametrize("make_env", [
    MetaPointEnvCorner, Wanderer, HalfCheetahRandDirecEnv, MetaBernoulliBanditEnv, Ending,
    pytest.param(lambda: normalize(Ending(), normalize_obs=True, normalize_reward=True), id="normalized Ending"),
])
@pytest.mark.thorough(but=("Wanderer", "HalfCheetahRandDirecEnv", "normalized Ending"))
def test_data_are_independent_of_executor_and_envs_per_task(make_env):
    policy = make_policy(make_env())
    expected = two_iterations(sampler_of(make_env(), policy))
    for executor, envs_per_task in ((None, 3), (MetaIterativeEnvExecutor, 1), (parallel(2), 2)):
        sampler = sampler_of(make_env(), policy, executor=executor, envs_per_task=envs_per_task)
        assert_same(two_iterations(sampler), expected)


# Threads


class BatchedShared(BatchedWanderer):
    """Allows one thread per task, records the calling threads, and can fail in one of them."""

    max_threads = M
    callers = {}
    fault = None

    def step(self, actions, env_ids=None):
        task = env_ids[0] // P
        self.callers.setdefault(task, []).append(threading.current_thread().name)
        time.sleep(0.001)
        if self.fault is not None and task == 1 and self.ages[env_ids[0]] == 2:
            self.fault()
        return super().step(actions, env_ids)


class Shared(BatchableMetaEnv):
    batched_class = BatchedShared


@pytest.fixture
def shared(monkeypatch):
    monkeypatch.setattr(BatchedShared, "callers", {})
    return BatchedShared


def test_data_are_equal_if_threads_share_the_tasks(shared):
    policy = make_policy(Wanderer())
    for envs_per_task in (P, 3):
        expected = two_iterations(sampler_of(Wanderer(), policy, envs_per_task=envs_per_task))
        assert_same(two_iterations(sampler_of(Shared(), policy, envs_per_task=envs_per_task)), expected)
    assert len(set(sum(shared.callers.values(), []))) == M  # one thread per task
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sampling")]


def fail():
    raise ValueError("out of luck")


def test_fault_in_one_thread_ends_all_threads(shared, monkeypatch):
    monkeypatch.setattr(shared, "fault", staticmethod(fail))
    monkeypatch.setattr(BatchedShared, "end_probability", 0.0)
    sampler = sampler_of(Shared(), max_path_length=10_000)
    with pytest.raises(EnvWorkerError, match="out of luck.*sampling 4 paths, the first one task 1, path 0, step 2"):
        sampler.obtain_samples()
    assert max(map(len, shared.callers.values())) < 1000  # well before the 10,000 steps
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sampling")]
    monkeypatch.undo()  # no fault, and paths that end
    assert list(sampler.obtain_samples()) == list(range(M))  # the sampler remains usable


@pytest.mark.parametrize("num_threads, expected", [(1, 1), (2, 2), (8, 4)])
def test_multithreaded_physics_engine_is_called_by_several_threads(num_threads, expected):
    assert sampler_of(normalize(HalfCheetahRandDirecEnv(num_threads=num_threads))).vec_env.max_threads == expected


class UndividedActor(Actor):
    """Wraps an actor that acts in all tasks with one call."""

    def __init__(self, actor):
        self.actor, self.noise_dim = actor, actor.noise_dim

    def act(self, observations, noise):
        return self.actor.act(observations, noise)


class Undivided(MetaGaussianMLPPolicy):
    """A policy whose actor cannot be divided."""

    @replaces("get_actions")
    def make_actor(self):
        return UndividedActor(super().make_actor())


def test_actor_without_for_tasks_is_called_by_one_thread(shared):
    policy = make_policy(Shared())
    expected = sampler_of(Shared(), policy).obtain_samples()
    policy.__class__ = Undivided
    shared.callers.clear()
    assert_same(sampler_of(Shared(), policy).obtain_samples(), expected)
    assert set(shared.callers) == {0} and set(shared.callers[0]) == {threading.current_thread().name}


# Contents of paths


def test_structure_shapes_and_types():
    sampler = sampler_of(MetaPointEnvCorner())
    assert isinstance(sampler, Sampler)
    sampler.update_tasks()
    batch = sampler.obtain_samples()
    assert type(batch) is dict and list(batch) == list(range(M))
    for paths in batch.values():
        assert type(paths) is list and len(paths) == P
        for path in paths:
            assert type(path) is type(path["env_infos"]) is type(path["agent_infos"]) is dict
            shapes = {key: value.shape for key, value in path.items() if isinstance(value, np.ndarray)}
            assert shapes == {"observations": (T, 2), "actions": (T, 2), "rewards": (T,), "last_observation": (2,)}
            assert path["observations"].dtype == path["rewards"].dtype == np.float64
            assert path["actions"].dtype == np.float32
            shapes = {key: value.shape for key, value in path["agent_infos"].items()}
            assert shapes == {"mean": (T, 2), "log_std": (T, 2)} and path["terminated"] is False


def test_paths_agree_with_the_environment():
    sampler = sampler_of(MetaPointEnvCorner(reward_type="dense"), envs_per_task=2)
    sampler.update_tasks([[2.0, 2.0], [-2.0, 2.0], [2.0, -2.0]])
    for goal, path in zip(np.repeat(sampler.tasks, P, axis=0), flat_paths(sampler.obtain_samples())):
        positions = np.vstack([path["observations"], path["last_observation"]])
        np.testing.assert_allclose(np.diff(positions, axis=0), np.clip(path["actions"], -0.2, 0.2), atol=1e-7)
        np.testing.assert_allclose(path["rewards"], -np.linalg.norm(positions[1:] - goal, axis=1), rtol=1e-12)


def test_each_task_uses_its_parameters_and_noise_is_standard_normal():
    env = MetaPointEnvCorner()
    policy = make_policy(env, hidden_sizes=())
    batch = sampler_of(env, policy, rollouts_per_meta_task=40, max_path_length=20).obtain_samples()
    noise = []
    for params, paths in zip(policy.policies_params_vals, batch.values()):
        for path in paths:
            mean = path["observations"] @ params["mean_network/output/kernel"] + params["mean_network/output/bias"]
            np.testing.assert_allclose(path["agent_infos"]["mean"], mean, atol=1e-6)
            log_std = path["agent_infos"]["log_std"]
            np.testing.assert_array_equal(log_std, np.broadcast_to(params["log_std_network/log_std_var"], (20, 2)))
            noise.append((path["actions"] - mean) / np.exp(log_std))
    noise = np.array(noise)
    assert abs(noise.mean()) < 0.05 and noise.std() == pytest.approx(1.0, abs=0.03)
    assert len(np.unique(noise[:, 0, 0])) == M * 40  # noise differs between paths


@pytest.mark.parametrize("envs_per_task", [1, 3, None, 200])  # 200: more than paths
def test_every_early_ending_path_is_included(envs_per_task):
    sampler = sampler_of(Wanderer(), rollouts_per_meta_task=100, envs_per_task=envs_per_task)
    batch = sampler.obtain_samples()
    assert [len(paths) for paths in batch.values()] == [100] * M and sampler.envs_per_task <= 100
    lengths = np.array([len(path["rewards"]) for path in flat_paths(batch)])
    for path, length in zip(flat_paths(batch), lengths):
        assert {len(path[key]) for key in ("observations", "actions", "rewards")} == {length}
        assert {len(info) for info in (*path["agent_infos"].values(), *path["env_infos"].values())} == {length}
        np.testing.assert_array_equal(path["env_infos"]["age"], np.arange(1, length + 1))
        assert path["terminated"] or length == T
    assert 0 < lengths.min() < lengths.max() <= T
    # 20 % end at their first step, as in the environment: no path was omitted because of its length
    assert (lengths == 1).mean() == pytest.approx(0.2, abs=0.08)
    assert sampler.total_timesteps_sampled == lengths.sum()
    # a path that ends at its last step is terminated
    batch = sampler_of(Wanderer(), rollouts_per_meta_task=60, max_path_length=1).obtain_samples()
    assert {path["terminated"] for path in flat_paths(batch)} == {True, False}


@pytest.mark.parametrize("envs_per_task", [1, 4, 6])
def test_infos_missing_at_some_steps_are_none(envs_per_task):
    set_seed(3)
    with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 6, 2, 5, envs_per_task=envs_per_task) as sampler:
        paths = [path for task_paths in sampler.obtain_samples().values() for path in task_paths]
    assert {len(path["rewards"]) for path in paths} == {1, 2, 3, 4, 5}  # chosen so that all cases below occur
    for path in paths:
        t = np.arange(1, len(path["rewards"]) + 1)
        is_last = t == len(t)
        infos = path["env_infos"]
        np.testing.assert_array_equal(infos["t"], t)
        np.testing.assert_array_equal(infos["odd"], np.where(t % 2, t, None))
        np.testing.assert_array_equal(infos["late"], np.where((t > 2)[:, None], [0, 1], None))
        np.testing.assert_array_equal(infos["success"], np.where(is_last, True, None))
        assert infos["outcome"].tolist() == [None] * (len(t) - 1) + ["done"]
        assert infos["t"].dtype.kind == "i" and infos["success"].dtype == infos["odd"].dtype == object


class Reusing(Scripted):
    """Reports containers that it changes later."""

    def reset(self, **arguments):
        self.counts = {"steps": [0], "seen": set(), "last": np.zeros(1)}
        return super().reset(**arguments)

    def step(self, action):
        *answer, info = super().step(action)
        self.counts["steps"][0] += 1
        self.counts["seen"].add(self.counts["steps"][0])
        self.counts["last"][:] = self.counts["steps"]
        return (*answer, {**info, "counts": self.counts})


class BatchedReusing(BatchedWanderer):
    counts = None

    def step(self, actions, env_ids=None):
        answer, ids = super().step(actions, env_ids), self._rows(actions, env_ids)[1]
        self.counts = np.array([{} for _ in range(self.num_envs)]) if self.counts is None else self.counts
        for e in ids:
            age = int(self.ages[e])
            self.counts[e].update(last=age, steps=[age], seen=set(range(1, age + 1)))
        return answer._replace(env_infos={"counts": self.counts[ids]})


@pytest.mark.parametrize("env", [Reusing(), type("Env", (BatchableMetaEnv,), {"batched_class": BatchedReusing})()])
@pytest.mark.parametrize("executor", [None, parallel(1)])
def test_infos_are_copied_in_each_step(env, executor):
    with sampler_of(env, FixedPolicy(M, 2), executor=executor) as sampler:
        for path in flat_paths(sampler.obtain_samples()):
            for step, counts in enumerate(path["env_infos"]["counts"], start=1):
                assert counts == {"steps": [step], "seen": set(range(1, step + 1)), "last": step}


# Seeds and tasks


def first_actions(sampler):
    return np.array([path["actions"][0] for path in flat_paths(sampler.obtain_samples())])


def test_every_step_and_iteration_draws_new_numbers():
    sampler = sampler_of(MetaPointEnvCorner())
    sampler.update_tasks()
    draws = [first_actions(sampler), first_actions(sampler)]
    sampler.update_tasks()
    draws.append(first_actions(sampler))
    for i in range(3):
        for j in range(i):
            assert (draws[i] != draws[j]).all()


def test_update_tasks_samples_meta_batch_size_tasks():
    sampler = sampler_of(Wanderer())
    assert sampler.tasks is None
    tasks = []
    for _ in range(2):
        sampler.update_tasks()
        assert len(sampler.tasks) == M
        tasks.append(sampler.tasks)
    assert not set(tasks[0]) & set(tasks[1])
    other = sampler_of(Wanderer())
    other.start_at(1)
    other.update_tasks()
    assert other.tasks == tasks[1]  # tasks depend only on seed and iteration


def test_given_tasks_count_as_an_iteration():
    """Sampling with tasks drawn by another sampler gives its paths, also in the next iteration."""
    one, other = sampler_of(Wanderer()), sampler_of(Wanderer())
    with one, other:
        one.update_tasks()
        other.update_tasks(np.array(one.tasks))
        assert_same(flat_paths(one.obtain_samples()), flat_paths(other.obtain_samples()))
        one.update_tasks(), other.update_tasks()
        assert one.tasks == other.tasks
        with pytest.raises(ValueError, match=f"tasks: expected meta_batch_size={M} tasks, got 2"):
            other.update_tasks([0.0, 1.0])


def test_tasks_are_sampled_on_first_use():
    sampler, other = sampler_of(Wanderer()), sampler_of(Wanderer())
    other.update_tasks()
    assert_same(sampler.obtain_samples(), other.obtain_samples())
    assert sampler.tasks == other.tasks


TASKS = [0.5, -0.5, 2.0]


@pytest.mark.parametrize("executor", [None, MetaIterativeEnvExecutor, parallel(2)])
def test_tasks_given_to_the_executor_are_sampled(executor):
    expected = sampler_of(Wanderer())
    expected.update_tasks(TASKS)
    with sampler_of(Wanderer(), executor=executor) as sampler:
        sampler.vec_env.set_tasks(TASKS)
        assert sampler.tasks == TASKS
        assert_same(paths_of(sampler), paths_of(expected))
        assert_same(paths_of(sampler), paths_of(expected))  # the next adaptation step uses the same tasks

        sampler.start_at(5)
        expected.start_at(5)
        sampler.vec_env.set_tasks(TASKS[::-1])
        expected.update_tasks(TASKS[::-1])
        assert_same(paths_of(sampler), paths_of(expected))
        assert_same(sampler.get_state(), expected.get_state())


def test_tasks_given_during_an_iteration_are_part_of_the_sampler_state():
    sampler, other = sampler_of(Wanderer()), sampler_of(Wanderer())
    sampler.obtain_samples()
    sampler.vec_env.set_tasks(TASKS)
    other.set_state(sampler.get_state())
    assert other.tasks == TASKS
    assert_same(paths_of(sampler), paths_of(other))


def test_new_tasks_are_drawn_if_none_are_given_and_after_refused_tasks():
    class Picky(Scripted):
        def set_task(self, task):
            if task == 5:
                raise ValueError("not five")
            self.task = task

    sampler = sampler_of(Picky())
    with pytest.raises(ValueError, match="not five"):
        sampler.vec_env.set_tasks([9, 5, 9])
    sampler.obtain_samples()
    assert sampler.tasks == [9, 2, 9]
    sampler.vec_env.set_tasks([3, 3, 3])
    sampler.start_at(1)  # next iteration
    sampler.obtain_samples()
    assert sampler.tasks == [9, 2, 9]


@pytest.mark.parametrize("is_begun", [False, True])
def test_tasks_of_the_previous_environment_are_not_set_in_an_assigned_one(is_begun):
    sampler, other = sampler_of(MetaPointEnvCorner()), MetaPointEnvCorner()
    other.goal_range, other.first_task = 3.0, (3.0, 3.0)
    sampler.update_tasks()
    if is_begun:
        sampler.obtain_samples()
    sampler.env = other
    sampler.set_state(sampler.get_state())
    sampler.update_tasks()
    np.testing.assert_array_equal(np.abs(sampler.tasks), 3.0)
    assert len(sampler.obtain_samples()) == M


@pytest.mark.parametrize("wrap", [
    lambda env: env, normalize, lambda env: normalize(env, normalization_scale=1.0, normalize_obs=True),
])
def test_assigned_environment_has_the_wrappers_of_the_previous_one(wrap):
    sampler = sampler_of(normalize(MetaPointEnvCorner(), normalization_scale=1.0))
    with pytest.raises(ValueError, match="^env: expected .*(the previous environment|normalized neither)"):
        sampler.env = wrap(MetaPointEnvCorner())
    sampler.env = normalize(MetaPointEnvCorner(), normalization_scale=1.0)


# Long paths


def test_memory_depends_on_actual_steps_and_not_on_max_path_length():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    paths = sampler_of(Wanderer(), max_path_length=10 ** 9).obtain_samples()
    assert task_timesteps(paths).sum() < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


@pytest.mark.parametrize("arguments", [
    {}, {"envs_per_task": 1}, {"executor": MetaIterativeEnvExecutor, "envs_per_task": 3}])
def test_long_paths_do_not_depend_on_the_initial_buffer_size(arguments, monkeypatch):
    """A buffer that starts with 4 steps and grows to 50 gives the actions of a larger buffer."""
    monkeypatch.setattr(rollout_loop, "INITIAL_BUFFER_STEPS", 49)
    expected = sampler_of(Wanderer(), max_path_length=50).obtain_samples()
    assert max(len(path["rewards"]) for path in flat_paths(expected)) > 8
    monkeypatch.setattr(rollout_loop, "INITIAL_BUFFER_STEPS", 4)
    paths = sampler_of(Wanderer(), max_path_length=50, **arguments).obtain_samples()
    assert_same(list(paths.values()), list(expected.values()))


# Executors, log, custom policies


def test_closed_sampler_opens_its_worker_processes_again():
    """Close, sample: the tasks and paths are those of a sampler that was not closed."""
    sampler, reference = (sampler_of(MetaPointEnvCorner(), parallel=parallel) for parallel in (True, False))
    for each in (sampler, reference):
        each.update_tasks()
    sampler.close()
    assert not workers_of()
    assert_same(sampler.obtain_samples(), reference.obtain_samples())
    workers = workers_of()
    assert len(workers) > 0
    sampler.close()
    sampler.close()
    assert not workers_of()


def test_sampler_opens_its_executor_on_first_use():
    """Neither building a sampler nor restoring a state opens it; the restored sampler continues the iteration."""
    opened = []

    def executor(*args):
        opened.append(args)
        return MetaIterativeEnvExecutor(*args)

    reference, sampler = sampler_of(Wanderer()), sampler_of(Wanderer(), executor=executor)
    reference.obtain_samples()
    sampler.set_state(reference.get_state())
    assert sampler.tasks == reference.tasks and sampler.get_state() == reference.get_state() and not opened
    assert_same(sampler.obtain_samples(), reference.obtain_samples())
    assert len(opened) == 1


def test_times_are_logged_on_request():
    sampler = sampler_of(MetaPointEnvCorner())
    sampler.obtain_samples()
    assert logger.getkvs() == {}
    sampler.obtain_samples(log=True, log_prefix="Step_1-")
    assert set(logger.getkvs()) == {"Step_1-PolicyExecTime", "Step_1-EnvExecTime"}
    assert all(0.0 < value < 10.0 for value in logger.getkvs().values())


class Marching:
    """A custom policy without TensorFlow or vectorized actor: acts by task index, stores observations."""

    meta_batch_size, obs_dim, action_dim = M, 2, 2

    def __init__(self):
        self.seen = []

    def get_actions(self, observations):
        assert isinstance(observations, list) and [obs.shape for obs in observations] == [(P, 2)] * M
        self.seen.append(np.array(observations))
        actions = [np.full((P, 2), 0.01 * (m + 1)) for m in range(M)]
        return actions, [[{"task": m, "seen": obs} for obs in task_obs] for m, task_obs in enumerate(observations)]


@pytest.mark.parametrize("executor, envs_per_task", [(None, None), (None, 1), (parallel(2), None)])
def test_policy_without_vectorized_actor_acts_through_get_actions(executor, envs_per_task):
    """It acts in this process, also if worker processes step the environments."""
    policy = Marching()
    with sampler_of(MetaPointEnvCorner(), policy, executor=executor, envs_per_task=envs_per_task) as sampler:
        batch = sampler.obtain_samples()
    for m, paths in batch.items():
        for path in paths:
            np.testing.assert_allclose(path["actions"], np.full((T, 2), 0.01 * (m + 1)))
            assert path["agent_infos"]["task"].tolist() == [m] * T
            np.testing.assert_array_equal(path["agent_infos"]["seen"], path["observations"])
    assert len(policy.seen) == T * (1 if envs_per_task is None else P)


# Faults


@pytest.mark.thorough(but="MetaIterativeEnvExecutor-1-reward-reward-nan-2")
@pytest.mark.parametrize(
    "fault, what, number, step",
    [("reset", "observation", "nan", 0), ("observation", "observation", "inf", 2), ("reward", "reward", "nan", 2)],
)
@pytest.mark.parametrize("executor, envs_per_task", [
    (MetaIterativeEnvExecutor, P), (MetaIterativeEnvExecutor, 1), (parallel(2), P)])
def test_non_finite_numbers_raise_with_task_path_and_step(fault, what, number, step, executor, envs_per_task):
    with sampler_of(Scripted(fault), executor=executor, envs_per_task=envs_per_task) as sampler:
        with pytest.raises(NotFiniteError, match=f"^{what}: expected finite .*numbers, got .*{number}.* in task 1, "
                                                 f"path 0, step {step}$"):
            sampler.obtain_samples()


def test_non_finite_action_raises_with_its_place():
    class Diverging(Marching):
        def get_actions(self, observations):
            actions, infos = super().get_actions(observations)
            if len(self.seen) == 4:
                actions[2][1] = np.nan
            return actions, infos

    with pytest.raises(ValueError, match="policy: expected finite actions, got .* in task 2, path 1, step 3"):
        sampler_of(MetaPointEnvCorner(), Diverging()).obtain_samples()


def test_info_that_cannot_be_sent_names_the_tasks_of_the_worker():
    with sampler_of(Scripted("info that cannot be sent"), executor=parallel(2)) as sampler:
        with pytest.raises(EnvWorkerError, match=r"^worker process 1 \(tasks 1 to 2\): TypeError: cannot pickle.*lock"):
            sampler.obtain_samples()


BREAK, END, DIE = 1.0, 2.0, 3.0  # actions with a special effect in the environment


class Broken(RuntimeError):
    """May name the broken environments, like a physics engine."""

    def __init__(self, env_ids):
        super().__init__("broken")
        if env_ids is not None:
            self.env_ids = env_ids


class BatchedObedient(BatchedWanderer):
    """Observes the number of steps of the path; special actions break or end it; can also break at a later reset."""

    observation_space = action_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float64)

    def __init__(self, num_envs, says_which=True, last_reset=99):
        super().__init__(num_envs)
        self.says_which, self.last_reset, self.num_resets = says_which, last_reset, np.zeros(num_envs, int)

    def reset(self, env_ids, rngs):
        super().reset(env_ids, rngs)
        self.num_resets[env_ids] += 1
        self.check(env_ids[self.num_resets[env_ids] > self.last_reset])
        return np.zeros((len(env_ids), 1))

    def check(self, broken):
        if len(broken):
            raise Broken(broken if self.says_which else None)

    def step(self, actions, env_ids=None):
        actions, ids = self._rows(actions, env_ids)
        if (actions == DIE).any():
            os._exit(7)
        self.check(ids[actions[:, 0] == BREAK])
        self.ages[ids] += 1
        return BatchedStep(self.ages[ids, None].astype(float), np.zeros(len(ids)), actions[:, 0] == END,
                           np.zeros(len(ids), bool), {})


class Obedient(BatchableMetaEnv):
    batched_class = BatchedObedient


class Commander:
    """A custom policy; `orders` maps (task, path, step) to an action."""

    meta_batch_size, obs_dim, action_dim = M, 1, 1

    def __init__(self, orders):
        self.orders = orders

    def get_actions(self, observations):
        actions = np.zeros((M, P, 1))
        for (task, path, step), action in self.orders.items():
            if observations[task][path, 0] == step:
                actions[task, path] = action
        return list(actions), [[{}] * P] * M


@pytest.mark.parametrize("executor, orders, env, envs_per_task, place", [
    # one broken path, anywhere
    (None, {(2, 1, 3): BREAK}, {}, P, "task 2, path 1, step 3"),
    (MetaIterativeEnvExecutor, {(2, 1, 3): BREAK}, {}, P, "task 2, path 1, step 3"),
    # several broken paths; sequential stepping stops at the first
    (None, {(1, 1, 2): BREAK, (2, 3, 2): BREAK}, {}, P, "2 paths, the first one task 1, path 1, step 2"),
    (MetaIterativeEnvExecutor, {(1, 1, 2): BREAK, (2, 3, 2): BREAK}, {}, P, "task 1, path 1, step 2"),
    # unknown environments: names all that were stepped together
    (None, {(2, 1, 3): BREAK}, {"says_which": False}, P, "12 paths, the first one task 0, path 0, step 3"),
    (parallel(2), {(2, 1, 3): DIE}, {}, P, "8 paths, the first one task 1, path 0, step 3"),
    # a later path in the same environment: has its own path and step numbers
    (None, {(1, 0, 1): END, (1, 2, 0): BREAK}, {}, 2, "task 1, path 2, step 0"),
    # at the start of a path
    (None, {(1, 0, 2): END, (1, 1, 1): END}, {"last_reset": 2}, 1, "task 1, path 2, step 0"),
])
def test_error_names_the_broken_paths_and_their_steps(executor, orders, env, envs_per_task, place):
    with sampler_of(Obedient(**env), Commander(orders), executor=executor, envs_per_task=envs_per_task) as sampler:
        with pytest.raises(EnvWorkerError) as error:
            sampler.obtain_samples()
    assert str(error.value).endswith(f"[while sampling {place}]")


@pytest.mark.parametrize("arguments, error, message", [
    ({"rollouts_per_meta_task": 0}, ValueError, "rollouts_per_meta_task"),
    ({"meta_batch_size": M + 1}, ValueError, "expected 3, the value of policy.meta_batch_size, got 4"),
    ({"max_path_length": 0}, ValueError, "max_path_length"),
    ({"parallel": "yes"}, ValueError, "parallel: expected one of False, True, 'ray', got 'yes'"),
    ({"env": gym.Env()}, TypeError, "env: expected a meta-environment with the methods sample_tasks"),
    ({"env": MetaPointEnvCorner}, TypeError, r"got the class MetaPointEnvCorner: pass an object, such as Meta"),
])
def test_arguments_are_checked(arguments, error, message):
    env = MetaPointEnvCorner()
    with pytest.raises(error, match=message):
        sampler_of(**{"env": env, "policy": make_policy(env), **arguments})


class CountsThreads(Scripted):
    """Records the number of threads of matrix operations in each step."""

    def step(self, action):
        self.threads.update(blas_threads())
        return super().step(action)


def test_matrix_operations_use_one_thread_during_sampling_only():
    CountsThreads.threads = set()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        two_iterations(sampler_of(CountsThreads(), envs_per_task=1))
        assert blas_threads() == before
    assert CountsThreads.threads <= {1}


# Environments without spaces


class Unspaced:
    """A classic environment with an offset as task, without spaces."""

    goal = None

    def sample_tasks(self, n_tasks):
        return [float(task) for task in range(1, n_tasks + 1)]

    def set_task(self, task):
        self.goal = task

    def reset(self):
        self.position = np.zeros(3)
        return self.position + self.goal

    def step(self, action):
        self.position[0] += action
        return self.position + self.goal, float(action), False, {}


class Constant:
    """A policy without sizes, which acts by task index."""

    def get_actions(self, observations):
        assert [task.shape[1:] for task in observations] == [(3,)] * M
        return [np.full(len(task), float(m)) for m, task in enumerate(observations)], None


@pytest.mark.parametrize("parallel", [False, True])
def test_sizes_of_an_environment_without_spaces_come_from_its_first_observation_and_action(parallel):
    env = Unspaced()
    with MetaSampler(env, Constant(), P, M, T, parallel=parallel) as sampler:
        assert (sampler.env.observation_space.shape, sampler.env.action_space.shape) == ((3,), ())
        batch = sampler.obtain_samples()
    for m, paths in batch.items():
        for path in paths:
            np.testing.assert_array_equal(path["actions"], np.full(T, m))
            np.testing.assert_array_equal(path["observations"][:, 0], m + 1 + m * np.arange(T))
    assert env.goal is None  # only copies were used
    with pytest.raises(TypeError, match="env.observation_space: expected a space with a shape, such as a gym.spaces.B"):
        normalize(env)
