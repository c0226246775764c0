"""Tests the runner: epochs, samples, rows, snapshots, stopping and resuming."""
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search import EarlyStopping, EnvSpec, LocalRunner, SingleTaskSampler, logger, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaPointEnv
from meta_policy_search.np.algos import CEM, CMAES, NOP, RLAlgorithm
from meta_policy_search.np.policies import DeterministicMLPPolicy, GaussianMLPPolicy
from meta_policy_search.run_folder import read_params
from meta_policy_search.utils.snapshotter import SnapshotError, load_snapshot
from tests.helpers.runs import read_rows

T = 5  # path length; paths never end early


class Counting(RLAlgorithm):
    """Runs two iterations per epoch; its result is the sum of all rewards and of random numbers."""

    sampler_cls = SingleTaskSampler

    def __init__(self, epochs_until_failure=None):
        self.policy = GaussianMLPPolicy(2, 2, ())
        self.max_path_length = T
        self.learnt = 0.0
        self.fails_in = epochs_until_failure

    def train(self, runner):
        if runner.step_itr == 0:
            self.learnt = 0.0
        for epoch in runner.step_epochs():
            for _ in range(2):
                runner.step_path = runner.obtain_samples(runner.step_itr)
                self.learnt += sum(path["rewards"].sum() for path in runner.step_path) + np.random.random()
                runner.step_itr += 1
            if epoch == self.fails_in:
                raise OverflowError
            logger.logkv("Learnt", self.learnt)
        return self.learnt


class Workers(SingleTaskSampler):
    """Records when its workers are started and shut down."""

    def __init__(self, algo, env, **kwargs):
        super().__init__(algo, env, **kwargs)
        self.calls = []

    def start_worker(self):
        self.calls.append("start")
        super().start_worker()

    def shutdown_worker(self):
        self.calls.append("shutdown")
        super().shutdown_worker()


@pytest.fixture
def runner():
    runner = LocalRunner()
    runner.setup(Counting(), MetaPointEnv())
    return runner


# Epochs


def test_every_epoch_logs_a_row_and_calls_the_callback(runner, tmp_path):
    calls = []
    runner.callbacks = [lambda runner, row: calls.append((runner.epoch, row))]
    logger.configure(tmp_path, ["csv"], snapshot_mode="none")
    assert runner.train(2, T) == runner.algo.learnt < 0.0  # the result of the algorithm
    assert [number for number, _ in calls] == [0, 1]  # the number of the row
    rows = [row for _, row in calls]
    assert [row["Epoch"] for row in rows] == [0, 1] and [row["Itr"] for row in rows] == [2, 4]
    assert [row["n_timesteps"] for row in rows] == [2 * T, 4 * T]
    assert rows[1]["Learnt"] == runner.algo.learnt
    for row in rows:
        assert 0.0 < row["Time-Sampling"] <= row["EpochTime"] <= row["Time"]
    assert rows[1]["Time"] >= rows[0]["Time"] + rows[1]["EpochTime"]
    assert [row["Epoch"] for row in read_rows(tmp_path)] == ["0", "1"]


def test_callback_can_stop_training(runner, messages):
    runner.callbacks = [EarlyStopping("Itr", patience=2, higher_is_better=False)]
    runner.train(50, T)
    assert runner.epoch == 3
    assert any("by the callback EarlyStopping, which returned True, after epoch 2" in message for message in messages)


def test_train_restarts_and_resume_continues(runner):
    runner.train(2, T)
    runner.train(2, T)
    assert (runner.epoch, runner.total_timesteps_sampled) == (2, 4 * T)
    runner.resume(5)
    assert (runner.epoch, runner.step_itr, runner.total_timesteps_sampled) == (5, 10, 10 * T)
    learnt = runner.algo.learnt
    assert runner.resume() == learnt  # no epochs left
    runner.resume(6, batch_size=3 * T)
    assert runner.total_timesteps_sampled == 10 * T + 2 * 3 * T
    with pytest.raises(ValueError, match="n_epochs: expected at least 6 .completed epochs., got 2"):
        runner.resume(2)


