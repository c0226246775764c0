"""Iterations are atomic: parameters, optimizer, counters, row and snapshot."""
import contextlib
import csv
from signal import SIGINT, raise_signal

import numpy as np
import pytest

from meta_policy_search.algos import DDPG
from meta_policy_search.baselines import GaussianMLPBaseline, LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.meta_algos import VPGMAML
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.np.algos import CEM, CMAES
from meta_policy_search.np.exploration_policies import GaussianNoisePolicy
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.np.q_functions import MLPQFunction
from meta_policy_search.np.replay_buffer import ReplayBuffer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler, Sampler
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import SnapshotError, load_snapshot
from meta_policy_search.utils.statistics import task_timesteps
from meta_policy_search.utils.utils import set_seed

N = 6  # candidates


@pytest.fixture(scope="module")
def built():
    """Returns a small trainer and a snapshot of its start."""
    with tf.Graph().as_default():
        trainer = build_trainer(seed=1)
        return trainer, trainer.get_itr_snapshot(-1)


def build_trainer(seed, baseline=None):
    set_seed(seed)
    env = MetaPointEnvCorner(reward_type="dense")
    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=())
    return Trainer(VPGMAML(policy, meta_batch_size=2), env, MetaSampler(env, policy, 2, 2, 4),
                   MetaSampleProcessor(baseline or LinearFeatureBaseline()), policy, 3)


@pytest.fixture
def trainer(built, tmp_path):
    trainer, start = built
    trainer.restore(start)
    logger.configure(tmp_path, ["csv"])
    return trainer


@pytest.fixture
def messages(monkeypatch):
    said = []
    monkeypatch.setattr(logger, "log", lambda *args, **kwargs: said.append(" ".join(map(str, args))))
    return said


def pressing(function, at):
    """Returns the function with Ctrl-C before its call number `at`, or after that call if `at` is negative."""
    calls = []

    def call(*args, **kwargs):
        calls.append(None)
        if at > 0 and len(calls) == at:
            raise_signal(SIGINT)
        answer = function(*args, **kwargs)
        if at < 0 and len(calls) == -at:
            raise_signal(SIGINT)
        return answer

    return call


def read_rows(folder):
    with open(folder / "progress.csv", newline="") as file:
        return [{key: value for key, value in row.items() if "Time" not in key} for row in csv.DictReader(file)]


def everything(trainer, folder):
    state = trainer.get_itr_snapshot(trainer.itr - 1)["state"]
    state["sampler"] = state["sampler"]["num_steps"]
    return read_rows(folder), repr({key: value for key, value in state.items() if key not in ("time", "outputs")})


# A trainer


@pytest.mark.parametrize("owner, method", [
    ("algo", "adapt"), ("algo", "optimize_policy"), ("policy", "switch_to_pre_update"), ("sampler", "obtain_samples"),
])
@pytest.mark.parametrize("at", [2, -2])
def test_interrupted_iteration_is_performed_once(owner, method, at, trainer, tmp_path, monkeypatch, messages):
    trainer.train()
    whole = everything(trainer, tmp_path)
    trainer.restore(load_start(trainer, tmp_path))
    part = getattr(trainer, owner)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(part, method, pressing(getattr(part, method), at))
        trainer.train()
    (said,) = messages
    assert f"Interrupted in iteration {trainer.itr}, which was rolled back" in said
    assert len(read_rows(tmp_path)) == trainer.itr
    trainer.train()
    assert trainer.itr == 3 and everything(trainer, tmp_path) == whole


def test_learned_baseline_is_rolled_back_to_the_untrained_one(tmp_path, monkeypatch):
    params = []
    for at in (100, 1):  # never, and in iteration 0
        with tf.Graph().as_default(), logger.scoped_configure(tmp_path / str(at), ["csv"]):
            trainer = build_trainer(1, GaussianMLPBaseline((4,)))
            with monkeypatch.context() as patch:
                patch.setattr(trainer.algo, "optimize_policy", pressing(trainer.algo.optimize_policy, at))
                with contextlib.suppress(KeyboardInterrupt):
                    trainer.train()
            if trainer.itr < 3:
                trainer.train()
            params.append(trainer.policy.get_flat_params())
    np.testing.assert_array_equal(*params)


def load_start(trainer, folder):
    """Restores the start state in the same folder."""
    logger.configure(folder, ["csv"], overwrite=True)
    return trainer.start


@pytest.fixture(autouse=True)
def _start(built):
    built[0].start = built[1]


