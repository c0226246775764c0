"""Tests sampling on Ray: data independent of the number of workers, recovery of lost tasks, and process cleanup."""
import dataclasses
import functools
import importlib
import json
import os
import re
import resource
import signal
import sys
import time
import types

import cloudpickle
import numpy as np
import psutil
import pytest

import meta_policy_search as mps
from experiments import pro_mp
from meta_policy_search import EnvWorkerError, MetaPointEnvCorner, MetaSampler, RayOptions, logger, normalize, vary
from meta_policy_search.cli.main import main
from meta_policy_search.envs.mujoco_envs.half_cheetah_rand_direc import HalfCheetahRandDirecEnv
from meta_policy_search.samplers import ray_executor
from meta_policy_search.tf_compat import tf
from tests.helpers.processes import assert_gone, run_script, start_script
from tests.helpers.runs import assert_same, read_rows
from tests.helpers.sampling import M, P, Scripted, T, Wanderer, make_policy, sampler_of, two_iterations
from tests.helpers.trainers import build_trainer
from tests.meta_algos import test_rl2 as of_trials

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
pytestmark = [pytest.mark.ray, pytest.mark.thorough]
cloudpickle.register_pickle_by_value(sys.modules[__name__])

CPUS = 4
OPTIONS = {field.name for field in dataclasses.fields(RayOptions)}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A Ray cluster started by the user; all samplers of these tests use it and leave it running."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 256:
        pytest.skip("Ray needs more open files")
    try:
        ray.init(address="local", num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level="error",
                 object_store_memory=200 << 20)
    except OSError as error:
        pytest.skip(f"Ray cannot start: {error}")  # the path of the folder for temporary files is too long
    yield
    assert ray.is_initialized()
    ray.shutdown()


def ray_sampler_of(env, policy=None, **arguments):
    policy = make_policy(env) if policy is None else policy
    options = {name: arguments.pop(name) for name in OPTIONS if name in arguments}
    return MetaSampler(env, policy, **{"rollouts_per_meta_task": P, "meta_batch_size": M, "max_path_length": T,
                                       "parallel": RayOptions(**{"worker_timeout": 600.0, **options}), **arguments})


@pytest.mark.parametrize("make_env", [
    MetaPointEnvCorner, Wanderer, HalfCheetahRandDirecEnv, lambda: Scripted("info", tasks=(1, 2, 2, 1, 1)),
    pytest.param(lambda: normalize(Wanderer(), normalize_obs=True, normalize_reward=True), id="normalized Wanderer"),
    pytest.param(lambda: vary("Pendulum-v1", g=(5.0, 15.0), l=lambda rng: rng.uniform(0.5, 2.0)), id="varied Pendulum"),
])
@pytest.mark.thorough(but="MetaPointEnvCorner", ci=("Wanderer", "varied Pendulum"))
def test_data_equal_in_process_sampling_for_any_number_of_workers(make_env):
    policy = make_policy(make_env(), meta_batch_size=5)
    expected = two_iterations(sampler_of(make_env(), policy, meta_batch_size=5))
    for num_workers, envs_per_task in ((2, 3), (4, None)):
        sampler = ray_sampler_of(make_env(), policy, meta_batch_size=5, num_workers=num_workers,
                                 envs_per_task=envs_per_task)
        assert sampler.vec_env.num_workers == num_workers
        assert_same(two_iterations(sampler), expected)


def test_trials_equal_in_process_sampling():
    on_ray = of_trials.collect(of_trials.DISCRETE, parallel=RayOptions(num_workers=2))
    assert_same(on_ray, of_trials.collect(of_trials.DISCRETE))


def test_policy_without_a_vectorized_actor_raises():
    policy = types.SimpleNamespace(meta_batch_size=M, obs_dim=2, action_dim=2)
    with pytest.raises(TypeError, match="policy: expected a policy whose make_actor.* because Ray workers act"):
        ray_sampler_of(Wanderer(), policy).obtain_samples()


