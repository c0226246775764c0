"""Tests the executors: documented interface, equal data from all executors, faults, and process cleanup."""
import copy
import gc
import os
import re
import signal
import sys
import textwrap
import time

import cloudpickle
import numpy as np
import psutil
import pytest

from meta_policy_search import EnvWorkerError, MetaParallelEnvExecutor, MetaPointEnvCorner
from meta_policy_search.samplers.vectorized_env_executor.local import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.utils import seeding
from meta_policy_search.utils.gym_import import gym
from tests.helpers.processes import assert_gone, start_script, workers_of
from tests.helpers.sampling import BatchedWanderer, Wanderer

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # keeps workers from importing this file and pytest

M, E, T = 5, 3, 6  # tasks, environments per task, path length
N = M * E
EXECUTORS = {
    "iterative": MetaIterativeEnvExecutor,
    "batched": MetaBatchedEnvExecutor,
    "parallel": lambda *args: MetaParallelEnvExecutor(*args, num_processes=2),
}
LINE = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
PUSH = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)


class ClassicWalk:
    """A walk on a line with a random start, and the interface of gym before 0.26; not a gym class."""

    observation_space, action_space = LINE, PUSH

    def __init__(self):
        self.np_random = np.random.default_rng(0)

    def sample_tasks(self, n_tasks):
        return [float(task) for task in range(n_tasks)]

    def set_task(self, task):
        self.goal = task

    def reset(self):
        self.x, self.age = self.np_random.normal(), 0
        return np.array([self.x, self.age])

    def step(self, action):
        self.x, self.age = self.x + action[0], self.age + 1
        return np.array([self.x, self.age]), -abs(self.x - self.goal), False, {}


class Faulty(ClassicWalk):
    """Fails in the way that `how` names, in the second step of task 3."""

    def __init__(self, how, witness=None):
        super().__init__()
        self.how, self.witness = how, witness

    def step(self, action):
        answer = super().step(action)
        if self.goal == 3 and self.age == 2:
            if self.how == "raise":
                raise ZeroDivisionError("the wheel came off")
            if self.witness is not None and os.fork() == 0:  # the child keeps the pipe open
                time.sleep(15)
                open(self.witness, "w").close()
            if self.how == "exit":
                os._exit(7)
        return answer


class Telling(ClassicWalk):
    """Its infos describe the process and differ between environments."""

    def step(self, action):
        observation, reward, _, _ = super().step(action)
        task = int(self.goal)
        action[:] = 7.0  # modifies the executor's copy
        info = {
            "threads": [int(os.environ.get(name, 0)) for name in (
                "META_POLICY_SEARCH_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")],
            "tensorflow": any(name.split(".")[0] == "tensorflow" for name in sys.modules),
            "main": getattr(sys.modules["__main__"], "__file__", None),
            "name": f"task {task}",
            "ragged": {"of": np.zeros(1 + task % 2)},
            "pid": os.getpid(),
        }
        if task == 1:
            info.update(success=True, count=3, vector=np.arange(2.0), label="x")
        return observation, reward, False, info


def executor(kind, env, meta_batch_size=M, envs_per_task=E, max_path_length=T):
    return EXECUTORS[kind](env, meta_batch_size, envs_per_task, max_path_length)


def actions_of(env, n_steps, n=N):
    return np.random.default_rng(0).uniform(-0.3, 0.3, (n_steps, n, *env.action_space.shape))


def drive(ex, env, seed=3, n_steps=9):
    """Returns all outputs of an executor driven by hand as one list of plain values."""
    seeding.set_root(seed)
    with ex:
        ex.set_tasks(None)
        record = [np.array(ex.reset()).tolist()]
        for actions in actions_of(env, n_steps):
            observations, rewards, dones, infos = ex.step(list(actions))
            record.append((np.array(observations).tolist(), rewards, dones,
                           [{key: np.asarray(value).tolist() for key, value in info.items()} for info in infos]))
    return record


