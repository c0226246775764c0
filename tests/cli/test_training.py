"""Tests training scripts as a user runs them: settings, run folders, resuming, invalid arguments and Ctrl-C."""
import contextlib
import csv
import functools
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

import meta_policy_search as mps
from experiments import dice_maml, e_maml, maml_trpo, pro_mp, vpg_maml
from meta_policy_search import __version__
from meta_policy_search.cli.main import main
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.utils import logger
from meta_policy_search.utils.snapshotter import SnapshotError, load_snapshot

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


@pytest.fixture
def settings_from(monkeypatch, capsys):
    """Returns a function that returns the arguments of `mps.train` for a command line, without training."""
    calls = []

    @functools.wraps(mps.train)
    def train(**arguments):
        calls.append(arguments)
        raise ValueError("this is all that was asked for")

    monkeypatch.setattr(mps, "train", train)

    def read(script, *arguments):
        assert "this is all" in mistake(capsys, script, *arguments)
        return calls.pop()

    return read


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
    """A run of 12 iterations: flags, folder (tests must not change it) and output."""

    def __init__(self, folder):
        config_file = write_json(folder / "settings.json", {"env": "MetaPointEnvCorner", "plot_gap": 5,
                                                            "env_kwargs": {"reward_type": "dense"}, "inner_lr": 1})
        self.folder = folder / "run"
        self.flags = ["--smoke", "--config_file", str(config_file), "--meta_batch_size", "3"]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert run(pro_mp, *self.flags, "--n_itr", 12, "--dump_path", self.folder) == 0
        self.output = output.getvalue()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return Finished(tmp_path_factory.mktemp("finished"))


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
    algorithm = SCRIPTS[name].ALGORITHM
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
    expected = {"env": "MetaPointEnvCorner", "env_kwargs": {"reward_type": "dense"}, "inner_lr": 1, "seed": 1,
                "n_itr": 12, "meta_batch_size": 3, "hidden_sizes": [8], "discount": 0.99, **pro_mp.PUBLISHED}
    expected.update(n_itr=12, meta_batch_size=3)
    assert {name: content["settings"][name] for name in expected} == expected
    assert content["options"]["plot_gap"] == 5 and content["options"]["log_formats"] == ["line", "log", "csv"]
    assert {"inner_lr", "env", "clip_eps"} <= {*content["given"]} and "discount" not in content["given"]
    assert content["algorithm"] == "promp"
    assert content["command"] == [os.path.basename(sys.argv[0]), *sys.argv[1:]]
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
    folder = finished.folder
    assert first == f"MetaPointEnvCorner, seed 1: 12 iterations of ProMP, written to {folder}"
    assert row.startswith("itr    0 |")
    assert f" info: {first}\n" in (finished.folder / "log.txt").read_text()