class Telling(Scripted):
    """Its infos describe the process."""

    def step(self, action):
        *answer, info = super().step(action)
        threads = [int(os.environ[name]) for name in ("OMP_NUM_THREADS", "META_POLICY_SEARCH_NUM_THREADS")]
        loaded = [name in sys.modules for name in ("tensorflow", "meta_policy_search.tf_compat", "numpy")]
        return (*answer, {**info, "pid": os.getpid(), "threads": np.array(threads), "loaded": np.array(loaded)})


def test_workers_do_not_load_tensorflow_and_use_one_thread():
    with ray_sampler_of(Telling(), num_workers=3) as sampler:
        infos = [paths[0]["env_infos"] for paths in sampler.obtain_samples().values()]
    for info in infos:
        assert os.getpid() not in info["pid"]
        assert info["loaded"].tolist() == [[False, False, True]] * T
        assert info["threads"].tolist() == [[1, 1]] * T


def test_samplers_close_independently():
    one, other = (ray_sampler_of(Telling(), num_workers=2) for _ in range(2))
    for sampler in (one, other):
        sampler.obtain_samples()
    executor = one.vec_env
    one.close()
    one.close()
    with pytest.raises(RuntimeError, match="RayExecutor is closed"):
        executor.collect(1, one.path_rng, one.make_actor())
    other.obtain_samples()
    other.close()
    assert ray.is_initialized()


def test_training_equals_in_process_training_and_logs_rllib_names():
    """With two adaptation steps, `adaptation_delta` is the mean return after the second minus before the first step."""
    rows = []
    for parallel in (False, "ray"):
        trainer = build_trainer(sizes=(M, P, T), seed=1, sampler_cls=functools.partial(MetaSampler, parallel=parallel),
                                num_inner_grad_steps=2)
        rows.append(trainer.train_itr())
        trainer.sampler.close()
    without, row = rows
    names = {f"episode_reward_{what}{suffix}" for what in ("max", "mean", "min")
             for suffix in ("", "_adapt_1", "_adapt_2")} | {"adaptation_delta"}
    assert set(row) - set(without) == names
    for key, value in without.items():
        if "Time" not in key:
            assert row[key] == value, key
    for step, suffix in enumerate(("", "_adapt_1", "_adapt_2")):
        for ours, theirs in (("AverageReturn", "mean"), ("MaxReturn", "max"), ("MinReturn", "min")):
            assert row[f"episode_reward_{theirs}{suffix}"] == pytest.approx(row[f"Step_{step}-{ours}"], rel=1e-12)
    assert row["adaptation_delta"] == pytest.approx(row["Step_2-AverageReturn"] - row["Step_0-AverageReturn"])