@pytest.mark.parametrize("method", ["dumpkvs", "save_itr_params"])
@pytest.mark.parametrize("at", [2, -2])
def test_iteration_interrupted_while_writing_its_row_is_completed(method, at, trainer, tmp_path, monkeypatch, messages):
    """After Ctrl-C during row or snapshot, both are written, and the message reports a completed iteration."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(logger, method, pressing(getattr(logger, method), at))
        trainer.train()
    assert messages == ["Interrupted in iteration 2, which was rolled back; earlier iterations are complete. The last "
                        f"snapshot in {tmp_path} is from iteration 1"]
    assert trainer.itr == len(read_rows(tmp_path)) == 2 and load_snapshot(tmp_path)["itr"] == 1
    trainer.train()
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1", "2"]


def test_failed_iteration_is_rolled_back(trainer, monkeypatch, tmp_path):
    trainer.train_itr()
    before = everything(trainer, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(trainer.policy, "log_diagnostics", lambda *args: 1 / 0)
        for train in (trainer.train, trainer.train_itr):
            with pytest.raises(ZeroDivisionError):
                train()
    assert everything(trainer, tmp_path) == before and logger.getkvs() == {}


def test_iteration_without_a_snapshot_is_counted(trainer, monkeypatch, tmp_path):
    """If a snapshot cannot be written, its row is kept, and training continues with the next iteration."""
    with monkeypatch.context() as patch, pytest.raises(SnapshotError):
        patch.setattr(trainer.env, "cannot_be_pickled", (i for i in ()), raising=False)
        trainer.train()
    assert trainer.itr == len(read_rows(tmp_path)) == 1
    trainer.train()
    assert [row["Itr"] for row in read_rows(tmp_path)] == ["0", "1", "2"]


class OwnSampler(Sampler):
    """Counts steps and forwards all calls to another sampler."""

    def __init__(self, inner):
        super().__init__(inner.env, inner.policy, inner.batch_size, inner.max_path_length)
        self._inner, self.total_timesteps_sampled = inner, 0

    def update_tasks(self):
        self._inner.update_tasks()

    def obtain_samples(self, **arguments):
        paths = self._inner.obtain_samples(**arguments)
        self.total_timesteps_sampled += int(task_timesteps(paths).sum())
        return paths


class SamplerWithoutBase:
    """Has only the methods and attributes that a trainer needs."""

    def __init__(self, inner):
        self._inner, self.total_timesteps_sampled = inner, 0

    update_tasks, obtain_samples = OwnSampler.update_tasks, OwnSampler.obtain_samples


@pytest.mark.parametrize("sampler_class", [OwnSampler, SamplerWithoutBase])
def test_interrupted_calls_of_a_custom_sampler_are_not_counted(sampler_class, trainer, monkeypatch, tmp_path):
    trainer = Trainer(trainer.algo, trainer.env, sampler_class(trainer.sampler), trainer.sample_processor,
                      trainer.policy, 3)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer.algo, "optimize_policy", pressing(trainer.algo.optimize_policy, 2))
        trainer.train()
    trainer.train()
    rows = read_rows(tmp_path)
    assert [int(row["n_timesteps"]) for row in rows] == [32, 64, 96]
    assert trainer.get_itr_snapshot(2)["state"]["sampler"] == {"num_steps": 96}


# A search


def build_search(cls):
    set_seed(3)
    env = MetaPointEnvCorner(reward_type="dense")
    arguments = {"best_frac": 0.5} if cls is CEM else {}
    policy = DeterministicMLPPolicy(2, 2, ())
    algo = cls(EnvSpec.of(env), policy, LinearFeatureBaseline(), N, max_path_length=4, **arguments)
    runner = LocalRunner()
    runner.setup(algo, env)
    return runner, algo


@pytest.mark.parametrize("at", [1, 4, -N, N + 1, -(N + 2), 2 * N, -2 * N, -3 * N])
@pytest.mark.parametrize("cls", [CEM, CMAES])
def test_returns_are_assigned_to_the_candidates_that_acted(cls, at, monkeypatch):
    """After Ctrl-C before or after the return of a candidate is stored, the resumed run equals an uninterrupted run."""
    whole, search = build_search(cls)
    average = whole.train(3, 8)
    runner, other = build_search(cls)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(other), "train_once", pressing(type(other).train_once, at))
        runner.train(3, 8)
    # the epoch is rolled back, and the policy has its initial parameters
    assert runner.step_itr == N * runner.epoch and runner.total_timesteps_sampled % N == 0
    np.testing.assert_array_equal(other.policy.get_flat_params(), other.cur_mean.astype(np.float32))
    assert runner.resume() == average
    assert (runner.step_itr, runner.total_timesteps_sampled) == (whole.step_itr, whole.total_timesteps_sampled)
    for name in ("cur_mean", "candidates", "best_return"):
        np.testing.assert_array_equal(getattr(other, name), getattr(search, name))
    np.testing.assert_array_equal(other.policy.get_flat_params(), search.policy.get_flat_params())


# An algorithm with a replay buffer


def build_ddpg(size):
    set_seed(3)
    env = MetaPointEnvCorner(reward_type="dense")
    spec, policy = EnvSpec.of(env), DeterministicMLPPolicy(2, 2, (4,))
    algo = DDPG(spec, policy, MLPQFunction(2, 2, (4,)), ReplayBuffer(spec, size), min_buffer_size=10, n_train_steps=2,
                exploration_policy=GaussianNoisePolicy(spec, policy), steps_per_epoch=2, max_path_length=4,
                num_eval_paths=1)
    runner = LocalRunner()
    runner.setup(algo, env)
    return runner, algo


def test_algorithm_that_cannot_be_rolled_back_is_reported(monkeypatch, messages):
    runner, algo = build_ddpg(10)
    monkeypatch.setattr(algo.replay_buffer, "add_paths", pressing(algo.replay_buffer.add_paths, 1))
    with pytest.raises(KeyboardInterrupt):
        runner.train(1, 8)
    assert "which cannot be rolled back: resume" in messages[-1]
