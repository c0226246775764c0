"""Training from the command line and scripts: settings, run folders, resuming, wrong arguments and Ctrl-C."""
import contextlib
import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import meta_policy_search as mps
from experiments import dice_maml, e_maml, maml_trpo, pro_mp, vpg_maml
from experiments.reproduction.reference import METHODS, WORLDS
from meta_policy_search import run_folder
from meta_policy_search.cli.main import main
from meta_policy_search.plotting import curves
from meta_policy_search.run import check_settings, settings_of_algorithm
from meta_policy_search.utils.snapshotter import load_snapshot
from meta_policy_search.utils.threads import blas_kernels
from tests.helpers import commands
from tests.helpers.processes import ROOT, start
from tests.helpers.runs import read_rows

SCRIPTS = {"pro_mp": pro_mp, "maml_trpo": maml_trpo, "e_maml": e_maml, "vpg_maml": vpg_maml, "dice_maml": dice_maml}
POINT = ("--env", "MetaPointEnv")


def run(script, *arguments):
    """Runs a script in this process; returns the exit status."""
    return script.main([str(argument) for argument in arguments])


@pytest.fixture
def settings_of(monkeypatch, capsys):
    """Returns a function that returns the arguments of `train` for a command line, without training."""
    def settings_of(script, *arguments):
        called = []

        @functools.wraps(mps.train)
        def train(**settings):
            called.append(settings)
            raise ValueError("this is all that was asked for")

        with monkeypatch.context() as patch:
            patch.setattr(mps.run, "train", train)
            patch.setattr(mps, "train", train)
            said = commands.mistake(script.main if script else main, capsys, *arguments)
            assert "this is all" in said
        return called[0]

    return settings_of