def test_workers_are_shut_down_when_training_fails():
    runner = LocalRunner()
    runner.setup(Counting(epochs_until_failure=1), MetaPointEnv(), Workers)
    with pytest.raises(OverflowError):
        runner.train(3, T)
    assert runner.epoch == 1 and runner.sampler.calls[-1] == "shutdown"


# Samples


def test_samples_can_be_obtained_without_training(runner):
    paths = runner.obtain_samples(7, batch_size=3 * T)
    assert len(paths) == 3 and runner.total_timesteps_sampled == 3 * T
    # samples of this iteration
    runner.train(4, 3 * T)
    for path, expected in zip(runner.step_path, paths, strict=True):
        np.testing.assert_array_equal(path["actions"], expected["actions"])
    assert len(runner.obtain_samples(0)) == 3 and len(runner.obtain_samples(0, T)) == 1


# Snapshots and resuming


ALGORITHMS = {
    "counting": lambda env: Counting(),
    "cem": lambda env: CEM(EnvSpec.of(env), DeterministicMLPPolicy(2, 2, ()), LinearFeatureBaseline(), n_samples=4,
                           max_path_length=T, best_frac=0.5, extra_decay_time=3),
    "cma_es": lambda env: CMAES(EnvSpec.of(env), GaussianMLPPolicy(2, 2, ()), LinearFeatureBaseline(), n_samples=4,
                                max_path_length=T),
    "cem_tensorflow": lambda env: CEM(EnvSpec.of(env), mps.GaussianMLPPolicy(2, 2, hidden_sizes=()),
                                      LinearFeatureBaseline(), n_samples=4, max_path_length=T, best_frac=0.5),
}


def set_up(folder, name, seed=1, mode="all"):
    set_seed(seed)
    env = MetaPointEnv()
    env.set_task([0.2, -0.3])
    runner = LocalRunner(folder, snapshot_mode=mode)
    runner.setup(ALGORITHMS[name](env), env)
    return runner


@pytest.mark.parametrize("name", ALGORITHMS)
def test_resumed_run_equals_uninterrupted_run(name, tmp_path):
    # given an uninterrupted run of five epochs
    runner = set_up(tmp_path / "whole", name)
    whole = runner.train(5, 2 * T)
    logger.reset()
    # when a run of three epochs is stopped after two epochs and resumed
    set_up(tmp_path / "stopped", name).train(3, 2 * T)
    logger.reset()
    set_seed(77)
    np.random.random(10)
    resumed = LocalRunner(tmp_path / "stopped", snapshot_mode="all")
    resumed.restore(tmp_path / "stopped", 1)
    assert resumed.epoch == 2
    # then both results are equal, bit for bit
    assert resumed.resume(5) == whole
    assert read_rows(tmp_path / "stopped") == read_rows(tmp_path / "whole")
    np.testing.assert_array_equal(resumed.algo.policy.get_flat_params(), runner.algo.policy.get_flat_params())
    assert (resumed.step_itr, resumed.total_timesteps_sampled) == (runner.step_itr, runner.total_timesteps_sampled)
    np.testing.assert_array_equal(resumed.env.get_task(), [0.2, -0.3])


class Forwarding:
    """Has the methods of an environment, but not `get_task`."""

    def __init__(self):
        env = MetaPointEnv()
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.sample_tasks, self.set_task, self.reset, self.step = env.sample_tasks, env.set_task, env.reset, env.step


@pytest.mark.parametrize("base", [MetaPointEnv, Forwarding])
def test_environment_without_get_task_is_refused_with_the_name_of_the_method(base):
    class WithoutTask(base):
        if base is MetaPointEnv:
            get_task = mps.MetaEnv.get_task

    runner = LocalRunner()
    runner.setup(Counting(), WithoutTask())
    with pytest.raises(NotImplementedError, match="^WithoutTask does not implement get_task, which returns the task$"):
        runner.train(1, T)