@pytest.mark.thorough
def test_diagnostics_are_logged_and_plotted(tmp_path):
    assert run(maml_trpo, "--smoke", *POINT, "--diagnostics", "--dump_path", tmp_path / "run") == 0
    assert {"MetaGradVariance", "PrePostGradCosine"} <= set(rows(tmp_path / "run")[0])
    assert (tmp_path / "run" / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


def test_policy_is_categorical_for_discrete_actions(tmp_path):
    assert run(vpg_maml, "--smoke", "--env", "MetaBernoulliBanditEnv", "--dump_path", tmp_path / "run") == 0
    row = rows(tmp_path / "run")[-1]
    assert 0.0 < float(row["Step_1-AveragePolicyEntropy"]) <= np.log(5)


def test_runs_are_equal_for_equal_seeds_only(finished, tmp_path):
    """The `params.json` of a run, as a configuration file, repeats the run."""
    for name, flags in (("a", finished.flags), ("same", ["--config_file", tmp_path / "a" / "params.json"]),
                        ("other", [*finished.flags, "--seed", 2])):
        run(pro_mp, *flags, "--n_itr", 2, "--dump_path", tmp_path / name)
    assert rows(tmp_path / "a") == rows(tmp_path / "same") != rows(tmp_path / "other")


# Settings --------------------------------------------------------------------------------------------------------


def test_pro_mp_defaults_equal_the_published_ones(settings_from, tmp_path):
    """arXiv:1810.06784, appendix D, and its run script for MuJoCo."""
    defaults = {name: setting.default for name, setting in settings_of_algorithm(mps.ProMP).items()}
    config = {**defaults, **settings_from(pro_mp, "--dump_path", tmp_path / "run")}
    published = {
        "env": "HalfCheetahRandDirecEnv", "baseline": "LinearFeatureBaseline", "meta_batch_size": 40,
        "rollouts_per_meta_task": 20, "max_path_length": 100, "discount": 0.99, "gae_lambda": 1.0,
        "normalize_adv": True, "hidden_sizes": (64, 64), "learn_std": True,
        "inner_lr": 0.1, "learning_rate": 1e-3, "num_ppo_steps": 5, "clip_eps": 0.3, "target_inner_step": 0.01,
        "init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False, "n_itr": 1001, "num_inner_grad_steps": 1,
    }
    assert {name: config[name] for name in published} == published


@pytest.mark.parametrize("script, algo_class", [(maml_trpo, mps.TRPOMAML), (e_maml, mps.EMAML), (vpg_maml, mps.VPGMAML)])
def test_inner_objective_is_passed_to_the_algorithm(script, algo_class):
    algo = mps.run.build_trainer("MetaPointEnv", script.ALGORITHM, hidden_sizes=(4,),
                                 **{**script.PUBLISHED, "inner_type": "likelihood_ratio", "meta_batch_size": 2}).algo
    assert type(algo) is algo_class and algo.inner_type == "likelihood_ratio"
    assert algo.exploration is (script is e_maml)


def test_flags_override_smoke_and_smoke_overrides_the_file_and_the_file_the_script(settings_from, tmp_path):
    config_file = write_json(tmp_path / "a.json", {"n_itr": 500, "hidden_sizes": [32], "inner_lr": 0.2, "seed": 7,
                                                   "clip_eps": 0.4})
    given = settings_from(pro_mp, "--config_file", config_file, "--smoke", "--n_itr", 6, "--inner_lr", 0.3)
    expected = {"seed": 7, "hidden_sizes": (8,), "n_itr": 6, "inner_lr": 0.3, "clip_eps": 0.4,
                "init_inner_kl_penalty": 5e-4, "algo": "promp", "env": "HalfCheetahRandDirecEnv", "plot_gap": 20}
    assert {name: given[name] for name in expected} == expected


def test_every_type_of_flag(settings_from, tmp_path):
    given = settings_from(
        pro_mp, "--hidden_sizes", 16, 8, "--no-normalize_adv", "--parallel", "--envs_per_task", 4, "--env_kwargs",
        '{"inertials": "modern"}', "--output_nonlinearity", "tanh", "--hidden_nonlinearity", "none", "--discount", 1,
        "--log_formats", "csv", "--learning_rate", '{"start": 0.1, "end": 0, "num_updates": 5}', "--max_grad_norm",
        "1e-1", "--tf_optimizer_cls", "Adam", "--adapt_params", "head", "--dump_path", tmp_path / "run")
    expected = {
        "hidden_sizes": [16, 8], "normalize_adv": False, "parallel": True, "envs_per_task": 4, "discount": 1,
        "env_kwargs": {"inertials": "modern"}, "output_nonlinearity": "tanh", "hidden_nonlinearity": None,
        "log_formats": ["csv"], "learning_rate": {"start": 0.1, "end": 0, "num_updates": 5}, "max_grad_norm": 0.1,
        "tf_optimizer_cls": "Adam", "adapt_params": ["head"], "dump_path": str(tmp_path / "run")}
    assert {name: given[name] for name in expected} == expected
    for flags, value in (((), True), (("ray",), "ray"), (('{"num_workers": 2}',), {"num_workers": 2})):
        assert settings_from(pro_mp, "--parallel", *flags)["parallel"] == value
    assert settings_from(pro_mp, "--no-parallel")["parallel"] is False
    assert "parallel" not in settings_from(pro_mp)


def test_smoke_can_be_set_as_environment_variable(settings_from, monkeypatch):
    for value, n_itr in {"1": 2, "0": 1001, "": 1001}.items():
        monkeypatch.setenv("SMOKE", value)
        assert settings_from(pro_mp)["n_itr"] == n_itr


def test_params_json_of_a_run_is_a_valid_config_file(finished, settings_from, tmp_path):
    """The values of both kinds of settings equal those of the run."""
    given = settings_from(pro_mp, "--config_file", finished.folder / "params.json", "--dump_path", tmp_path)
    content = params(finished.folder)
    recorded = {**content["settings"], **content["options"]}
    for name in settings_of_algorithm(mps.ProMP).keys() & recorded.keys():
        assert given[name] == recorded[name], name


PRESETS = [path for path in sorted((ROOT / "experiments" / "configs").iterdir()) if not path.name.startswith("sweep_")]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.name)
def test_presets_are_settings_of_their_script(path):
    algo_class = mps.TRPOMAML if path.name.startswith("maml_") else mps.ProMP
    assert json.loads(path.read_text()).keys() <= settings_of_algorithm(algo_class).keys()


