"""Tests training scripts as a user runs them: settings, run folders, resuming, invalid arguments and Ctrl-C."""
import contextlib
import csv
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import dice_maml, e_maml, maml_trpo, pro_mp, vpg_maml
from meta_policy_search import __version__
from meta_policy_search.cli import record, training
from meta_policy_search.cli.algorithms import build_trainer
from meta_policy_search.cli.settings import SMOKE, arguments_for, make_config
from meta_policy_search.plotting import plot_learning_curve
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import load_snapshot

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = {"pro_mp": pro_mp, "maml_trpo": maml_trpo, "e_maml": e_maml, "vpg_maml": vpg_maml, "dice_maml": dice_maml}
POINT = ("--env", "MetaPointEnv")


def start(*command, cwd, **variables):
    """Starts a process in a separate process group, with the package on its path."""
    return subprocess.Popen(
        [sys.executable, *map(str, command)], cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )


def run(script, *arguments):
    """Runs a script in this process in a separate graph; returns the exit status."""
    from meta_policy_search.tf_compat import tf

    logger.reset()
    with tf.Graph().as_default() as graph:
        status = script.main([str(argument) for argument in arguments])
    for session in graph.get_collection("meta_policy_search/session"):
        session.close()
    return status


def mistake(capsys, script, *arguments):
    """Returns the error message of a script: one line, with exit status 2."""
    with pytest.raises(SystemExit) as stop:
        run(script, *arguments)
    output = capsys.readouterr()
    assert stop.value.code == 2
    assert output.err.count("\n") == 1 and output.out == ""
    return output.err


def config_of(script, *arguments, monkeypatch, capsys):
    """Returns the settings of a command line without training."""
    configs = []

    def build(config):
        configs.append(config)
        raise ValueError("this is all that was asked for")

    monkeypatch.setattr(training, "build_trainer", build)
    assert "this is all" in mistake(capsys, script, *arguments)
    return configs[0]


def rows(folder):
    """Returns the rows of `progress.csv` as text, without times."""
    with open(Path(folder, "progress.csv"), newline="") as file:
        return [{key: value for key, value in row.items() if "Time" not in key} for row in csv.DictReader(file)]