@pytest.mark.parametrize("kind", EXECUTORS)
def test_documented_interface(kind):
    # given two tasks with three environments each, and rewards that identify the task
    corners = [np.array([2.0, 2.0]), np.array([-2.0, 2.0])]
    with executor(kind, MetaPointEnvCorner(reward_type="dense"), 2, 3, 100) as ex:
        assert (ex.num_envs, ex.meta_batch_size, ex.envs_per_task, ex.max_path_length) == (6, 2, 3, 100)
        assert ex.set_tasks(corners) is None

        # when all environments are reset, then stepped with different actions
        before = ex.reset()
        assert isinstance(before, list) and len(before) == 6
        assert all(o.shape == (2,) and o.dtype == np.float64 and (np.abs(o) <= 0.2).all() for o in before)
        actions = [np.array([0.01 * e, -0.1]) for e in range(6)]
        answer = ex.step(actions)

    # then each list has six entries of the documented types, and e = task * envs_per_task + j
    assert [type(part) for part in answer] == [list] * 4 and [len(part) for part in answer] == [6] * 4
    observations, rewards, dones, infos = answer
    for e in range(6):
        np.testing.assert_array_equal(observations[e], before[e] + actions[e])
        assert rewards[e] == pytest.approx(-np.linalg.norm(observations[e] - corners[e // 3]))
        assert type(rewards[e]) is float and dones[e] is False and type(infos[e]) is dict


@pytest.mark.parametrize("kind", EXECUTORS)
def test_new_path_starts_after_the_maximum_path_length(kind):
    with executor(kind, MetaPointEnvCorner(), 2, 2, 3) as ex:
        ex.set_tasks(None)
        starts = [np.array(ex.reset())]
        for t in range(1, 8):
            observations, _, dones, _ = ex.step(np.full((4, 2), 0.2))
            assert dones == [t % 3 == 0] * 4
            if t % 3 == 0:
                assert (np.abs(observations) <= 0.2).all()  # observation of the new path: the old path is 0.6 ahead
                starts.append(np.array(observations))
    assert len(np.unique(np.concatenate(starts))) == 3 * 4 * 2  # all start states differ


@pytest.mark.parametrize("kind", EXECUTORS)
def test_new_path_starts_after_termination_without_affecting_other_environments(kind):
    with executor(kind, Wanderer(), max_path_length=99) as ex:
        ex.set_tasks(None)
        ex.reset()
        ages, patterns = np.zeros(N, int), set()
        for _ in range(12):
            _, _, dones, infos = ex.step(np.zeros((N, 2)))
            assert [info["age"] for info in infos] == (ages + 1).tolist()  # infos belong to the step itself
            ages = np.where(dones, 0, ages + 1)
            patterns.add(tuple(dones))
        assert any(any(dones) and not all(dones) for dones in patterns)


@pytest.mark.parametrize("env", [MetaPointEnvCorner(), Wanderer()], ids=lambda env: type(env).__name__)
@pytest.mark.thorough(but="Wanderer")
def test_all_executors_return_the_same_numbers(env):
    expected = drive(MetaBatchedEnvExecutor(env, M, E, T), env)
    assert drive(MetaIterativeEnvExecutor(env, M, E, T), env) == expected
    for num_processes in (1, 3):
        assert drive(MetaParallelEnvExecutor(env, M, E, T, num_processes), env) == expected
    assert drive(MetaBatchedEnvExecutor(env, M, E, T), env, seed=4) != expected


def test_infos_become_arrays_in_the_same_way_in_all_executors():
    answers = []
    for kind in ("iterative", "parallel"):
        with executor(kind, Telling(), 3, 1) as ex:
            ex.set_tasks([0, 1, 2])
            ex.reset()
            actions = np.zeros((3, 1))
            answers.append(ex.step_envs(actions, np.arange(3)).env_infos)
            assert not actions.any()
            own = ex.step(np.zeros((3, 1)))[3]
            assert "success" not in own[0] and own[1]["success"] is True  # dicts as returned by the environment

    for infos in answers:
        # numbers that all environments report become arrays of numbers; others are object arrays with None
        assert infos["tensorflow"].dtype == bool and infos["threads"].shape == (3, 3)
        np.testing.assert_array_equal(infos["success"], [None, True, None])
        np.testing.assert_array_equal(infos["count"], [None, 3, None])
        np.testing.assert_array_equal(infos["vector"], [[None, None], [0, 1], [None, None]])
        assert infos["label"].tolist() == [None, "x", None]
        assert infos["name"].tolist() == ["task 0", "task 1", "task 2"] and infos["name"].dtype == object
        assert infos["ragged"].dtype == object and [v["of"].shape for v in infos["ragged"]] == [(1,), (2,), (1,)]
    iterative, parallel = answers
    assert {key: v.dtype for key, v in iterative.items()} == {key: v.dtype for key, v in parallel.items()}

    # workers compute on one thread and load neither TensorFlow nor the main module
    assert parallel["threads"].tolist() == [[1, 1, 1]] * 3
    assert not parallel["tensorflow"].any() and parallel["main"].tolist() == [None] * 3
    assert len(set(parallel["pid"])) == 2 and os.getpid() not in parallel["pid"]
    assert set(iterative["pid"]) == {os.getpid()}


@pytest.mark.parametrize("kind", EXECUTORS)
def test_invalid_arguments_are_named_and_leave_the_executor_usable(kind):
    with executor(kind, Wanderer(), 2, 2) as ex:
        with pytest.raises(RuntimeError, match="reset"):
            ex.step(np.zeros((4, 2)))
        with pytest.raises(ValueError, match=r"tasks: expected meta_batch_size=2 .* got 3"):
            ex.set_tasks([1.0, 2.0, 3.0])
        ex.set_tasks([1.0, 2.0])
        ex.reset()
        with pytest.raises(ValueError, match=r"actions: expected shape \(4, 2\), got \(3, 2\)"):
            ex.step(np.zeros((3, 2)))
        with pytest.raises(ValueError, match=r"actions: expected shape \(4, 2\), got \(4, 1\)"):
            ex.step([np.zeros(1)] * 4)
        with pytest.raises(ValueError, match="inhomogeneous"):
            ex.step([np.zeros(1)] * 3 + [np.zeros(2)])
        with pytest.raises(ValueError, match=r"actions: expected finite .*nan.* environment 2 \(task 1: 2.0\)"):
            ex.step([[0.0, 0.0], [0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
        assert len(ex.step(np.zeros((4, 2)))[0]) == 4  # the executor continues unaffected
    for call in (lambda: ex.set_tasks(None), ex.reset, lambda: ex.step(np.zeros((4, 2)))):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    ex.close()  # a second close is allowed


@pytest.mark.parametrize("kind", EXECUTORS)
def test_invalid_constructor_arguments_are_named(kind):
    class NoSpace(Wanderer):
        def __init__(self):
            super().__init__()
            self.action_space = None

    for position, name in enumerate(("meta_batch_size", "envs_per_task", "max_path_length")):
        sizes = [2, 2, 2]
        sizes[position] = 0
        with pytest.raises(ValueError, match=name):
            EXECUTORS[kind](Wanderer(), *sizes)
        sizes[position] = 2.5
        with pytest.raises(TypeError, match=name):
            EXECUTORS[kind](Wanderer(), *sizes)
    with pytest.raises(TypeError, match="action_space"):
        executor(kind, NoSpace())


def test_num_processes():
    with pytest.raises(ValueError, match="num_processes"):
        MetaParallelEnvExecutor(Wanderer(), 2, 2, 2, num_processes=0)
    with MetaParallelEnvExecutor(Wanderer(), 2, 2, 2, num_processes=4) as ex:
        assert ex.num_processes == len(workers_of()) == 2  # at most one process per task


def test_batched_executor_requires_a_vectorized_environment():
    with pytest.raises(TypeError, match="make_batched.*ClassicWalk"):
        MetaBatchedEnvExecutor(ClassicWalk(), 2, 2, 2)


def step_twice(ex):
    ex.set_tasks(list(range(M)))
    ex.reset()
    ex.step(np.zeros((N, 1)))
    ex.step(np.zeros((N, 1)))


@pytest.mark.parametrize("kind", ["iterative", "parallel"])
def test_exception_in_an_environment_names_environment_and_task(kind):
    with executor(kind, Faulty("raise")) as ex:
        with pytest.raises(EnvWorkerError, match=r"environment 9 \(task 3: 3\) raised ZeroDivisionError in step: "
                                                 r"the wheel came off") as caught:
            step_twice(ex)
        assert caught.value.env_ids == [9]
        if kind == "iterative":
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
        else:
            message = str(caught.value)
            assert message.startswith("worker process 1 (tasks 2 to 4): ")
            assert re.search(r"Traceback(.*\n)*.*, in step\n( .*\n)*ZeroDivisionError: the wheel came off", message)
            assert not workers_of()
            with pytest.raises(RuntimeError, match="step: call reset"):
                ex.step(np.zeros((N, 1)))
            ex.reset()  # starts new workers
            assert len(workers_of()) == 2


@pytest.mark.parametrize("kind", EXECUTORS)
def test_task_refused_by_the_environment_raises_a_value_error(kind):
    with executor(kind, MetaPointEnvCorner()) as ex:
        with pytest.raises(ValueError, match=r"task.* 4.* raised ValueError in set_task.*expected .*nan"):
            ex.set_tasks([(2.0, 2.0)] * 4 + [(np.nan, 2.0)])


@pytest.mark.thorough
def test_environment_that_ends_its_process_raises(tmp_path):
    witness = tmp_path / "witness"  # the executor does not wait for a child that keeps its pipe open
    for env in (Faulty("exit"), Faulty("exit", witness=str(witness))):
        with executor("parallel", env) as ex:
            with pytest.raises(EnvWorkerError, match=r"worker process 1 \(tasks 2 to 4\) died with exit code 7"):
                step_twice(ex)
            assert not workers_of() and not witness.exists()


def test_environment_that_cannot_be_built_in_a_worker_raises():
    class Unloadable(ClassicWalk):
        def __reduce__(self):
            return os.listdir, ("/nowhere/at/all",)

    with pytest.raises(EnvWorkerError, match="(?s)FileNotFoundError.*The worker's traceback"):
        executor("parallel", Unloadable())
    assert not workers_of()


def test_environment_that_cannot_be_closed_warns():
    class OldEnv(MetaPointEnvCorner):
        def close(self):
            self.viewer.close()

    ex = MetaIterativeEnvExecutor(OldEnv(), 1, 2, 5)
    with pytest.warns(UserWarning, match="OldEnv.close raised AttributeError"):
        ex.close()


class ReadOnly(Wanderer):
    """Returns read-only arrays, as JAX does."""

    class batched_class(BatchedWanderer):
        def step(self, actions, env_ids=None):
            result = super().step(actions, env_ids)
            result.observations.flags.writeable = False
            return result


def test_next_path_starts_although_the_environment_returned_a_read_only_array():
    env = ReadOnly()
    with MetaBatchedEnvExecutor(env, 2, 1, 1) as ex, MetaBatchedEnvExecutor(Wanderer(), 2, 1, 1) as expected:
        for each in (ex, expected):
            seeding.set_root(1)
            each.set_tasks([0, 1])
            each.reset()
        for ours, theirs in zip(ex.step(np.zeros((2, 2)))[0], expected.step(np.zeros((2, 2)))[0], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_worker_processes_belong_to_one_executor_and_one_process(monkeypatch):
    """A copy would share their pipes, and so would a fork."""
    env = Wanderer()
    with EXECUTORS["parallel"](env, 2, 1, 3) as executor:
        executor.set_tasks(env.sample_tasks(2))
        first = executor.reset()
        with pytest.raises(TypeError, match="worker processes cannot be copied: use parallel=False"):
            copy.deepcopy(executor)
        gc.collect()
        with monkeypatch.context() as patch:
            patch.setattr(executor, "_owner", 1)
            with pytest.raises(RuntimeError, match="belong to process 1: a fork needs its own sampler"):
                executor.reset()
        assert len(first) == len(executor.reset()) == 2


def test_workers_end_on_close_and_on_garbage_collection():
    ex = executor("parallel", Wanderer())
    workers = workers_of()
    assert len(workers) == 2
    ex.close()
    assert not workers_of()

    ex = executor("parallel", Wanderer())
    assert len(workers_of()) == 2
    del ex
    gc.collect()
    assert not workers_of()


SCRIPT = """
    import functools, os, signal, sys, time
    import numpy as np
    from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
    from meta_policy_search.samplers.vectorized_env_executor import MetaParallelEnvExecutor
    from meta_policy_search.utils import seeding
    from tests.helpers.sampling import FixedPolicy
    import script_settings

    class Env(MetaPointEnvCorner):
        def step(self, action):
            if np.all(action == 1.0):
                time.sleep(script_settings.SECONDS)
            return super().step(action)

        def close(self):
            open(f"{script_settings.FOLDER}/closed {os.getpid()}", "w").close()

    print("started")
    executor = MetaParallelEnvExecutor(Env(), 3, 1, 1_000_000, num_processes=2)
    executor.set_tasks()
    executor.reset()
    executor.step(np.zeros((3, 2)))
    print("stepped", flush=True)
    input()
"""
COLLECT = """
executor.collect(1, functools.partial(seeding.rng_for, seeding.Stream.ROLLOUT, 0, 0, root=1),
                 FixedPolicy(3, 2).make_actor())
"""
ACTIVITIES = {"idle": "time.sleep(60)", "in a step": "executor.step(np.ones((3, 2)))", "collecting paths": COLLECT}


class Script:
    """A script that holds an executor with two workers, with a module in its folder."""

    def __init__(self, tmp_path, text):
        self.folder = tmp_path
        (tmp_path / "script_settings.py").write_text(f"SECONDS, FOLDER = 60, {str(tmp_path)!r}")
        self.popen = start_script(tmp_path, textwrap.dedent(SCRIPT) + textwrap.dedent(text))

    def __enter__(self):
        assert self.popen.stdout.readline() == "started\n", self.popen.stderr.read()
        assert self.popen.stdout.readline() == "stepped\n", self.popen.stderr.read()
        self.workers = workers_of(psutil.Process(self.popen.pid))
        assert len(self.workers) == 2
        return self

    def proceed(self):
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def closed(self):
        """Returns the ids of the processes that closed their environments."""
        return {int(name.split()[1]) for name in os.listdir(self.folder) if name.startswith("closed")}

    def __exit__(self, *exc_info):
        for process in (self.popen, *self.workers):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        self.popen.communicate()


def test_script_without_main_guard_runs_once_and_leaves_no_process(tmp_path):
    with Script(tmp_path, "print('done')") as script:
        script.proceed()
        out, err = script.popen.communicate(timeout=60)
        assert (out, err, script.popen.returncode) == ("done\n", "", 0)
        assert_gone(script.workers, timeout=0)


@pytest.mark.parametrize("doing", ACTIVITIES)
@pytest.mark.thorough(but="in a step")
def test_workers_end_when_the_parent_is_killed(tmp_path, doing):
    with Script(tmp_path, ACTIVITIES[doing]) as script:
        script.proceed()
        time.sleep(0.3)  # wait until the step is running
        os.kill(script.popen.pid, signal.SIGKILL)
        assert_gone(script.workers)
        if doing != "in a step":
            assert script.closed() == {worker.pid for worker in script.workers}


@pytest.mark.parametrize("doing", ACTIVITIES)
@pytest.mark.thorough(but="collecting paths")
def test_ctrl_c_ends_parent_and_workers(tmp_path, doing):
    """Workers close their environments, also while they collect paths, except in a step that never returns."""
    with Script(tmp_path, ACTIVITIES[doing]) as script:
        script.proceed()
        time.sleep(0.3)  # wait until the step is running
        os.killpg(script.popen.pid, signal.SIGINT)  # like a terminal: signals the whole group
        _, err = script.popen.communicate(timeout=60)
        assert err.count("Traceback") == 1 and err.rstrip().endswith("KeyboardInterrupt")  # signals only the parent
        assert_gone(script.workers, timeout=0)
        if doing != "in a step":
            assert script.closed() == {worker.pid for worker in script.workers}


@pytest.mark.thorough
def test_fork_of_the_parent_does_not_end_its_workers(tmp_path):
    with Script(tmp_path, """
        child = os.fork()
        if not child:
            executor.close()
            os._exit(0)
        os.waitpid(child, 0)
        executor.step(np.zeros((3, 2)))
        print("still there")
    """) as script:
        script.proceed()
        out, err = script.popen.communicate(timeout=60)
        assert (out, err) == ("still there\n", "")