def contents(folder):
    """Returns the files of a folder by name, without the lock file, which lock checks may create."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != ".lock"}


def params(folder):
    return json.loads(Path(folder, "params.json").read_text())


def write_json(path, content):
    path.write_text(json.dumps(content))
    return path


class Finished:
    """A run of 12 iterations: flags, folder (tests must not change it), output, and rows when it was drawn."""

    def __init__(self, folder, monkeypatch):
        config_file = write_json(folder / "settings.json", {"env": "MetaPointEnvCorner", "plot_gap": 5,
                                                            "env_kwargs": {"reward_type": "dense"}, "inner_lr": 1})
        self.folder = folder / "run"
        self.flags = ["--smoke", "--config_file", str(config_file), "--meta_batch_size", "3"]
        self.drawn_after = []
        draw = curves.plot_learning_curve
        monkeypatch.setattr(curves, "plot_learning_curve", lambda where: (
            self.drawn_after.append(len(read_rows(where))), draw(where)))
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


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.thorough(ci=("e_maml", "rl2"))
def test_each_script_runs_to_its_end(name, tmp_path, monkeypatch, capsys):
    """With SMOKE=1 and no folder, the last lines name a new folder with all files and the gain.

    Two scripts run in separate processes: as a file and as a module.
    """
    monkeypatch.setenv("SMOKE", "1")
    monkeypatch.chdir(tmp_path)
    how = {"pro_mp": [ROOT / "experiments" / "pro_mp.py"], "vpg_maml": ["-m", "experiments.vpg_maml", *POINT]}
    if name in how:
        process = start(*how[name], cwd=tmp_path)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
    else:
        assert run(SCRIPTS[name], *POINT) == 0
        out = capsys.readouterr().out
    env = "HalfCheetahRandDirecEnv" if name == "pro_mp" else "MetaPointEnv"
    (folder,) = (tmp_path / "data" / SCRIPTS[name].ALGORITHM / env).iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_seed1", folder.name)
    *lines, gain, last = out.splitlines()
    assert sum(line.startswith("itr ") for line in lines) == 2
    assert last == f"Run folder: {folder}"
    assert "95% interval over tasks" in gain and "last iteration with" in gain
    assert {file.name for file in folder.iterdir()} == {
        ".lock", "params.json", "progress.csv", "log.txt", "params.pkl", "itr_0.pkl", "learning_curve.png"}
    assert [row["Itr"] for row in read_rows(folder)] == ["0", "1"]
    assert gain in (folder / "log.txt").read_text()
    assert params(folder)["algorithm"] == SCRIPTS[name].ALGORITHM and params(folder)["settings"]["env"] == env


@pytest.mark.thorough
def test_gain_sentence_agrees_with_the_rows(finished):
    last = read_rows(finished.folder)[-3:]  # the last quarter of 12
    gains, half_widths, before, after = (
        np.array([float(row[key]) for row in last])
        for key in ("AdaptationGain", "AdaptationGainCI95", "Step_0-AverageReturn", "Step_1-AverageReturn"))
    deviations = half_widths / stats.t.ppf(0.975, 3 - 1)  # pooled: 3 times 3 tasks
    mean, half_width = gains.mean(), stats.t.ppf(0.975, 3 * (3 - 1)) * np.sqrt((deviations**2).sum()) / 3
    assert (
        f"\nAdaptation changes the return by {mean:+.2f} (95% interval over tasks {mean - half_width:+.2f} to "
        f"{mean + half_width:+.2f}), from {before.mean():.2f} to {after.mean():.2f}: mean of the last 3 iterations, "
        f"each with 3 sampled tasks and 2 paths per task\nRun folder: {finished.folder}\n") in finished.output
    np.testing.assert_allclose(after.mean() - before.mean(), mean)


def test_params_json_records_the_run(finished):
    content = params(finished.folder)
    chosen = {"env": "MetaPointEnvCorner", "env_kwargs": {"reward_type": "dense"}, "inner_lr": 1.0, "n_itr": 12,
              "meta_batch_size": 3, "rollouts_per_meta_task": 2, "max_path_length": 10, "hidden_sizes": [8], "seed": 1,
              "clip_eps": 0.3, "discount": 0.99, "baseline": "LinearFeatureBaseline"}
    assert {name: content["settings"][name] for name in chosen} == chosen
    assert content["options"]["plot_gap"] == 5 and content["options"]["parallel"] is False
    assert content["settings"].keys().isdisjoint(content["options"])
    assert content["algorithm"] == "promp" and {"inner_lr", "meta_batch_size"} <= set(content["given"])
    assert content["versions"]["numpy"] == np.__version__
    assert set(content["versions"].values()).isdisjoint({None, ""})
    assert content["tensorflow_flags"].keys() >= {"TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS"}
    assert content["machine"]["cores"] >= 1 and content["machine"]["physics_engine"] == "mujoco"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", content["started"])
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    revision = content["git_revision"]
    assert revision is None if git.returncode else revision.removesuffix("-dirty") in git.stdout


def test_learning_curve_is_plotted_during_the_run(finished):
    """A callback draws the rows before the current one; after training, the picture has all rows."""
    assert finished.drawn_after == [5, 10, 12]
    assert (finished.folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_diagnostics_are_logged_and_plotted(tmp_path):
    assert run(maml_trpo, "--smoke", *POINT, "--diagnostics", "--dump_path", tmp_path / "run") == 0
    assert {"MetaGradVariance", "PrePostGradCosine"} <= set(read_rows(tmp_path / "run")[0])
    assert (tmp_path / "run" / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


# Settings --------------------------------------------------------------------------------------------------------


def test_argument_without_type_and_default_has_those_of_another_part():
    class Plain(mps.MetaGaussianMLPPolicy):
        def __init__(self, meta_batch_size, obs_dim, action_dim, name="policy"):
            super().__init__(meta_batch_size, obs_dim, action_dim, name)

    setting = settings_of_algorithm(mps.ProMP, Plain)["meta_batch_size"]
    assert (setting.hint, setting.default) == (int, 20)


def test_pro_mp_has_the_published_settings():
    """arXiv:1810.06784, appendix D, and its run script for MuJoCo."""
    known = settings_of_algorithm(mps.ProMP)
    settings = {name: setting.default for name, setting in known.items()} | pro_mp.PUBLISHED
    published = {
        "env": "HalfCheetahRandDirecEnv", "baseline": "LinearFeatureBaseline", "meta_batch_size": 40,
        "rollouts_per_meta_task": 20, "max_path_length": 100, "discount": 0.99, "gae_lambda": 1.0,
        "normalize_adv": True, "hidden_sizes": (64, 64), "hidden_nonlinearity": "tanh", "learn_std": True,
        "inner_lr": 0.1, "learning_rate": 1e-3, "num_ppo_steps": 5, "clip_eps": 0.3, "target_inner_step": 0.01,
        "init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False, "n_itr": 1001, "num_inner_grad_steps": 1}
    assert {name: settings[name] for name in published} == published


def test_flags_override_smoke_and_smoke_overrides_the_file(tmp_path, settings_of):
    config_file = write_json(tmp_path / "a.json", {"n_itr": 500, "hidden_sizes": [32], "inner_lr": 0.2, "seed": 7})
    found = settings_of(pro_mp, "--config_file", config_file, "--smoke", "--n_itr", 6, "--inner_lr", 0.3,
                        "--dump_path", tmp_path / "run")
    chosen = {"seed": 7, "hidden_sizes": (8,), "n_itr": 6, "inner_lr": 0.3, "clip_eps": 0.3, "algo": "promp",
              "plot_gap": 20, "env": "HalfCheetahRandDirecEnv", "dump_path": str(tmp_path / "run")}
    assert {name: found[name] for name in chosen} == chosen


@pytest.mark.parametrize("text, value", [("False", False), ("false", False), ("True", True)])
def test_flag_of_true_or_false_takes_a_value(settings_of, text, value):
    assert settings_of(None, "train", "promp", *POINT, f"--normalize_adv={text}")["normalize_adv"] is value


def test_every_type_of_flag(settings_of):
    found = settings_of(
        None, "train", "promp", "--hidden_sizes", 16, 8, "--no-normalize_adv", "--parallel", "--envs_per_task", 4,
        "--env_kwargs", '{"inertials": "modern"}', "--output_nonlinearity", "tanh", "--hidden_nonlinearity", "none",
        "--discount", 1, "--log_formats", "csv", "--adapt_params", "head", "--learning_rate",
        '{"start": 0.1, "end": 0, "num_updates": 5}', "--tf_optimizer_cls", "RMSProp")
    assert found == {
        "env": "HalfCheetahRandDirecEnv", "algo": "promp", "plot_gap": 20, "hidden_sizes": [16, 8],
        "normalize_adv": False, "parallel": True, "envs_per_task": 4, "env_kwargs": {"inertials": "modern"},
        "output_nonlinearity": "tanh", "hidden_nonlinearity": None, "discount": 1, "log_formats": ["csv"],
        "adapt_params": ["head"], "learning_rate": {"start": 0.1, "end": 0, "num_updates": 5},
        "tf_optimizer_cls": "RMSProp"}
    for words in (["4", "5"], ["4,5"], ["[4, 5]"]):
        assert settings_of(None, "train", "promp", *POINT, "--hidden_sizes", *words)["hidden_sizes"] == [4, 5]
    assert settings_of(None, "train", "rl2", "--cell", "lstm")["cell"] == "lstm"
    assert settings_of(pro_mp, "--snapshot_mode", "none")["snapshot_mode"] == "none"
    assert all(settings_of(pro_mp, "--target_kl", text)["target_kl"] is None for text in ("none", "None", "null"))


def test_smoke_can_be_set_as_environment_variable(monkeypatch, settings_of):
    for value, n_itr in {"1": 2, "0": 1001, "": 1001}.items():
        monkeypatch.setenv("SMOKE", value)
        assert settings_of(pro_mp)["n_itr"] == n_itr


@pytest.mark.parametrize("path", [path for path in sorted((ROOT / "experiments" / "configs").iterdir())
                                  if not path.name.startswith("sweep_")], ids=lambda path: path.name)
def test_presets_are_settings_of_their_script(path):
    algos = {f"reference_{world}_{name}": method.algo for world in WORLDS for name, method in METHODS.items()}
    check_settings(algos.get(path.stem, "trpo_maml" if path.name.startswith("maml_") else "promp"),
                   json.loads(path.read_text()))


@pytest.mark.parametrize("name", ["promp", "rl2", "cem", "ddpg"])
def test_help_explains_every_setting_that_a_flag_can_express(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", name, "--help"])
    text = capsys.readouterr().out
    flags = set(re.findall(r"^  --(\w+)", text, flags=re.MULTILINE))
    known = settings_of_algorithm(mps.get_algorithm(name))
    assert stop.value.code == 0
    assert {"env", "seed", "n_itr", "discount", "max_path_length"} <= flags <= {
        *known, "config_file", "dump_path", "resume", "smoke", "no"}
    assert all(setting.help for setting in known.values())
    assert "Default" not in text.partition("settings of this algorithm")[2].replace("(default", "")


def test_default_environment_is_named_first(tmp_path, capsys):
    assert main(["train", "vpg_maml", "--smoke", "--n_itr", "1", "--dump_path", str(tmp_path / "a")]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("--env was not given: training on HalfCheetahRandDirecEnv, the default of vpg_maml")
    assert second.startswith("HalfCheetahRandDirecEnv, seed 1")


# Wrong arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    (["--env", "my_envs.HeaterEnv"], r"env: expected .*, got 'my_envs.HeaterEnv'; did you mean 'my_envs:HeaterEnv'\?"),
    (["--env", "my_envs.py"], r"env: expected .*, got 'my_envs.py'; did you mean 'my_envs:NAME'\?"),
    (["--env", "./my_envs:HeaterEnv"], r"env: expected .*; did you mean 'my_envs:HeaterEnv'\?"),
    (["--env", "my_envs:HeaterEnv"], r"env: .* No module named 'my_envs'. Run in the folder of the module"),
    (["--env", "tests.helpers.sampling:Wanderr"], r"env: expected .*, got .*; did you mean 'Wanderer'\?"),
    (["--n_itr", "many"], r"n_itr: expected an integer of at least 1, got 'many'"),
    (["--env_kwargs", "{"], r"env_kwargs: expected a dict, in JSON .*, such as {\"max_velocity\": 2.0}, got '{'"),
    (["--log_formats", "line"], r"log_formats: expected formats including 'csv', got \['line'\]"),
    (["--parallel", "all"], r"parallel: expected .*, got 'all'"),
    (["--inner_ir", "0.1"], r"unrecognized arguments: --inner_ir 0.1; did you mean '--inner_lr'\?"),
    (["--envs", "MetaPointEnvCorner"], r"unrecognized arguments: --envs MetaPointEnvCorner; did you mean '--env'\?"),
    (["--cell", "gru"], r"unrecognized arguments: --cell gru; it is a setting of rl2"),
    (["--fast-lr", "3"], r"unrecognized arguments: --fast-lr 3; use inner_lr"),
    (["--env", "walker_env"], r"env: expected .*; did you mean 'Walker.*'\? Write your own class as MODULE:NAME"),
    (["--gamma", "0.9"], r"unrecognized arguments: --gamma 0.9; use discount"),
    (["--seed", "1", "2"], r"unrecognized arguments: 2; write each value after its flag \(most flags take one value\)"),
    (["--first_order", "yes"], "first_order: expected True or False, got 'yes'"),
    (["--meta-batch-size=3"], r"unrecognized arguments: --meta-batch-size=3"),
    (["--config_file", "missing.json"], r"could not read missing.json: .*No such file"),
    (["--resume"], r"dump_path: expected the folder of the run, because resume=True was given, got None"),
])
def test_wrong_settings_are_reported_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    env = () if "--env" in arguments else POINT
    error = commands.mistake(pro_mp.main, capsys, "--smoke", *env, *arguments)
    assert re.fullmatch(f"pro_mp.py: error: {message}.*\n", error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content, message", [
    ({"inner_rl": 0.1}, r"unknown setting 'inner_rl' for ProMP with MetaGaussianMLPPolicy; did you mean 'inner_lr'\?"),
    ({"hidden_sizes": [64, "x"]}, r"hidden_sizes.*'x'.*"),
    ([1], r".*a.json: expected a JSON object, got list"),
    ({"algo": "vpg_maml"}, ".*a.json: expected no 'algo', because the command already names the algorithm promp"),
    ({"settings": {}, "grid": {"inner_lr": [0.1, 0.2]}}, ".*a.json: expected the settings of one run, got .*"),
])
def test_wrong_config_files_are_reported(content, message, tmp_path, capsys):
    path = write_json(tmp_path / "a.json", content)
    error = commands.mistake(pro_mp.main, capsys, "--config_file", path, "--dump_path", tmp_path / "run")
    assert re.fullmatch(f"pro_mp.py: error: {message}\n", error) and not (tmp_path / "run").exists()


def test_config_file_contains_each_key_once(tmp_path, capsys):
    (path := tmp_path / "a.json").write_text('{"seed": 1, "n_itr": 2, "seed": 3}')
    error = commands.mistake(pro_mp.main, capsys, "--config_file", path)
    assert "a.json as JSON: expected each key once, got 'seed' several times" in error


def test_config_file_can_name_the_run_folder(tmp_path, settings_of):
    path = write_json(tmp_path / "a.json", {"dump_path": "mine", "n_itr": 4})
    assert settings_of(pro_mp, "--config_file", path)["dump_path"] == "mine"
    assert settings_of(pro_mp, "--config_file", path, "--dump_path", "other")["dump_path"] == "other"


def test_the_folder_of_resume_comes_first(finished_copy, capsys):
    resume = functools.partial(commands.run, "resume")
    assert "RUN_FOLDER: expected the folder before the flags, got --n_itr" in commands.mistake(
        resume, capsys, "--n_itr", 5, finished_copy)
    assert f"completed iterations of {finished_copy}, got 1" in commands.mistake(  # the only run below the folder
        resume, capsys, finished_copy.parent, "--n_itr", 1)
    path = finished_copy / "params.pkl"
    assert f"expected a run folder, got the file {path}" in commands.mistake(resume, capsys, path)


@pytest.mark.parametrize("name", ["params.json", "progress.csv", "params.pkl", "itr_0.pkl"])
def test_no_file_of_an_earlier_run_or_of_another_program_is_overwritten(name, tmp_path, capsys):
    """A folder with any single file of a run, or with a file of this name, is refused, and the file is unchanged."""
    (tmp_path / name).write_text("weights of another program")
    if name == "params.json":  # of a run without snapshots
        write_json(tmp_path / name, {"settings": {}, "options": {"snapshot_mode": "none"}})
    before = contents(tmp_path)
    message = commands.mistake(pro_mp.main, capsys, "--smoke", *POINT, "--dump_path", tmp_path)
    remedy = "resume it (meta-policy-search resume" if name.endswith(".pkl") else "it has no snapshot and cannot be"
    assert f"{tmp_path} already contains a run: {remedy}" in message
    assert contents(tmp_path) == before


def test_folder_can_be_used_after_an_error(tmp_path, capsys):
    arguments = ["--smoke", *POINT, "--n_itr", 1, "--dump_path", tmp_path]
    commands.mistake(vpg_maml.main, capsys, *arguments, "--learning_rate", -1)
    assert run(vpg_maml, *arguments) == 0


# Resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["shell", "python"])
@pytest.mark.thorough(but="shell")
def test_runs_of_shell_and_python_resume_each_other(first, finished, tmp_path, capsys):
    """The `params.json` of both have the same form, and the resumed run equals an uninterrupted one."""
    folder = tmp_path / "run"
    settings = {name: params(finished.folder)["settings"][name] for name in (
        "env", "env_kwargs", "inner_lr", "meta_batch_size", "rollouts_per_meta_task", "max_path_length", "hidden_sizes",
        "clip_eps", "init_inner_kl_penalty", "adaptive_inner_kl_penalty")}
    if first == "shell":
        run(pro_mp, *finished.flags, "--n_itr", 2, "--dump_path", folder)
        mps.load_run(folder).resume(4)
    else:
        mps.train(algo="promp", n_itr=2, dump_path=folder, **settings)
        assert main(["resume", str(folder), "--n_itr", "4"]) == 0
    assert read_rows(folder) == read_rows(finished.folder)[:4]
    assert {**params(folder)["settings"], "n_itr": 12} == params(finished.folder)["settings"]
    assert [process["itr"] for process in params(folder)["resumed"]] == [2]


def test_help_of_resume_lists_what_can_be_changed_with_the_values_of_the_run(finished, capsys):
    with pytest.raises(SystemExit):
        main(["resume", str(finished.folder), "--help"])
    said = capsys.readouterr().out
    flags = {}
    for part in ("can be changed", "must equal those of the run"):
        flags[part] = said.partition(f"\n{part}:\n")[2].partition("\n\n")[0]
    options = params(finished.folder)["options"]
    for name in ("n_itr", *options):
        assert ("  --" + name + " " in flags["can be changed"]) is (name not in ("eval_every", "eval_tasks")), name
    assert "  --inner_lr " in flags["must equal those of the run"] and "  --inner_lr " not in flags["can be changed"]
    assert f"(default: {options['snapshot_mode']})" in " ".join(flags["can be changed"].split())


@pytest.mark.thorough
def test_a_resumed_run_keeps_its_settings(finished_copy, capsys):
    before = contents(finished_copy)

    def refusal(*arguments):
        return commands.mistake(main, capsys, "resume", finished_copy, *arguments)

    assert refusal("--n_itr", 13, "--inner_lr", 0.2, "--seed", 1, "--hidden_sizes", 8, 8).endswith(
        "error: settings differ: inner_lr 1 (run), 0.2 (now); hidden_sizes [8] (run), [8, 8] (now). A resumed run "
        "keeps its settings\n")
    assert "n_itr: expected more than the 12 completed iterations of " in refusal()
    assert "unrecognized arguments: --inner_rl 3" in refusal("--inner_rl", 3)
    assert contents(finished_copy) == before
    for snapshot in finished_copy.glob("*.pkl"):
        snapshot.unlink()
    with pytest.raises(SystemExit):
        main(["resume", str(finished_copy), "--n_itr", "13"])
    assert "contains no snapshot" in capsys.readouterr().err


def test_a_run_that_ended_before_its_first_snapshot_starts_again(finished_copy, finished, capsys):
    """Given the files of a run that was killed after its first row, the same command starts it again."""
    for name in ("params.pkl", "itr_0.pkl"):
        (finished_copy / name).unlink()
    lines = (finished_copy / "progress.csv").read_text().splitlines()
    (finished_copy / "progress.csv").write_text("\n".join(lines[:2]) + "\n")
    assert run_folder.ended_before_first_snapshot(str(finished_copy))
    run(pro_mp, *finished.flags, "--n_itr", 3, "--dump_path", finished_copy)
    assert read_rows(finished_copy) == read_rows(finished.folder)[:3]


@pytest.mark.thorough
def test_resuming_on_another_platform_warns(finished_copy, capsys):
    content = params(finished_copy)
    content["versions"]["numpy"], content["machine"]["cores"] = "1.0", 1000
    content["machine"]["blas_kernels"] = "Prescott of another machine"
    write_json(finished_copy / "params.json", content)
    assert main(["resume", str(finished_copy), "--n_itr", "13"]) == 0
    cores = params(finished_copy)["resumed"][0]["machine"]["cores"]
    warning = re.search("^warning: the resumed run may differ.*", capsys.readouterr().out, flags=re.MULTILINE)[0]
    assert f"numpy '1.0' (before), '{np.__version__}' (now); cores 1000 (before), {cores} (now)" in warning
    assert f"blas_kernels 'Prescott of another machine' (before), '{blas_kernels()}' (now)" in warning


# Failures and Ctrl-C ---------------------------------------------------------------------------------------------


def test_error_in_training_is_one_line_with_its_traceback_in_the_log(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise ValueError("something is wrong")

    monkeypatch.setattr(mps.VPGMAML, "optimize_policy", fail)
    with pytest.raises(SystemExit) as stop:
        run(vpg_maml, "--smoke", *POINT, "--dump_path", tmp_path / "run")
    assert stop.value.code == 2 and capsys.readouterr().err == "vpg_maml.py: error: something is wrong\n"
    assert 'raise ValueError("something is wrong")' in (tmp_path / "run" / "log.txt").read_text()
    assert params(tmp_path / "run")["error"] == "ValueError"


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
    assert len(read_rows(tmp_path / "run")) >= snapshot["itr"] + 1 >= 2  # row 2 is printed before its snapshot is saved
    assert f"To resume after iteration {snapshot['itr']}: meta-policy-search resume run, or in Python" in out


def test_ctrl_c_before_the_first_iteration(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mps.run, "build_trainer", interrupt)
    assert run(pro_mp, "--dump_path", tmp_path / "run") == 130 and not (tmp_path / "run").exists()


@pytest.mark.thorough(but="flags1")
@pytest.mark.parametrize("flags", [["rl2"], ["cem"], ["vpg_maml", "--env_kwargs", '{"reward_type": "dense"}']])
def test_a_run_is_repeated_with_its_params_json(flags, tmp_path):
    folder, again = tmp_path / "a", tmp_path / "b"
    flags = [*flags, "--smoke", "--env", "MetaPointEnvCorner", "--plot_gap", "5", "--dump_path", str(folder)]
    assert main(["train", *flags]) == 0
    assert main(["train", flags[0], "--config_file", f"{folder}/params.json", "--dump_path", str(again)]) == 0
    assert params(folder)["settings"] == params(again)["settings"]
    assert params(folder)["options"] == params(again)["options"]