@pytest.mark.parametrize("name", mps.available_algorithms())
def test_help_shows_every_setting_and_only_settings(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", name, "--help"])
    flags = set(re.findall(r"^  --([a-z]\w*)(?=[ ,\n])", capsys.readouterr().out, flags=re.MULTILINE))
    assert stop.value.code == 0
    general = {"config_file", "dump_path", "resume", "smoke"}
    settings = settings_of_algorithm(mps.get_algorithm(name))
    assert flags - general == settings.keys() - {"optimizer"}  # whose arguments are settings


def test_help_explains_settings_with_the_defaults_of_the_script(capsys):
    for script in SCRIPTS.values():
        with pytest.raises(SystemExit):
            script.main(["--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert " ".join(script.__doc__.split()) in text
        assert re.search(rf"--n_itr INT .*?\(default: {script.PUBLISHED['n_itr']}\)", text)


# Invalid arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    (["--env", "Nowhere"], r"env: expected one of .*'HalfCheetahRandDirecEnv'.*'MetaPointEnvCorner'.*, got 'Nowhere'"),
    (["--baseline", "Best"], r"baseline: expected one of 'GaussianMLPBaseline', .*, got 'Best'"),
    (["--hidden_nonlinearity", "gelu"], r"hidden_nonlinearity: expected one of .*'relu'.*, got 'gelu'"),
    (["--n_itr", "many"], r"n_itr: expected an integer.*, got 'many'"),
    (["--n_itr", "0"], "n_itr: expected an integer of at least 1, got 0"),
    (["--n_itr", "2.5"], "n_itr: expected an integer of at least 1, got 2.5"),
    (["--envs_per_task", "few"], r"envs_per_task: expected an integer.*, got 'few'"),
    (["--envs_per_task", "0"], "envs_per_task: expected an integer of at least 1, got 0"),
    (["--env_kwargs", "{"], r"env_kwargs: expected .*, got '{'"),
    (["--env_kwargs", "[1]"], r"env_kwargs: expected .*, got \[1\]"),
    (["--env_kwargs", '{"depth": 3}'], "unexpected keyword argument 'depth'"),
    (["--env_kwargs", '{"reward_type": "none"}'], "reward_type: expected one of"),
    (["--log_formats", "line"], r"log_formats: expected formats including 'csv', got .*'line'"),
    (["--log_formats", "csv", "xml"], r"log_formats: expected one of .*'tensorboard', got 'xml'"),
    (["--env", "HalfCheetahRandDirec"], r".*, got 'HalfCheetahRandDirec'; did you mean 'HalfCheetahRandDirecEnv'\?"),
    (["--snapshot_gap", "0"], r"snapshot_gap: expected an integer of at least 1, got 0"),
    (["--snapshot_mode", "some"], r"snapshot_mode: expected one of .*, got 'some'"),
    (["--plot_gap", "-1"], r"plot_gap: expected an integer of at least 0, got -1"),
    (["--seed", "-1"], r"seed: expected .*, got -1"),
    (["--inner_ir", "0.1"], r"unrecognized arguments: --inner_ir 0.1; did you mean '--inner_lr'\?"),
    (["--meta-batch-size=3"], r"unrecognized arguments: --meta-batch-size=3; did you mean '--meta_batch_size'\?"),
    (["--inner_lr", "-1"], r"inner_lr: expected a finite number of at least 0, got -1"),
    (["--inner_lr", "high"], r"inner_lr: expected .*number.*, got 'high'"),
    (["--discount", "high"], r"discount: expected .*number.*, got 'high'"),
    (["--learning_rate", "-1"], r"learning_rate: expected a finite number above 0, got -1"),
    (["--meta_batch_size", "0"], "meta_batch_size: expected an integer of at least 1, got 0"),
    (["--rollouts_per_meta_task", "0"], "rollouts_per_meta_task: expected an integer of at least 1, got 0"),
    (["--num_inner_grad_steps", "-1"], "num_inner_grad_steps: expected an integer of at least 0, got -1"),
    (["--hidden_sizes", "64", "x"], r"hidden_sizes.*: expected .*, got .*'x'"),
    (["--parallel", "all"], r"parallel: expected one of False, True, 'ray'.*, got 'all'"),
    (["--parallel", '{"number": 2}'], r"parallel: expected names among .*num_workers.*, got 'number'"),
    (["--policy", "nowhere:Policy"], "policy: expected MODULE:NAME with a module that can be imported"),
    (["--dump_path", "run", "--resume", "run"], r"argument --resume: not allowed with argument --dump_path"),
    (["--config_file", "missing.json"], r"could not read missing.json: .*No such file"),
    (["--resume", "missing"], r"missing: No such file|missing .*contains no snapshot"),
])
def test_invalid_settings_are_reported_in_one_line_and_nothing_is_written(arguments, message, tmp_path, monkeypatch,
                                                                          capsys):
    monkeypatch.chdir(tmp_path)
    defaults = [] if {"--env", "--resume"} & {*arguments} else ["--env", "MetaPointEnvCorner"]
    if not {"--resume"} & {*arguments}:
        defaults += ["--smoke"]
    assert re.fullmatch(f"pro_mp.py: error: .*{message}.*\n", mistake(capsys, pro_mp, *defaults, *arguments))
    assert not list(tmp_path.iterdir())


def test_folder_can_be_used_after_an_error(tmp_path, capsys):
    arguments = ["--smoke", *POINT, "--n_itr", 1, "--dump_path", tmp_path]
    mistake(capsys, vpg_maml, *arguments, "--learning_rate", -1)
    assert run(vpg_maml, *arguments) == 0


@pytest.mark.parametrize("content, message", [
    ({"inner_rl": 0.1}, r"unknown setting 'inner_rl' for ProMP; did you mean 'inner_lr'\?"),
    ({"env": "Nowhere"}, r"env: expected one of .*, got 'Nowhere'"),
    ({"n_itr": 2.5}, r"n_itr: expected an integer of at least 1, got 2.5"),
    ({"n_itr": True}, r"n_itr: expected an integer of at least 1, got True"),
    ({"parallel": 1.5}, r"parallel: expected one of .*, got 1.5"),
    ({"hidden_sizes": 64}, r"hidden_sizes: expected a list of integers, got 64"),
    ({"env": None}, r"env: expected .*, got None"),
    ([1], r".*a.json: expected a JSON object, got list"),
    ("{'env': 1}", r"could not read .*a.json: Expecting property name.*"),
])
def test_invalid_config_files_are_reported(content, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.json"
    if isinstance(content, dict):
        content = {"env": "MetaPointEnvCorner", **content}
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert re.fullmatch(f"pro_mp.py: error: {message}\n", mistake(capsys, pro_mp, "--config_file", path))
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_folder_of_another_run_is_refused_before_training(finished_copy, capsys):
    before = contents(finished_copy)
    message = mistake(capsys, pro_mp, "--smoke", *POINT, "--dump_path", finished_copy)
    assert "already contains a run" in message and "meta-policy-search resume" in message
    assert contents(finished_copy) == before


@pytest.mark.parametrize("name", ["params.json", "progress.csv", "progress.json", "params.pkl", "itr_100.pkl"])
def test_no_file_of_an_earlier_run_is_overwritten(name, finished, tmp_path, capsys):
    """A folder with any single file of a run is refused, and the file is unchanged."""
    source = {"itr_100.pkl": "params.pkl", "progress.json": "progress.csv"}
    shutil.copy(finished.folder / source.get(name, name), tmp_path / name)
    before = contents(tmp_path)
    message = mistake(capsys, pro_mp, "--smoke", *POINT, "--dump_path", tmp_path)
    assert str(tmp_path) in message
    assert contents(tmp_path) == before


# Resuming --------------------------------------------------------------------------------------------------------


def assert_same_end(folder, whole):
    assert rows(folder) == rows(whole)
    ours, theirs = (load_snapshot(path)["state"]["policy_params"] for path in (folder, whole))
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)


@pytest.mark.thorough(but="script-Python")
@pytest.mark.parametrize("first, second", [("script", "Python"), ("Python", "command"), ("script", "script")],
                         ids="-".join)
def test_resumed_run_equals_uninterrupted_run(first, second, tmp_path):
    """3 + 3 iterations equal 6 iterations, whether Python or the shell starts and resumes the run."""
    settings = {"env": "MetaPointEnvCorner", "inner_type": "log_likelihood", "n_itr": 3, "meta_batch_size": 2,
                "rollouts_per_meta_task": 2, "max_path_length": 10, "hidden_sizes": (8,)}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    mps.train(algo="trpo_maml", dump_path=whole, **{**settings, "n_itr": 6})
    if first == "Python":
        mps.train(algo="trpo_maml", dump_path=parts, **settings)
    else:
        run(maml_trpo, "--config_file", write_json(tmp_path / "a.json", settings), "--dump_path", parts)
    assert len(rows(parts)) == 3
    if second == "Python":
        mps.load_run(parts).resume(6)
    elif second == "command":
        assert main(["resume", str(parts), "--n_itr", "6"]) == 0
    else:
        run(maml_trpo, "--resume", parts, "--n_itr", 6)
    assert_same_end(parts, whole)
    content, expected = params(parts), params(whole)
    assert content["settings"] == expected["settings"] and content.keys() == expected.keys()
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


@pytest.mark.thorough(but="command")
@pytest.mark.parametrize("is_command", [True, False], ids=["command", "Python"])
def test_options_without_effect_can_change(is_command, finished_copy, finished):
    """The rows do not change with worker processes, and `params.json` records the new options."""
    if is_command:
        assert main(["resume", str(finished_copy), "--n_itr", "13", "--parallel", "--no-progress_bar"]) == 0
    else:
        mps.load_run(finished_copy).resume(13, parallel=True, progress_bar=False)
    assert params(finished_copy)["options"]["parallel"] is True
    assert rows(finished_copy)[:12] == rows(finished.folder) and len(rows(finished_copy)) == 13


@pytest.mark.parametrize("script", [pro_mp, None], ids=["script", "command"])
@pytest.mark.parametrize("flags, message", [
    (["--n_itr", 13, "--inner_lr", 0.2], "inner_lr"),
    (["--n_itr", 13, "--hidden_sizes", 8, 8], "hidden_sizes"),
    (["--n_itr", 11], "n_itr: expected more than 12 .completed iterations., got 11"),
    ([], "n_itr: expected more than 12 .completed iterations., got 12"),
    (["--n_itr", 0], "n_itr: expected an integer of at least 1, got 0"),
])
def test_resuming_with_changed_settings_is_refused(script, flags, message, finished_copy, capsys):
    before = contents(finished_copy)
    command = ["--resume"] if script else ["resume"]
    script = script or type("Command", (), {"main": staticmethod(main)})
    assert re.search(message, mistake(capsys, script, *command, finished_copy, *flags))
    assert contents(finished_copy) == before


def test_options_with_an_effect_are_refused_in_python(finished_copy):
    with pytest.raises(TypeError, match="unknown setting 'inner_lr' without effect on the result of the run"):
        mps.load_run(finished_copy).resume(13, inner_lr=0.2)
    for snapshot in finished_copy.glob("*.pkl"):
        snapshot.unlink()
    with pytest.raises(SnapshotError, match="contains no snapshot"):
        mps.load_run(finished_copy)


@pytest.fixture(scope="module")
def four_iterations(finished, tmp_path_factory):
    """Returns four iterations whose last snapshot is from the third: resuming drops a row. Tests must not change it."""
    folder = tmp_path_factory.mktemp("four") / "run"
    run(pro_mp, *finished.flags, "--snapshot_mode", "gap", "--snapshot_gap", 2, "--n_itr", 4, "--dump_path", folder)
    return folder


@pytest.fixture
def run_of_four(four_iterations, tmp_path):
    return shutil.copytree(four_iterations, tmp_path / "copy")


@pytest.mark.thorough
def test_damaged_snapshot_is_reported_with_the_previous_one(run_of_four, finished, capsys):
    path = run_of_four / "itr_2.pkl"
    path.write_bytes(path.read_bytes()[:-1])
    before = contents(run_of_four)
    capsys.readouterr()
    message = mistake(capsys, pro_mp, "--resume", run_of_four, "--n_itr", 6)
    assert f"{path} is damaged: " in message
    assert message.endswith(f"last intact snapshot in the folder is {run_of_four / 'itr_0.pkl'} (iteration 0)\n")
    assert contents(run_of_four) == before
    path.unlink()  # then the run resumes from the previous one
    run(pro_mp, "--resume", run_of_four)
    assert rows(run_of_four) == rows(finished.folder)[:4]


def test_snapshot_with_a_missing_environment_class_is_reported(run_of_four, monkeypatch, capsys):
    from meta_policy_search.envs.point_envs import point_env_2d_corner

    before = contents(run_of_four)
    capsys.readouterr()
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
    assert f"To resume after iteration {snapshot['itr']}: meta-policy-search resume run, or in Python" in out


def test_ctrl_c_before_the_first_snapshot(tmp_path, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(mps.run, "build_trainer", interrupt)
    assert run(pro_mp, "--dump_path", tmp_path / "run") == 130
    assert not (tmp_path / "run").exists()