def contents(folder):
    """Returns the files of a folder by name, without the lock file, which lock checks may create."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != ".lock"}


def params(folder):
    return json.loads(Path(folder, "params.json").read_text())


def write_json(path, content):
    path.write_text(json.dumps(content))
    return path


class Finished:
    """A run of 12 iterations: flags, folder (tests must not change it), output, and times of its figures."""

    def __init__(self, folder, monkeypatch):
        config_file = write_json(folder / "settings.json", {"env": "MetaPointEnvCorner", "plot_gap": 5,
                                                            "env_kwargs": {"reward_type": "dense"}, "inner_lr": 1})
        self.folder = folder / "run"
        self.flags = ["--smoke", "--config_file", str(config_file), "--meta_batch_size", "3"]
        self.drawn_after = []

        def draw(run_folder):
            self.drawn_after.append(len(rows(run_folder)))
            return plot_learning_curve(run_folder)

        monkeypatch.setattr(training, "plot_learning_curve", draw)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert run(pro_mp, *self.flags, "--n_itr", 12, "--dump_path", self.folder) == 0
        self.output = output.getvalue()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        return Finished(tmp_path_factory.mktemp("finished"), monkeypatch)


@pytest.fixture
def finished_copy(finished, tmp_path):
    return shutil.copytree(finished.folder, tmp_path / "copy")


# Runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scripts_at_work(tmp_path_factory):
    """Starts each script in separate processes: as a file and as a module."""
    folder = tmp_path_factory.mktemp("scripts")
    processes = {}
    for name in SCRIPTS:
        command = ["-m", f"experiments.{name}"] if name == "vpg_maml" else [ROOT / "experiments" / f"{name}.py"]
        arguments = [] if name == "pro_mp" else POINT
        processes[name] = start(*command, *arguments, cwd=folder, SMOKE="1")
    yield folder, processes
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.thorough
def test_each_script_runs_to_its_end(scripts_at_work, name):
    """With SMOKE=1 and no folder, the last lines name a new folder with all files and the gain."""
    parent, processes = scripts_at_work
    out, err = processes[name].communicate(timeout=120)
    assert (processes[name].returncode, err) == (0, "")
    env = "HalfCheetahRandDirecEnv" if name == "pro_mp" else "MetaPointEnv"
    algorithm = SCRIPTS[name].Config.algorithm
    (folder,) = (parent / "data" / algorithm / env).iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_seed1", folder.name)
    *lines, gain, last = out.splitlines()
    assert sum(line.startswith("itr ") for line in lines) == 2
    assert last == f"Run folder: {folder}"
    assert "95% interval over tasks" in gain and "mean of the last 2 iterations" in gain
    assert {file.name for file in folder.iterdir()} == {
        ".lock", "params.json", "progress.csv", "log.txt", "params.pkl", "params.prev.pkl", "itr_0.pkl",
        "learning_curve.png"
    }
    assert [row["Itr"] for row in rows(folder)] == ["0", "1"]
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert gain in (folder / "log.txt").read_text()
    assert params(folder)["algorithm"] == algorithm and params(folder)["settings"]["env"] == env


@pytest.mark.thorough
def test_gain_sentence_agrees_with_the_rows(finished):
    last = rows(finished.folder)[-10:]
    gains, half_widths, before, after = (
        np.array([float(row[key]) for row in last])
        for key in ("AdaptationGain", "AdaptationGainCI95", "Step_0-AverageReturn", "Step_1-AverageReturn")
    )
    mean, half_width = gains.mean(), np.sqrt((half_widths**2).sum()) / 10
    assert (
        f"\nAdaptation changes the return by {mean:+.2f} (95% interval over tasks {mean - half_width:+.2f} to "
        f"{mean + half_width:+.2f}), from {before.mean():.2f} to {after.mean():.2f}: mean of the last 10 iterations, "
        f"each with 3 sampled tasks and 2 paths per task\nRun folder: {finished.folder}\n"
    ) in finished.output
    np.testing.assert_allclose(after.mean() - before.mean(), mean)


def test_params_json_records_the_run(finished):
    content = params(finished.folder)
    assert make_config(pro_mp.Config, content["settings"]) == pro_mp.Config(
        env="MetaPointEnvCorner", env_kwargs={"reward_type": "dense"}, inner_lr=1.0, plot_gap=5,
        **{**SMOKE, "n_itr": 12, "meta_batch_size": 3},
    )
    assert content["algorithm"] == "promp"
    assert content["command"] == ["pro_mp.py", *finished.flags, "--n_itr", "12", "--dump_path", str(finished.folder)]
    assert content["versions"]["numpy"] == np.__version__
    assert set(content["versions"].values()).isdisjoint({None, ""})
    assert content["tensorflow_flags"].keys() >= {"TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS"}
    assert content["machine"]["cores"] >= 1 and content["machine"]["physics_engine"] == "mujoco"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", content["started"])
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    revision = content["git_revision"]
    assert revision is None if git.returncode else revision.removesuffix("-dirty") in git.stdout


def test_summary_of_the_run_is_printed_before_the_first_row(finished):
    first, row, *_ = finished.output.splitlines()
    folder = record.shortest(finished.folder)
    assert first == f"MetaPointEnvCorner, seed 1: 12 iterations of ProMP, written to {folder}"
    assert row.startswith("itr    0 |")
    assert f" info: {first}\n" in (finished.folder / "log.txt").read_text()


def test_learning_curve_is_plotted_during_the_run(finished):
    assert finished.drawn_after == [5, 10, 12]


@pytest.mark.thorough
def test_diagnostics_are_logged_and_plotted(tmp_path):
    assert run(maml_trpo, "--smoke", *POINT, "--diagnostics", "--dump_path", tmp_path / "run") == 0
    assert {"MetaGradVariance", "PrePostGradCosine"} <= set(rows(tmp_path / "run")[0])
    assert (tmp_path / "run" / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


def test_policy_is_categorical_for_discrete_actions(tmp_path):
    assert run(vpg_maml, "--smoke", "--env", "MetaBernoulliBanditEnv", "--dump_path", tmp_path / "run") == 0
    row = rows(tmp_path / "run")[-1]
    assert 0.0 < float(row["Step_1-AveragePolicyEntropy"]) <= np.log(5)


def test_failed_figure_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    def fail(folder):
        raise OSError("No space left on device")

    monkeypatch.setattr(training, "plot_learning_curve", fail)
    assert run(vpg_maml, "--smoke", *POINT, "--n_itr", 1, "--dump_path", tmp_path / "run") == 0
    assert "warning: could not draw the learning curve: No space left" in capsys.readouterr().out


def test_runs_are_equal_for_equal_seeds_only(finished, tmp_path):
    for name, seed in {"same": 1, "other": 2}.items():
        run(pro_mp, *finished.flags, "--n_itr", 3, "--seed", seed, "--dump_path", tmp_path / name)
    assert rows(tmp_path / "same") == rows(finished.folder)[:3] != rows(tmp_path / "other")


# Settings --------------------------------------------------------------------------------------------------------


def test_pro_mp_defaults_equal_the_published_ones():
    """arXiv:1810.06784, appendix D, and its run script for MuJoCo."""
    config = pro_mp.Config()
    published = {
        "env": "HalfCheetahRandDirecEnv", "baseline": "LinearFeatureBaseline", "meta_batch_size": 40,
        "rollouts_per_meta_task": 20, "max_path_length": 100, "discount": 0.99, "gae_lambda": 1.0,
        "normalize_adv": True, "hidden_sizes": (64, 64), "hidden_nonlinearity": "tanh", "learn_std": True,
        "inner_lr": 0.1, "learning_rate": 1e-3, "num_ppo_steps": 5, "clip_eps": 0.3, "target_inner_step": 0.01,
        "init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False, "n_itr": 1001, "num_inner_grad_steps": 1,
    }
    assert {name: getattr(config, name) for name in published} == published


@pytest.mark.parametrize("script, exploration, coeff", [(maml_trpo, False, None), (e_maml, True, 0.5),
                                                        (vpg_maml, False, None)])
def test_inner_objective_and_exploration_are_passed_to_the_algorithm(script, exploration, coeff):
    settings = {**SMOKE, "env": "MetaPointEnv", "inner_type": "likelihood_ratio", "exploration_coeff": coeff}
    algo = build_trainer(make_config(script.Config, settings)).algo
    assert (algo.inner_type, algo.exploration, algo.exploration_coeff) == ("likelihood_ratio", exploration, coeff)


def test_settings_are_passed_to_arguments_of_the_same_name():
    """Classes with explicit arguments and classes with `**kwargs` receive the settings that they accept."""
    class Explicit:
        def __init__(self, policy, inner_lr=0.1, scale=1.0):
            pass

    class ForwardsArguments(Explicit):
        def __init__(self, *args, clip_eps=0.2, **kwargs):
            pass

    config = pro_mp.Config(inner_lr=0.7, clip_eps=0.5)
    assert arguments_for(Explicit, config, scale=2.0) == {"inner_lr": 0.7, "scale": 2.0}
    assert arguments_for(ForwardsArguments, config, inner_lr=3) == {"inner_lr": 3, "clip_eps": 0.5}


def test_flags_override_smoke_and_smoke_overrides_the_file(tmp_path, monkeypatch, capsys):
    config_file = write_json(tmp_path / "a.json", {"n_itr": 500, "hidden_sizes": [32], "inner_lr": 0.2, "seed": 7})
    config = config_of(pro_mp, "--config_file", config_file, "--smoke", "--n_itr", 6, "--inner_lr", 0.3, "--dump_path",
                       tmp_path / "run", monkeypatch=monkeypatch, capsys=capsys)
    assert (config.seed, config.hidden_sizes, config.n_itr, config.inner_lr) == (7, (8,), 6, 0.3)


def test_every_type_of_flag(tmp_path, monkeypatch, capsys):
    config = config_of(
        pro_mp, "--hidden_sizes", 16, 8, "--no-normalize_adv", "--parallel", "--envs_per_task", 4, "--env_kwargs",
        '{"inertials": "modern"}', "--output_nonlinearity", "tanh", "--hidden_nonlinearity", "none", "--discount", 1,
        "--log_formats", "csv", "--dump_path", tmp_path / "run", monkeypatch=monkeypatch, capsys=capsys,
    )
    assert config == pro_mp.Config(
        hidden_sizes=(16, 8), normalize_adv=False, parallel=True, envs_per_task=4, env_kwargs={"inertials": "modern"},
        output_nonlinearity="tanh", hidden_nonlinearity=None, discount=1.0, log_formats=("csv",),
    )
    assert isinstance(config.discount, float)


def test_smoke_can_be_set_as_environment_variable(tmp_path, monkeypatch, capsys):
    for value, n_itr in {"1": 2, "0": 1001, "": 1001}.items():
        monkeypatch.setenv("SMOKE", value)
        config = config_of(pro_mp, "--dump_path", tmp_path / "run", monkeypatch=monkeypatch, capsys=capsys)
        assert config.n_itr == n_itr


def test_params_json_of_a_run_is_a_valid_config_file(finished, tmp_path, monkeypatch, capsys):
    path = finished.folder / "params.json"
    config = config_of(pro_mp, "--config_file", path, "--dump_path", tmp_path, monkeypatch=monkeypatch, capsys=capsys)
    assert config == make_config(pro_mp.Config, params(finished.folder)["settings"])


PRESETS = [path for path in sorted((ROOT / "experiments" / "configs").iterdir()) if not path.name.startswith("sweep_")]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.name)
def test_presets_are_settings_of_their_script(path):
    script = maml_trpo if path.name.startswith("maml_") else pro_mp
    make_config(script.Config, json.loads(path.read_text()))


def test_help_explains_every_setting(capsys):
    for script in SCRIPTS.values():
        with pytest.raises(SystemExit) as stop:
            script.main(["--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0 and script.__doc__ in text
        for field in dataclasses.fields(script.Config):
            assert re.search(rf"^  --{field.name}[ ,\n]", text, flags=re.MULTILINE), field.name


def test_help_and_early_errors_do_not_load_tensorflow(tmp_path):
    """Help, an unknown name and an unusable folder are reported before TensorFlow is loaded."""
    (tmp_path / "file").touch()
    program = (
        "import sys\n"
        "from experiments import pro_mp\n"
        "for arguments in (['--help'], ['--env', 'Nowhere'], ['--dump_path', 'file/run']):\n"
        "    try:\n"
        "        pro_mp.main(arguments)\n"
        "    except SystemExit as stop:\n"
        "        print('status', stop.code)\n"
        "print([name for name in ('tensorflow', 'matplotlib') if name in sys.modules])\n"
    )
    out, err = start("-c", program, cwd=tmp_path).communicate(timeout=60)
    assert re.findall(r"^status (\d)$", out, flags=re.MULTILINE) == ["0", "2", "2"]
    assert out.splitlines()[-1] == "[]"
    assert err.count("\n") == 2 and "Nowhere" in err and "file/run" in err


# Invalid arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    (["--env", "Nowhere"], r"env: expected one of .*'HalfCheetahRandDirecEnv'.*'MetaPointEnvCorner'.*, got 'Nowhere'"),
    (["--baseline", "Best"], r"baseline: expected one of 'GaussianMLPBaseline', .*, got 'Best'"),
    (["--hidden_nonlinearity", "gelu"], r"hidden_nonlinearity: expected one of .*'relu'.*, got 'gelu'"),
    (["--n_itr", "many"], r"n_itr: expected an integer, got 'many'"),
    (["--envs_per_task", "few"], r"envs_per_task: expected an integer or none, got 'few'"),
    (["--env_kwargs", "{"], r"env_kwargs: expected an object \(names and values\), got '{'"),
    (["--env_kwargs", "[1]"], r"env_kwargs: expected an object \(names and values\), got \[1\]"),
    (["--log_formats", "line"], r"log_formats: expected formats including 'csv', got \('line',\)"),
    (["--log_formats", "csv", "xml"], r"log_formats: expected one of .*'tensorboard', got 'xml'"),
    (["--env", "HalfCheetahRandDirec"], r".*, got 'HalfCheetahRandDirec'; did you mean 'HalfCheetahRandDirecEnv'\?"),
    (["--snapshot_gap", "0"], r"snapshot_gap: expected an integer of at least 1, got 0"),
    (["--plot_gap", "-1"], r"plot_gap: expected an integer of at least 0, got -1"),
    (["--inner_ir", "0.1"], r"unrecognized arguments: --inner_ir 0.1"),
    (["--meta-batch-size=3"], r"unrecognized arguments: --meta-batch-size=3"),
    (["--dump_path", "run", "--resume", "run"], r"argument --resume: not allowed with argument --dump_path"),
    (["--config_file", "missing.json"], r"could not read missing.json: .*No such file"),
    (["--resume", "missing"],
     r"--resume: expected the folder of a run, got missing: missing does not exist"),
])
def test_invalid_settings_are_reported_before_anything_is_built(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "build_trainer", lambda config: pytest.fail("it was built"))
    assert re.fullmatch(f"pro_mp.py: error: {message}.*\n", mistake(capsys, pro_mp, *arguments))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments, message", [
    (["--inner_lr", "-1"], "inner_lr: expected a finite number of at least 0, got -1.0"),
    (["--meta_batch_size", "0"], "meta_batch_size: expected an integer of at least 1, got 0"),
    (["--rollouts_per_meta_task", "0"], "rollouts_per_meta_task: expected an integer of at least 1, got 0"),
    (["--num_inner_grad_steps", "-1"], "num_inner_grad_steps: expected an integer of at least 0, got -1"),
    (["--n_itr", "0"], "n_itr: expected an integer of at least 1, got 0"),
    (["--envs_per_task", "0"], "envs_per_task: expected an integer of at least 1, got 0"),
    (["--env", "MetaPointEnvCorner", "--env_kwargs", '{"reward_type": "none"}'], "reward_type: expected one of"),
    (["--env_kwargs", '{"depth": 3}'], "unexpected keyword argument 'depth'"),
])
def test_errors_of_components_are_reported_in_one_line(arguments, message, tmp_path, capsys):
    """If a class refuses a setting, its message is printed as one line."""
    env = () if "--env" in arguments else POINT
    assert message in mistake(capsys, pro_mp, "--smoke", *env, *arguments, "--dump_path", tmp_path)
    assert not (tmp_path / "params.json").exists()


def test_folder_can_be_used_after_an_error(tmp_path, capsys):
    arguments = ["--smoke", *POINT, "--n_itr", 1, "--dump_path", tmp_path]
    mistake(capsys, vpg_maml, *arguments, "--learning_rate", -1)
    assert run(vpg_maml, *arguments) == 0


@pytest.mark.parametrize("content, message", [
    ({"inner_rl": 0.1}, r"settings: expected names .*anneal_factor, got 'inner_rl'; did you mean 'inner_lr'\?"),
    ({"env": "Nowhere"}, r"env: expected one of .*, got 'Nowhere'"),
    ({"n_itr": 2.5}, r"n_itr: expected an integer, got 2.5"),
    ({"n_itr": True}, r"n_itr: expected an integer, got True"),
    ({"parallel": 1}, r"parallel: expected a bool or a string, got 1"),
    ({"parallel": "all"}, r"parallel: expected one of False, True, 'ray', got 'all'"),
    ({"discount": "high"}, r"discount: expected a number, got 'high'"),
    ({"hidden_sizes": 64}, r"hidden_sizes: expected a list, got 64"),
    ({"hidden_sizes": [64, "x"]}, r"hidden_sizes\[1\]: expected an integer, got 'x'"),
    ({"env": None}, r"env: expected a string, got None"),
    ([1], r".*a.json: expected a JSON object, got list"),
])
def test_invalid_config_files_are_reported(content, message, tmp_path, capsys):
    path = write_json(tmp_path / "a.json", content)
    assert re.fullmatch(f"pro_mp.py: error: {message}\n", mistake(capsys, pro_mp, "--config_file", path))
    if isinstance(content, dict):  # Python callers get the same message
        with pytest.raises((TypeError, ValueError), match=message):
            make_config(pro_mp.Config, content)


def test_config_file_that_is_not_json_is_reported(tmp_path, capsys):
    path = tmp_path / "a.json"
    path.write_text("{'env': 1}")
    assert f"could not read {path}: Expecting property name" in mistake(capsys, pro_mp, "--config_file", path)


def test_folder_of_another_run_is_refused_before_training(finished_copy, monkeypatch, capsys):
    before = contents(finished_copy)
    monkeypatch.setattr(training, "build_trainer", lambda config: pytest.fail("it was built"))
    message = mistake(capsys, pro_mp, "--smoke", *POINT, "--dump_path", finished_copy)
    assert "expected a folder without an earlier run" in message and "meta-policy-search resume" in message
    assert contents(finished_copy) == before


@pytest.mark.parametrize("name", ["params.json", "progress.csv", "progress.json", "params.pkl", "itr_100.pkl"])
def test_no_file_of_an_earlier_run_is_overwritten(name, finished, tmp_path, monkeypatch, capsys):
    """A folder with any single file of a run is refused, and the file is unchanged."""
    source = {"itr_100.pkl": "params.pkl", "progress.json": "progress.csv"}
    shutil.copy(finished.folder / source.get(name, name), tmp_path / name)
    before = contents(tmp_path)
    monkeypatch.setattr(training, "build_trainer", lambda config: pytest.fail("it was built"))
    message = mistake(capsys, pro_mp, "--smoke", *POINT, "--dump_path", tmp_path)
    assert f"got {tmp_path}" in message and (name in message or " resume " in message)
    assert contents(tmp_path) == before


# Resuming --------------------------------------------------------------------------------------------------------


def assert_same_end(folder, whole):
    assert rows(folder) == rows(whole)
    ours, theirs = (load_snapshot(path)["state"]["policy_params"] for path in (folder, whole))
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)


@pytest.mark.thorough
def test_resumed_run_equals_uninterrupted_run(tmp_path):
    """3 + 3 iterations equal 6 iterations if the settings are repeated with a larger number of iterations."""
    flags = ["--env", "HalfCheetahRandDirecEnv"]
    run(maml_trpo, "--smoke", *flags, "--n_itr", 6, "--dump_path", tmp_path / "whole")
    run(maml_trpo, "--smoke", *flags, "--n_itr", 3, "--dump_path", tmp_path / "parts")
    assert len(rows(tmp_path / "parts")) == 3
    run(maml_trpo, "--resume", tmp_path / "parts", *flags, "--hidden_sizes", 8, "--n_itr", 6)
    assert_same_end(tmp_path / "parts", tmp_path / "whole")
    content = params(tmp_path / "parts")
    assert content["settings"] == params(tmp_path / "whole")["settings"]
    assert [process["itr"] for process in content["resumed"]] == [3]


@pytest.mark.thorough
def test_resuming_from_a_snapshot_before_the_last_row(finished, tmp_path):
    """With a snapshot every second iteration, a run of four iterations repeats the fourth one."""
    flags = ["--snapshot_mode", "gap", "--snapshot_gap", 2, "--log_formats", "log", "csv", "json"]
    run(pro_mp, *finished.flags, *flags, "--n_itr", 4, "--dump_path", tmp_path)
    run(pro_mp, "--resume", tmp_path, "--n_itr", 6)
    assert rows(tmp_path) == rows(finished.folder)[:6]
    assert [json.loads(line)["Itr"] for line in (tmp_path / "progress.json").open()] == list(range(6))
    assert [process["itr"] for process in params(tmp_path)["resumed"]] == [3]


def test_resuming_with_changed_settings_is_refused(finished_copy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "build_trainer", lambda config: pytest.fail("it was built"))

    def refusal(*arguments, script=pro_mp):
        return mistake(capsys, script, "--resume", finished_copy, *arguments)

    assert refusal("--n_itr", 13, "--inner_lr", 0.2, "--seed", 1, "--hidden_sizes", 8, 8).endswith(
        "but hidden_sizes was (8,), is (8, 8); inner_lr was 1.0, is 0.2\n")
    config_file = write_json(tmp_path / "a.json", {"discount": 0.5, "inner_lr": 1})
    assert refusal("--config_file", config_file).endswith("but discount was 0.99, is 0.5\n")
    assert "n_itr was 12, is 11" in refusal("--n_itr", 11)
    assert "has completed all 12 iterations" in refusal()
    assert "a run of promp" in refusal("--n_itr", 13, script=vpg_maml)
    assert refusal("--n_itr", 13, "--smoke").endswith("but meta_batch_size was 3, is 2\n")
    for snapshot in finished_copy.glob("*.pkl"):
        snapshot.unlink()
    assert "contains no snapshot" in refusal("--n_itr", 13)


def test_number_of_iterations_can_change_unless_the_learning_rate_depends_on_it():
    for schedule, expected in (("constant", ""), ("linear", "n_itr was 3, is 6")):
        before, now = (pro_mp.Config(learning_rate_schedule=schedule, n_itr=n_itr) for n_itr in (3, 6))
        assert record.differences(before, now) == expected


@pytest.fixture(scope="module")
def four_iterations(finished, tmp_path_factory):
    """Returns four iterations whose last snapshot is from the third: resuming drops a row. Tests must not change it."""
    folder = tmp_path_factory.mktemp("four") / "run"
    run(pro_mp, *finished.flags, "--snapshot_mode", "gap", "--snapshot_gap", 2, "--n_itr", 4, "--dump_path", folder)
    return folder


@pytest.fixture
def run_of_four(four_iterations, tmp_path):
    return shutil.copytree(four_iterations, tmp_path / "copy")


def change_params(folder, **changes):
    content = params(folder)
    for path, value in changes.items():
        *parents, key = path.split("__")
        target = content
        for parent in parents:
            target = target[parent]
        target[key] = value
    write_json(folder / "params.json", content)


@pytest.mark.parametrize("changes, message", [
    ({"settings__hidden_sizes": [7], "settings__inner_lr": 0.3},
     r"expected the settings of the run .* hidden_sizes was \(8,\), is \(7,\); inner_lr was 1.0, is 0.3"),
    ({"settings__env": "MetaGoneEnv"}, r"env: expected one of .*'MetaPointEnvCorner'.*, got 'MetaGoneEnv'"),
    ({"settings__env": "HalfCheetahRandDirecEnv", "settings__env_kwargs": {}},
     "env was 'MetaPointEnvCorner', is 'HalfCheetahRandDirecEnv'"),
    ({"settings__meta_batch_size": 2}, "meta_batch_size was 3, is 2"),
    ({"settings__new": 1}, r"settings: expected names among env, .*, got 'new'"),
    ({"settings": None}, r"got .*, whose params.json lacks settings"),
    ({"algorithm": None, "resumed": None}, r"got .*, whose params.json lacks algorithm, resumed"),
    ({"versions__meta_policy_search": "0.0.1"},
     rf"the run in .* is from meta_policy_search 0\.0\.1, and this is version {re.escape(__version__)}. .*load_npz"),
])
def test_mismatched_run_is_refused_and_left_unchanged(changes, message, run_of_four, capsys):
    change_params(run_of_four, **changes)
    capsys.readouterr()
    before = contents(run_of_four)
    assert re.fullmatch(f"pro_mp.py: error: .*({message}).*\n", mistake(capsys, pro_mp, "--resume", run_of_four,
                                                                        "--n_itr", 6))
    assert contents(run_of_four) == before


@pytest.mark.thorough
def test_damaged_snapshot_is_reported_with_the_previous_one(run_of_four, finished, capsys):
    path = run_of_four / "itr_2.pkl"
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    before = contents(run_of_four)
    message = mistake(capsys, pro_mp, "--resume", run_of_four, "--n_itr", 6)
    assert f"{path} is damaged: " in message
    assert message.endswith(f"last intact snapshot in the folder is {run_of_four / 'itr_0.pkl'} (iteration 0)\n")
    assert contents(run_of_four) == before
    path.unlink()  # then the run resumes from the previous one
    run(pro_mp, "--resume", run_of_four)
    assert rows(run_of_four) == rows(finished.folder)[:4]


def test_snapshot_with_a_missing_environment_class_is_reported(run_of_four, monkeypatch, capsys):
    from meta_policy_search.envs.point_envs import point_env_2d_corner

    capsys.readouterr()
    before = contents(run_of_four)
    monkeypatch.delattr(point_env_2d_corner, "MetaPointEnvCorner")
    message = mistake(capsys, pro_mp, "--resume", run_of_four, "--n_itr", 6)
    assert "itr_2.pkl is intact, but its objects could not be rebuilt" in message and "MetaPointEnvCorner" in message
    assert contents(run_of_four) == before


@pytest.mark.thorough
def test_resuming_on_another_platform_warns(finished_copy, capsys):
    content = params(finished_copy)
    content["versions"]["numpy"], content["machine"]["cores"] = "1.0", 1000
    write_json(finished_copy / "params.json", content)
    run(pro_mp, "--resume", finished_copy, "--n_itr", 13)
    cores = params(finished_copy)["resumed"][0]["machine"]["cores"]
    warning = re.search("^warning: the resumed run may differ.*", capsys.readouterr().out, flags=re.MULTILINE)[0]
    assert warning.endswith(f"numpy was 1.0, is {np.__version__}; cores was 1000, is {cores}")


# Ctrl-C ----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_ctrl_c_ends_a_run_cleanly(tmp_path):
    """SIGINT from a terminal ends a run with worker processes, and the command to resume is printed."""
    process = start("-m", "experiments.pro_mp", "--smoke", *POINT, "--parallel", "--n_itr", 100_000,
                    "--dump_path", "run", cwd=tmp_path)
    try:
        while "itr    2" not in process.stdout.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "")
        with pytest.raises(ProcessLookupError):  # the workers ended too
            os.killpg(process.pid, 0)
    finally:
        process.kill()
    snapshot = load_snapshot(tmp_path / "run")
    assert len(rows(tmp_path / "run")) >= snapshot["itr"] + 1 >= 2  # row 2 is printed before its snapshot is saved
    assert out.endswith(f"To resume after iteration {snapshot['itr']}: meta-policy-search resume run\n")


def test_ctrl_c_before_the_first_snapshot(tmp_path, monkeypatch, capsys):
    def interrupt(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "build_trainer", interrupt)
    assert run(pro_mp, "--dump_path", tmp_path / "run") == 130
    assert capsys.readouterr().out == "There is no snapshot to resume from\n"