def test_restoring_the_first_the_last_or_a_given_epoch(tmp_path):
    set_up(tmp_path, "counting", mode="gap").train(4, T)
    for from_epoch, done in (("first", 1), ("last", 4), (2, 3)):
        runner = LocalRunner()
        runner.restore(tmp_path, from_epoch)
        assert (runner.epoch, runner.step_itr) == (done, 2 * done)
    with pytest.raises(SnapshotError, match="no snapshot of iteration 9; snapshots exist for .*: 0, 1, 2, 3"):
        LocalRunner().restore(tmp_path, 9)


def test_run_can_be_resumed_in_another_folder(tmp_path):
    set_up(tmp_path / "first", "counting").train(3, T)
    logger.reset()
    runner = LocalRunner(tmp_path / "second")
    runner.restore(tmp_path / "first", 1)
    runner.resume(4)
    assert [row["Epoch"] for row in read_rows(tmp_path / "second")] == ["2", "3"]
    assert [row["Epoch"] for row in read_rows(tmp_path / "first")] == ["0", "1", "2"]


def test_run_continues_in_its_folder_after_other_runs(tmp_path, monkeypatch):
    """Another run, or `logger.reset`, changes the outputs of the process; the folder has several spellings."""
    monkeypatch.chdir(tmp_path)
    first, second = set_up("first", "cem"), set_up("second", "cem", seed=2)
    first.train(1, T)
    second.train(1, T)
    first.resume(2)
    logger.reset()
    other = LocalRunner("first")
    other.restore("first")
    other.resume(3)
    second.resume(1)
    with pytest.raises(ValueError, match="another runner changed the snapshots: call restore"):
        first.resume(3)
    first.restore("first")
    first.resume(4)
    assert [row["Epoch"] for row in read_rows(tmp_path / "first")] == ["0", "1", "2", "3"]
    assert [row["Epoch"] for row in read_rows(tmp_path / "second")] == ["0"]
    assert load_snapshot("first")["itr"] == 3 and load_snapshot("second")["itr"] == 0
    runner = LocalRunner("second")
    runner.restore("./second")
    monkeypatch.chdir(tmp_path / "first")
    runner.resume(2)
    assert len(read_rows(tmp_path / "second")) == 2


def test_snapshot_holds_the_documented_entries(tmp_path):
    runner = set_up(tmp_path, "cem")
    runner.train(2, 2 * T, store_paths=True)
    snapshot = load_snapshot(tmp_path)
    assert {"itr", "policy", "env", "baseline", "algo", "paths", "state"} == snapshot.keys()
    assert snapshot["itr"] == 1 and snapshot["policy"] is snapshot["algo"].policy
    np.testing.assert_array_equal(snapshot["policy"].get_flat_params(), runner.algo.policy.get_flat_params())
    assert len(snapshot["paths"]) == 4 * 2
    np.testing.assert_array_equal(snapshot["paths"][3]["rewards"], runner.step_path[3]["rewards"])


def test_paths_are_stored_on_request_and_the_plan_is_kept(tmp_path):
    set_up(tmp_path / "a", "counting").train(1, T)
    assert load_snapshot(tmp_path / "a")["paths"] is None
    logger.reset()
    set_up(tmp_path / "b", "counting").train(1, 2 * T, store_paths=True)
    runner = LocalRunner(tmp_path / "b")
    runner.restore(tmp_path / "b")
    assert len(runner.step_path) == 2
    runner.resume(2)
    assert runner.total_timesteps_sampled == 8 * T and len(load_snapshot(tmp_path / "b")["paths"]) == 2
    runner.resume(3, store_paths=False)
    assert load_snapshot(tmp_path / "b")["paths"] is None


