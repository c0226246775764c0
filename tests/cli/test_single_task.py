"""Tests the single-task experiments as a user runs them."""
import json
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

import meta_policy_search as mps
from meta_policy_search import NOP, load_snapshot, logger
from meta_policy_search.cli.main import main
from meta_policy_search.run import build_trainer
from tests.helpers.commands import mistake
from tests.helpers.runs import read_rows

ALGORITHMS = ("cem", "cma_es", "ddpg")
POINT = ("--env", "MetaPointEnv")
ROOT = Path(__file__).resolve().parent.parent.parent


def run(algorithm, *arguments):
    logger.reset()
    return main(["train", algorithm, *map(str, arguments)])


@pytest.mark.parametrize("name, env", [("cem", "CartPole-v1"), ("cma_es", "Pendulum-v1"), ("cem", "MetaPointEnv"),
                                       ("ddpg", "Pendulum-v1")])
def test_each_script_runs_to_its_end(name, env, tmp_path, capsys):
    assert run(name, "--smoke", "--env", env, "--dump_path", tmp_path / "run") == 0
    *lines, summary, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"{env}, seed 1: 2 iterations of (CEM|CMA-ES|DDPG), written to .+", lines[0])
    assert sum(line.startswith("epoch ") for line in lines) == 2
    assert last == f"Run folder: {tmp_path / 'run'}"
    assert re.fullmatch(r"Mean return of the final policy: -?[\d.]+, 95% interval .* \(20 paths\)", summary)
    assert {file.name for file in (tmp_path / "run").iterdir()} == {
        ".lock", "params.json", "progress.csv", "log.txt", "params.pkl", "itr_0.pkl", "learning_curve.png"}
    iterations = ["2", "4"] if name == "ddpg" else ["20", "40"]
    rows = read_rows(tmp_path / "run")
    assert [(row["Epoch"], row["Itr"]) for row in rows] == list(zip("01", iterations, strict=True))
    assert summary in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.parametrize("script", ["cem", "ddpg"])
@pytest.mark.thorough(but="cem")
def test_resumed_run_equals_uninterrupted_run(script, tmp_path):
    run(script, "--smoke", *POINT, "--n_itr", 4, "--dump_path", tmp_path / "whole")
    run(script, "--smoke", *POINT, "--n_itr", 2, "--dump_path", tmp_path / "parts")
    run(script, "--smoke", *POINT, "--n_itr", 4, "--dump_path", tmp_path / "parts", "--resume")
    assert read_rows(tmp_path / "parts") == read_rows(tmp_path / "whole") and len(read_rows(tmp_path / "parts")) == 4
    ours, theirs = (load_snapshot(tmp_path / folder)["policy"].get_flat_params() for folder in ("parts", "whole"))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.thorough(but="cem")
def test_policy_of_a_run_acts_and_cannot_be_adapted(name, tmp_path, capsys):
    run(name, "--smoke", *POINT, "--dump_path", tmp_path)
    loaded = mps.load_run(tmp_path)
    observation = np.zeros(2)
    action = loaded.act(observation, deterministic=True)
    expected = loaded.policy.act(observation, deterministic=True)
    if isinstance(loaded.env, mps.NormalizedEnv):  # DDPG
        expected = loaded.env.unscaled_actions(expected)
    np.testing.assert_allclose(action, np.clip(expected, loaded.env.action_space.low, loaded.env.action_space.high))
    loaded.policy.set_params({name: value + 100.0 for name, value in loaded.policy.get_param_values().items()})
    assert loaded.env.action_space.contains(np.asarray(loaded.act(observation)))
    assert loaded.env.action_space.shape == np.shape(action) and loaded.policy is loaded.trainer.algo.policy
    for method in (loaded.evaluate, loaded.adapt):
        with pytest.raises(TypeError, match="run: expected an algorithm that adapts to tasks, got (CEM|CMAES|DDPG), "):
            method()
    assert "which learns a single task" in mistake(main, capsys, "evaluate", tmp_path)


def test_summary_does_not_depend_on_the_seed_of_the_process(tmp_path):
    run("cem", "--smoke", "--env", "Pendulum-v1", "--dump_path", tmp_path)
    mps.set_seed(5)
    assert mps.load_run(tmp_path).summarize() in (tmp_path / "log.txt").read_text()


def test_parallel_sampling_is_an_option_of_a_resumed_run(tmp_path):
    run("cem", "--smoke", *POINT, "--dump_path", tmp_path)
    assert main(["resume", str(tmp_path), "--n_itr", "3", "--parallel"]) == 0
    params = json.loads((tmp_path / "params.json").read_text())
    assert params["options"]["parallel"] is True and params["settings"].keys().isdisjoint(params["options"])