@pytest.mark.slow
def test_scripts_train_resume_and_evaluate_on_ray(tmp_path, monkeypatch):
    """Rows and evaluations with Ray equal those without, also after resuming with a different number of workers.

    A run whose cluster is gone can be loaded, and resumed without Ray.
    """
    def run(main, *arguments):
        logger.reset()
        with tf.Graph().as_default():
            assert main([str(argument) for argument in arguments]) == 0

    without, on_ray = tmp_path / "without", tmp_path / "on_ray"
    arguments = ("--smoke", "--env", "MetaPointEnv", "--snapshot_mode", "last", "--dump_path")
    run(pro_mp.main, *arguments, without, "--n_itr", 3)
    run(pro_mp.main, *arguments, on_ray, "--parallel", '{"num_workers": 2}')
    run(pro_mp.main, *arguments, on_ray, "--resume", "--n_itr", 3, "--parallel", '{"num_workers": 1}')
    expected, rows = read_rows(without), read_rows(on_ray)
    assert len(rows) == len(expected) == 3
    assert [{key: row[key] for key in expected[0]} for row in rows] == expected
    assert all("adaptation_delta" in row for row in rows)

    with monkeypatch.context() as patch:
        patch.setattr(ray_executor, "connect", lambda options: pytest.fail("there is no cluster"))
        loaded = mps.load_run(on_ray)
        assert len(loaded.adapt().returns) == 2
        loaded.resume(4, parallel=False)
    run(pro_mp.main, *arguments, without, "--resume", "--n_itr", 4)
    assert [{key: row[key] for key in expected[0]} for row in read_rows(on_ray)] == read_rows(without)

    sizes = ("--num_tasks", 3, "--num_steps", 1, "--reference", "random")
    run(main, "evaluate", on_ray, *sizes)
    run(main, "evaluate", without, *sizes, "--parallel", '{"num_workers": 3}')
    run(main, "evaluate", without, *sizes, "--output", tmp_path / "here")
    tables = [(folder / "returns.csv").read_text().replace(str(on_ray), str(without))
              for folder in (on_ray / "evaluation", without / "evaluation", tmp_path / "here")]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.parametrize("flags, error", [
    (["--parallel", '{"num_workers": "two"}'], "num_workers: expected an integer of at least 1, got 'two'"),
    (["--parallel", '{"workers": 2}'], "parallel: expected one of 'address', .*, got 'workers'; did you mean 'num_"),
    (["--no-parallel", "ray"], "unrecognized arguments: ray"),
])
def test_invalid_flags_are_reported_in_one_line(flags, error, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        pro_mp.main(["--smoke", "--env", "MetaPointEnv", "--dump_path", str(tmp_path / "run"), *flags])
    message = capsys.readouterr().err
    assert stop.value.code == 2 and message.count("\n") == 1 and re.search(error, message)


class Fatal(Scripted):
    """Kills its process at the second step of task 1 while the file contains remaining lives."""

    def __init__(self, lives, how=signal.SIGKILL):
        super().__init__(tasks=(0, 1, 2))
        self.lives, self.how = str(lives), how

    def step(self, action):
        if self.task == 1 and self.step_number == 1 and os.path.getsize(self.lives):
            with open(self.lives, "r+") as file:
                file.truncate(os.path.getsize(self.lives) - 1)
            os.kill(os.getpid(), self.how)
            time.sleep(60.0)
        return super().step(action)


def lives_left(path, count):
    path.write_text("*" * count)
    return path


@pytest.mark.representative
def test_tasks_of_a_killed_worker_are_resampled_with_equal_data(tmp_path):
    lives = lives_left(tmp_path / "lives", 0)
    policy = make_policy(Scripted())
    expected = two_iterations(sampler_of(Fatal(lives), policy))
    with ray_sampler_of(Fatal(lives), policy, num_workers=M) as sampler:
        batches = []
        for itr in range(2):
            sampler.update_tasks()
            for step in range(2):
                lives_left(lives, 2 if (itr, step) == (0, 1) else 0)
                batches.append(sampler.obtain_samples())
                assert os.path.getsize(lives) == 0
        assert sampler.total_timesteps_sampled == 4 * M * P * T
    assert_same(batches, expected)


def test_environment_that_always_ends_its_process_raises_after_limited_retries(tmp_path):
    lives = lives_left(tmp_path / "lives", 100)
    with ray_sampler_of(Fatal(lives), num_workers=2) as sampler:
        with pytest.raises(EnvWorkerError, match="3 Ray workers were lost while they sampled tasks 1 to 2: the "
                                                 "environment may end its process. WorkerCrashedError"):
            sampler.obtain_samples()
        lives_left(lives, 0)
        assert list(sampler.obtain_samples()) == list(range(M))  # the sampler remains usable


def test_error_in_an_environment_names_its_place():
    with ray_sampler_of(Scripted("exception"), num_workers=2) as sampler:
        for _ in range(2):  # the workers remain usable
            with pytest.raises(EnvWorkerError, match=(
                    r"(?s)^Ray worker \(tasks 1 to 2\): environment \d+ \(task 1: 2\) raised OSError in step: no such "
                    r"place \[while sampling task 1, path 0, step 2\]\n\nThe worker's traceback:\n.*no such place")):
                sampler.obtain_samples()


@pytest.mark.parametrize("arguments, error, message", [
    ({"cpus_per_worker": 5.0}, ValueError, "cpus_per_worker: expected at most 4, the number of CPUs of the cl.*got 5"),
    ({"address": 6379}, TypeError, "address: expected a string such as 'host:6379' or None, got 6379"),
    ({"address": "127.0.0.1:1"}, ValueError, r"address: expected .*\(the cluster this process is connected to\)"),
])
def test_options_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        ray_sampler_of(MetaPointEnvCorner(), **arguments).obtain_samples()


def test_address_may_be_repeated_as_it_was_given(monkeypatch):
    monkeypatch.setitem(ray_executor._joined, ray.get_runtime_context().gcs_address, "localhost:6379")
    with ray_sampler_of(MetaPointEnvCorner(), address="localhost:6379") as sampler:
        assert sampler.vec_env.num_workers == M


def test_workers_find_modules_of_later_folders(tmp_path, monkeypatch):
    """Workers that earlier samplers have used find the module; its name is also one of the standard library."""
    with ray_sampler_of(MetaPointEnvCorner()) as sampler:
        sampler.obtain_samples()
    (tmp_path / "this.py").write_text("from meta_policy_search import MetaPointEnvCorner\n\n\n"
                                      "class Mine(MetaPointEnvCorner):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with ray_sampler_of(importlib.import_module("this").Mine()) as sampler:
        assert len(sampler.obtain_samples()) == M
    monkeypatch.delitem(sys.modules, "this")


UNCONNECTED = """
    import sys
    from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
    from meta_policy_search.samplers.ray_executor import RayExecutor, RayOptions

    def attempt(**options):
        try:
            RayExecutor(MetaPointEnvCorner(), 3, 1, 5, RayOptions(**options))
        except Exception as error:
            print(f"{type(error).__name__}: {error}")

    for address in ("127.0.0.1:1", "http://host"):
        attempt(address=address)
    sys.modules["ray"] = None
    attempt()
"""


def test_missing_cluster_and_missing_ray_raise_immediately(tmp_path):
    lines = run_script(tmp_path, UNCONNECTED).splitlines()
    for line, address in zip(lines, ("127.0.0.1:1", "http://host")):
        assert line.startswith("ConnectionError: address: expected 'auto' or 'host:port' of a Ray cluster, got '"
                               f"{address}'")
    assert lines[2] == 'ImportError: sampling on Ray requires the package ray: run `pip install "ray>=2.40"`'


LOCAL = """
    import time
    import numpy as np
    from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
    from meta_policy_search.samplers import MetaSampler, RayOptions
    from tests.helpers.sampling import FixedPolicy

    class Env(MetaPointEnvCorner):
        slow = False

        def step(self, action):
            time.sleep(60.0 if self.slow else 0.0)
            return super().step(action)

    sampler = MetaSampler(Env(), FixedPolicy(2, 2), 3, 2, 5, parallel=RayOptions(num_workers=2, cpus_per_worker=0.5))
    print(len(sampler.obtain_samples()), flush=True)
    Env.slow = True
    slow = MetaSampler(Env(), FixedPolicy(2, 2), 3, 2, 5, parallel="ray")
    print("sampled", flush=True)
    if input() == "sample":
        slow.obtain_samples()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param("end", marks=pytest.mark.slow), "Ctrl-C"])
def test_ray_started_by_the_sampler_ends_with_the_script_silently(tmp_path, how):
    process = start_script(tmp_path, LOCAL)
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["2\n", "sampled\n"], process.stderr.read()
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) >= 3  # processes of Ray, and at least one worker
        process.stdin.write("end\n" if how == "end" else "sample\n")
        process.stdin.flush()
        if how == "Ctrl-C":
            time.sleep(0.5)  # wait until the step is running
            os.killpg(process.pid, signal.SIGINT)  # like a terminal: signals the whole group
        _, err = process.communicate(timeout=60)
        if how == "end":
            assert (err, process.returncode) == ("", 0)
        else:
            assert err.count("Traceback") == 1 and err.rstrip().endswith("KeyboardInterrupt")
        assert_gone(started, timeout=20)
    finally:
        process.kill()


INTERRUPTED = """
    import ipaddress, os, pathlib, signal, threading, time
    import numpy as np
    import psutil
    from meta_policy_search.samplers import RayOptions
    from tests.helpers.runs import assert_same
    from tests.helpers.sampling import FixedPolicy, MetaEnv, gym, sampler_of

    FOLDER = str(pathlib.Path(__file__).parent)

    class Env(MetaEnv):
        observation_space = action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)

        def sample_tasks(self, n_tasks):
            return [None] * n_tasks

        def set_task(self, task):
            pass

        def reset(self, *, seed=None, options=None):
            return self.np_random.normal(size=1), {}

        def step(self, action):
            if not os.path.exists(FOLDER + "/quick"):
                open(FOLDER + f"/busy {os.getpid()}", "w").close()
                time.sleep(300.0)
            return action, 1.0, False, False, {}

    def interrupt():  # once all workers are in a step
        while sum(name.startswith("busy") for name in os.listdir(FOLDER)) < sampler.vec_env.num_workers:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    sampler = sampler_of(Env(), FixedPolicy(), meta_batch_size=2, parallel=RayOptions())
    sampler.vec_env  # starts Ray
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = [port for process in family for port in process.net_connections("inet") if port.status == "LISTEN"]
    addresses = [ipaddress.ip_address(port.laddr.ip) for port in ports]
    assert addresses and all((getattr(ip, "ipv4_mapped", None) or ip).is_loopback for ip in addresses), addresses

    threading.Thread(target=interrupt).start()
    try:
        sampler.obtain_samples()
        raise AssertionError("not interrupted")
    except KeyboardInterrupt:
        open(FOLDER + "/quick", "w").close()
    started = time.monotonic()
    paths = sampler.obtain_samples()
    assert time.monotonic() - started < 50.0  # below the time that it waits for workers that are lost
    expected = sampler_of(Env(), FixedPolicy(), meta_batch_size=2).obtain_samples()
    assert_same(list(paths.values()), list(expected.values()))
    sampler.close()
    print("done")
"""


def test_ray_listens_only_locally_and_workers_restart_after_ctrl_c(tmp_path, monkeypatch):
    """Ctrl-C during a step of all workers leaves a sampler that continues on the Ray that it started."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert run_script(tmp_path, INTERRUPTED) == "done\n"


CLUSTER = """
    import functools, json, os, threading, time
    import ray
    from ray.cluster_utils import Cluster
    from meta_policy_search.envs.point_envs.point_env_2d_corner import MetaPointEnvCorner
    from meta_policy_search.samplers import MetaSampler, RayOptions
    from meta_policy_search.samplers.vectorized_env_executor import EnvWorkerError
    from meta_policy_search.tf_compat import tf
    from tests.helpers.trainers import build_trainer

    class Env(MetaPointEnvCorner):
        def step(self, action):
            if os.path.exists("slow"):
                time.sleep(0.05)
            return super().step(action)

    def train(cluster, nodes):
        with tf.Graph().as_default():
            parallel = False if cluster is None else RayOptions(cluster.address, worker_timeout=15.0)
            trainer = build_trainer(sizes=(4, 2, 10), n_itr=4, env=Env(), seed=1,
                                    sampler_cls=functools.partial(MetaSampler, parallel=parallel))
            rows = []
            for itr in range(3):
                if cluster is not None and itr == 1:
                    open("slow", "w").close()
                    threading.Timer(0.5, cluster.remove_node, [nodes[1]], {"allow_graceful": False}).start()
                rows.append(trainer.train_itr())
                if os.path.exists("slow"):
                    os.remove("slow")
            if cluster is not None:
                cluster.remove_node(nodes[0], allow_graceful=False)
                try:
                    for _ in range(100):  # workers end a little later than their machine
                        trainer.train_itr()
                except EnvWorkerError as error:
                    print(json.dumps(str(error)))
            trainer.sampler.close()
            if cluster is not None:
                ray.shutdown()
            return [{key: value for key, value in row.items() if "Time" not in key} for row in rows]

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    rows = train(cluster, nodes)
    cluster.shutdown()
    expected = train(None, None)
    print(json.dumps([{key: row[key] for key in other} == other for row, other in zip(rows, expected)]))
"""


@pytest.mark.slow
def test_training_survives_a_lost_machine_and_raises_without_machines(tmp_path):
    """If one of two machines is lost, rows equal those of one process; without machines, sampling raises."""
    os.chdir(tmp_path)
    out = run_script(tmp_path, CLUSTER, TF_CPP_MIN_LOG_LEVEL="3")
    error, same = [json.loads(line) for line in out.splitlines() if line[:1] in ("[", "\"")]
    assert same == [True, True, True]
    assert re.match(r"all Ray workers were lost and none could be restarted within 15 s \(worker_timeout\)", error)