def test_logger_of_the_caller_is_used_without_a_folder(runner, tmp_path):
    logger.configure(tmp_path, ["csv"])
    runner.train(2, T)
    assert len(read_rows(tmp_path)) == 2 and load_snapshot(tmp_path)["itr"] == 1
    assert runner.save(5) == str(tmp_path / "params.pkl") and load_snapshot(tmp_path)["itr"] == 5


def test_each_call_is_recorded(tmp_path):
    """An error ends training; it is continued in the same process, later with more epochs."""
    algo, runner = Counting(epochs_until_failure=1), LocalRunner(tmp_path)
    runner.setup(algo, MetaPointEnv())
    with pytest.raises(OverflowError):
        runner.train(2, T)
    assert read_params(tmp_path)["error"] == "OverflowError"
    algo.fails_in = None
    for n_epochs in (2, 4):
        runner.resume(n_epochs)
        params = read_params(tmp_path)
        assert params["error"] is None and params["settings"]["n_itr"] == n_epochs


def test_refused_training_does_not_change_the_run(tmp_path):
    runner = LocalRunner(tmp_path)
    runner.setup(Counting(), MetaPointEnv())
    runner.train(1, T)
    for n_epochs in (2, 3):
        with pytest.raises(ValueError, match="already contains a run"):
            runner.train(1, T)
        runner.resume(n_epochs)
        runner.restore(tmp_path)
    assert len(read_rows(tmp_path)) == 3


def test_refused_environment_is_not_assigned(runner):
    env = runner.env
    with pytest.raises(ValueError, match="expected a policy for the action space Discrete"):
        runner.env = MetaBernoulliBanditEnv()
    assert runner.env is env


# The NOP algorithm


def test_nop_without_a_policy_runs_epochs(tmp_path):
    runner = LocalRunner(tmp_path)
    runner.setup(NOP(), MetaPointEnv())
    assert runner.sampler is None
    assert runner.train(3) is None
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["1", "2", "3"]
    assert NOP().init_opt() is None and NOP().optimize_policy([]) is None


# Invalid use


def test_calls_in_the_wrong_order_raise(runner):
    for call in ("train", "obtain_samples", "save"):
        with pytest.raises(RuntimeError, match=r"call setup\(\) first"):
            getattr(LocalRunner(), call)(1)
    for new in (LocalRunner(), runner):
        with pytest.raises(RuntimeError, match=r"resume: .*call restore\(\) or train\(\) first"):
            new.resume(3)
    with pytest.raises(RuntimeError, match="step_epochs: expected to be called by an algorithm"):
        next(runner.step_epochs())
    without_sampler = LocalRunner()
    without_sampler.setup(NOP(), MetaPointEnv())
    with pytest.raises(RuntimeError, match="obtain_samples: NOP has no sampler; pass a sampler_cls to setup"):
        without_sampler.obtain_samples(0, 1)


@pytest.mark.parametrize("call, error, message", [
    (lambda runner: runner.train(0, T), ValueError, "n_epochs: expected an integer of at least 1, got 0"),
    (lambda runner: runner.train(1, 0), ValueError, "batch_size: expected an integer of at least 1, got 0"),
    (lambda runner: runner.train(1, T, store_paths=1), TypeError, "store_paths: expected True or False, got 1"),
    (lambda runner: runner.train(1), ValueError, "batch_size: expected an integer .* here or in train"),
    (lambda runner: runner.setup(None, MetaPointEnv()), TypeError, "algo: expected an RLAlgorithm, got None"),
    (lambda runner: runner.restore(".", "latest"), ValueError, "from_epoch: expected one of 'last', 'first'"),
    (lambda runner: runner.restore("missing", "first"), SnapshotError, "expected a run folder, got"),
    (lambda runner: LocalRunner(snapshot_mode="best"), ValueError, "snapshot_mode: expected one of 'all'"),
])
def test_arguments_are_checked(runner, call, error, message):
    with pytest.raises(error, match=message):
        call(runner)