class Idle(NOP):
    @classmethod
    def for_env(cls, env):
        return cls()


def test_algorithm_without_a_sampler_is_trained_and_resumed(tmp_path):
    mps.train("MetaPointEnv", Idle, 2, dump_path=tmp_path, batch_size=5)
    assert mps.load_run(tmp_path).resume(n_itr=4).trainer.itr == 4


class PendulumWithTasks(PendulumEnv):
    def sample_tasks(self, n_tasks):
        return list(np.random.uniform(5.0, 10.0, n_tasks))

    def set_task(self, task):
        self.g = task

    def get_task(self):
        return self.g


class WithoutGetTask(PendulumWithTasks):
    @property
    def get_task(self):
        raise AttributeError("get_task")


def test_environment_without_get_task_is_reported_in_one_line(capsys, tmp_path):
    with pytest.raises(SystemExit):
        run("cem", "--env", f"{__name__}:WithoutGetTask", "--dump_path", tmp_path / "run")
    assert capsys.readouterr().err == (
        "meta-policy-search train cem: error: WithoutGetTask does not implement get_task, which returns the task\n")


def test_task_of_a_wrapped_environment_is_set():
    env = gymnasium.wrappers.TimeLimit(PendulumWithTasks(), 5)
    assert 5.0 < build_trainer(env, "cem").env.unwrapped.g < 10.0


def test_settings_are_passed_to_the_algorithm():
    algo = build_trainer("MetaPointEnv", "cem", n_samples=10, best_frac=0.3, init_std=0.2, extra_std=0.0,
                         extra_decay_time=7.0, max_path_length=9, discount=0.5, hidden_sizes=(4,),
                         baseline="ZeroBaseline").algo
    assert (algo.n_samples, algo.n_best, algo.init_std, algo.extra_std, algo.extra_decay_time) == (10, 3, 0.2, 0, 7)
    assert (algo.max_path_length, algo.discount, algo.policy.hidden_sizes) == (9, 0.5, (4,))
    assert type(algo.baseline).__name__ == "ZeroBaseline"
    assert build_trainer("MetaPointEnv", "cma_es", sigma0=0.7).algo.sigma0 == 0.7


def test_settings_are_passed_to_ddpg():
    given = {"steps_per_epoch": 3, "rollout_batch_size": 2, "n_train_steps": 4, "buffer_batch_size": 5,
             "min_buffer_size": 6, "use_target": False, "target_update_tau": 0.3, "policy_lr": 0.01, "qf_lr": 0.02,
             "reward_scale": 3.0, "smooth_return": False, "max_path_length": 9, "discount": 0.5}
    algo = build_trainer("MetaPointEnv", "ddpg", noise="GaussianNoisePolicy", sigma=0.7, buffer_size=50,
                         hidden_sizes=(4,), **given).algo
    assert {name: getattr(algo, name) for name in given} == given
    assert type(algo.exploration_policy).__name__ == "GaussianNoisePolicy" and algo.exploration_policy.sigma == 0.7
    assert algo.replay_buffer.size_in_transitions == 50
    assert algo.qf.hidden_sizes == algo.policy.hidden_sizes == (4,)


def test_task_depends_on_the_seed():
    goals = [build_trainer("MetaPointEnv", "cem", seed=seed).env.get_task() for seed in (1, 1, 2)]
    np.testing.assert_array_equal(goals[0], goals[1])
    assert (goals[0] != goals[2]).any()


@pytest.mark.parametrize("arguments, message", [
    (["--env", "Nowhere-v0"], r"env: expected one of .*, got 'Nowhere-v0'"),
    (["--env", "FrozenLake-v1", "--env_kwargs", '{"map_name": "9x9"}'],
     "env: expected an environment that can be built, got FrozenLake-v1 with env_kwargs={'map_name': '9x9'}: KeyError"),
    (["--n_samples", "4"], "best_frac: expected at least 1 / n_samples = 0.25"),
])
def test_invalid_arguments_are_reported(arguments, message, tmp_path, capsys):
    assert re.search(message, mistake(main, capsys, "train", "cem", *arguments, "--dump_path", tmp_path))


@pytest.mark.thorough
def test_tensorflow_is_loaded_by_training_and_gymnasium_and_cma_on_demand(tmp_path):
    program = (
        "import sys\n"
        "from experiments import cem\n"
        "assert not {'tensorflow', 'gymnasium', 'cma', 'matplotlib'} & set(sys.modules)\n"
        "cem.main(['--smoke', '--env', 'MetaPointEnv', '--dump_path', 'run'])\n"
        "assert not {'gymnasium', 'cma'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
