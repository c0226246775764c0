"""Tests evaluation from the command line and in notebooks, as documented, and invalid arguments."""
import functools
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import meta_policy_search as mps
from experiments import dice_maml, vpg_maml
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.main import main
from meta_policy_search.cli.train import INTERRUPTED
from meta_policy_search.envs import make_env, normalize
from meta_policy_search.evaluation import load_evaluator
from meta_policy_search.utils import seeding
from tests.helpers import commands
from tests.helpers.runs import read_csv

FLAGS = {"--env": "MetaPointEnv", "--normalization_scale": "1", "--inner_lr": "0.5"}
SMALL = ["--num_tasks", "3", "--num_steps", "2"]


mistake = functools.partial(commands.mistake, functools.partial(commands.run, "evaluate"))


def train(script, folder, *arguments):
    """Trains a short run; arguments replace those of `FLAGS`."""
    given = {flag: value for flag, value in FLAGS.items() if flag not in arguments}
    commands.train(script, folder, *(word for pair in given.items() for word in pair), *arguments)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with runs of `vpg_maml` and, in another environment, `dice_maml`; tests must not change it."""
    folder = tmp_path_factory.mktemp("runs")
    train(vpg_maml, folder / "vpg_maml", "--n_itr", 3, "--trainable_inner_step_size", "--snapshot_gap", 2,
          "--learning_rate", 0.01)
    train(dice_maml, folder / "dice_maml", "--env", "MetaPointEnvCorner")
    return folder


load_once = functools.lru_cache(load_evaluator)  # evaluation resets the default evaluators


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(mps, "load_evaluator", load_once)


def run(*arguments):
    assert main(["evaluate", *map(str, arguments)]) == 0


@pytest.mark.thorough
def test_run_is_compared_with_references(runs, tmp_path, capsys):
    run(runs / "vpg_maml", *SMALL, "--seeds", 1, 2, "--reference", "random", "--reference", runs / "dice_maml",
        "--output", tmp_path / "out")
    note, title, header, first, gains, *others, gain, files = capsys.readouterr().out.splitlines()
    assert note == f"{runs / 'dice_maml'} was trained in MetaPointEnvCorner and is evaluated in MetaPointEnv"
    table = [first, *(row for row in others if not row.startswith("    "))]  # without rows of tasks
    assert "6 tasks, 2 paths per task and step" in title and header.split()[-3:] == ["0", "1", "2"]
    names = [f"{runs / 'vpg_maml'}, iteration 2", "random initialization", f"{runs / 'dice_maml'}, iteration 1"]
    assert all(row.startswith(name) for row, name in zip(table, names, strict=True))
    (in_one_step,) = re.findall(r"[+-]\S+ \+- \S+", gains)[:1]
    assert gain == f"Adaptation changes the return by {in_one_step} in 1 step (trained for 1)"
    assert files == f"Files: {tmp_path / 'out'}"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "evaluation.json", "returns.csv", "adaptation_curve.png", "return_over_timesteps.png"}
    # all used the same tasks
    tasks = [each["tasks"] for each in json.loads((tmp_path / "out" / "evaluation.json").read_text())]
    assert tasks[0] == tasks[1] == tasks[2] and len(set(map(str, sum(tasks[0], [])))) == 6
    means = read_csv(tmp_path / "out" / "returns.csv")
    assert [row["policy"] for row in means] == [name for name in names for _ in range(3)]
    assert len({row["return"] for row in means}) == 9
    shown = [[float(number) for number in re.findall(r"(-?[\d.]+) \+-", row)] for row in table]
    np.testing.assert_allclose(np.ravel(shown), [float(row["return"]) for row in means], atol=0.0051)


@pytest.mark.parametrize("trained_steps, expected", [(1, 3), (5, 5)])
def test_adaptation_steps_are_at_least_those_of_training(trained_steps, expected, monkeypatch, tmp_path, capsys):
    def enough(tasks, num_steps, *arguments):
        raise ValueError(f"there were to be {num_steps} steps")

    evaluator = SimpleNamespace(rollouts_per_meta_task=2, max_path_length=5, env=None, parallel=False,
                                trained_steps=trained_steps, evaluate=enough)
    monkeypatch.setattr(mps, "load_evaluator", lambda *arguments, **others: evaluator)
    (tmp_path / "progress.csv").touch()
    assert f"there were to be {expected} steps" in mistake(capsys, tmp_path)


@pytest.mark.thorough
def test_requested_snapshot_is_evaluated(runs):
    def returns(folder, **arguments):
        return load_once(folder, **arguments).evaluate(tasks=2).returns

    first, last, initial = (returns(runs / "vpg_maml", snapshot=snapshot) for snapshot in (0, "last", None))
    assert len({values.tobytes() for values in (first, last, initial)}) == 3
    np.testing.assert_array_equal(returns(runs / "vpg_maml", snapshot=2), last)


def test_all_options(runs, tmp_path, capsys):
    (tmp_path / "tasks.json").write_text("[[0.1, 0.2], [0.3, -0.4]]")
    run(runs / "vpg_maml", "--snapshot", 0, "--tasks", tmp_path / "tasks.json", "--num_steps", 4, "--step_sizes",
        0.1, 0.05, "--rollouts", 3, "--max_path_length", 5, "--seeds", "7,8", "--output", tmp_path)
    (evaluation,) = json.loads((tmp_path / "evaluation.json").read_text())
    assert evaluation["tasks"] == [[[0.1, 0.2], [0.3, -0.4]]] * 2
    assert (evaluation["seeds"], evaluation["step_sizes"]) == ([7, 8], [0.1, 0.05, 0.05, 0.05])
    assert (evaluation["rollouts_per_meta_task"], evaluation["max_path_length"]) == (3, 5)
    assert evaluation["name"].endswith("iteration 0")
    assert "2 tasks, 6 paths per task" in capsys.readouterr().out


def test_reloaded_run_gives_equal_results_and_keeps_global_random_state(runs):
    state = seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist()
    again = load_evaluator(runs / "vpg_maml")
    assert (seeding.get_process_state()["seeding"], np.random.get_state()[1].tolist()) == state
    np.testing.assert_array_equal(again.evaluate(tasks=3, num_steps=2).returns,
                                  load_once(runs / "vpg_maml").evaluate(tasks=3, num_steps=2).returns)


@pytest.mark.parametrize("arguments, message", [
    (["--num_tasks", "3", "--tasks", "[1]"], "--tasks: expected once, got it 2 times"),
    (["--tasks", "{1"], r"--tasks.*: expected .*, a JSON list such as '\[\[0.5, 0.5\]\]' or a .json file .*, got '{1'"),
    (["--tasks", "gone.json"], "--tasks.*: could not read gone.json: No such file or directory"),
    (["--tasks", "3.0"], "--tasks.*: expected a positive number, a JSON list such as .*, got '3.0'"),
    (["--tasks", "-4"], "--tasks.*: expected a positive number, a JSON list such as .*, got '-4'"),
    (["--step_sizes", "a,1"], "argument --step_sizes: expected numbers such as 1 2 or 1,2, got 'a,1'"),
    (["--step_sizes"], "argument --step_sizes: expected at least one argument"),
    (["--snapshot", "first"], "argument --snapshot: expected an iteration, last or best, got 'first'"),
    (["--snapshot", "9"], "contains no snapshot of iteration 9; snapshots exist for iterations: 0, 2"),
    (["--tasks", "object.json"], "--tasks.*: expected a positive number, a JSON list such as .*, got 'object.json'"),
    (["--output", "object.json"], "--output: expected a folder, got object.json, which is a file"),
    (["--reference", "nowhere"],
     r"--reference \(random or a run\): expected a run folder or a folder that contains runs, got nowhere, which does"),
])
def test_invalid_flags_are_reported(arguments, message, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "object.json").write_text('{"a": 1}')
    output = [] if "--output" in arguments else ["--output", "out"]
    said = mistake(capsys, runs / "vpg_maml", *output, *arguments)
    assert re.search(f"^meta-policy-search evaluate: error: .*{message}", said)
    assert not (runs / "vpg_maml" / "evaluation").exists()
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_evaluation_is_overwritten_only_on_request(runs, tmp_path, capsys):
    (tmp_path / "evaluation.json").write_text("mine")
    message = mistake(capsys, runs / "vpg_maml", "--output", tmp_path)
    assert f"output: expected a file that does not exist, got {tmp_path}" in message and "--overwrite" in message
    assert (tmp_path / "evaluation.json").read_text() == "mine"
    run(runs / "vpg_maml", *SMALL, "--output", tmp_path, "--overwrite")
    assert len(json.loads((tmp_path / "evaluation.json").read_text())) == 1


def test_recorded_tasks_depend_only_on_the_seed():
    """Also for environments that draw tasks from the global random generator."""
    class GloballyRandom(mps.MetaPointEnv):
        def sample_tasks(self, n_tasks):
            return np.random.normal(size=(n_tasks, 2)).tolist()

    evaluator = SimpleNamespace(env=GloballyRandom(), record=lambda tasks, *arguments: tasks)
    first, again, other = (evaluate.record_paths(evaluator, SimpleNamespace(
        tasks=3, num_steps=1, step_sizes=None, seed=seed)) for seed in (1, 1, 2))
    assert len(first) == 3 and first == again and first != other


def test_policy_that_does_not_match_the_environment_is_reported(runs):
    with pytest.raises(ValueError, match=r"env: expected the action space of the run in .*normalization_scale"):
        load_evaluator(runs / "vpg_maml", env=normalize(make_env("MetaPointEnv"), normalization_scale=10.0))
    env = normalize(make_env("MetaPointEnvMomentum"), normalization_scale=1.0)
    evaluator = load_evaluator(runs / "vpg_maml", env=env)
    assert evaluator.env is env
    with pytest.raises(ValueError, match=r"policy.obs_dim: expected .*environment's space, got 2"):
        evaluator.evaluate()


def test_ctrl_c_ends_the_evaluation_cleanly(runs, tmp_path, monkeypatch):
    def interrupt(*arguments, **others):
        raise KeyboardInterrupt

    monkeypatch.setattr(mps, "load_evaluator", interrupt)
    assert main(["evaluate", str(runs / "vpg_maml"), "--output", str(tmp_path)]) == INTERRUPTED
