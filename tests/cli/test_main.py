"""Tests the command line of the package: commands, resuming, user modules and errors before TensorFlow is loaded."""
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import meta_policy_search as mps
from experiments import vpg_maml
from meta_policy_search import registry
from meta_policy_search.cli import record
from meta_policy_search.cli.algorithms import CONFIGS, find_config
from meta_policy_search.cli.flags import Parser
from meta_policy_search.cli.main import COMMANDS, main
from meta_policy_search.envs import registry as env_registry
from meta_policy_search.plotting import read_progress
from meta_policy_search.run import TRAIN_DEFAULTS
from meta_policy_search.utils import logger
from meta_policy_search.utils.serializable import constructor_signature

ROOT = Path(__file__).resolve().parent.parent.parent
ONE = ("--env", "MetaPointEnvCorner", "--smoke", "--n_itr", "1")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mistake(capsys, *arguments):
    """Returns the error message of a command: one line, with exit status 2."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert (stop.value.code, output.out, output.err.count("\n")) == (2, "", 1)
    return output.err


def start(*arguments):
    return subprocess.Popen([sys.executable, *arguments], env={**os.environ, "PYTHONPATH": str(ROOT)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# Commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_lists_all_commands(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    text = capsys.readouterr().out
    assert stop.value.code == 0 and all(f"\n  {name} " in text for name in COMMANDS)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"meta_policy_search {mps.__version__}\n"


@pytest.mark.parametrize("arguments, message", [
    (["trains"], "error: expected one of the commands train, .*, got 'trains'; did you mean 'train'?"),
    (["train", "prompt"], "train: error: algo: expected one of .*, got 'prompt'; did you mean 'promp'?"),
    (["train", "nowhere:A"], "expected MODULE:NAME with a module that can be imported, got 'nowhere:A'"),
    (["resume", "nowhere"], "resume: error: expected the folder of a run, got nowhere: nowhere does not exist"),
    (["resume", "."], "resume: error: expected the folder of a run, got .: . contains no params.json"),
    (["train", "promp", "--env", "MetaBernoulliBanditEnv", "--smoke", "--no-learn_std"],
     "train promp: error: learn_std: expected True, got False; a categorical policy has no standard deviation"),
])
def test_mistakes_are_reported_in_one_line_and_leave_no_folder(arguments, message, capsys):
    assert re.search(message.replace("?", r"\?"), mistake(capsys, *arguments))
    assert not os.listdir()


def test_training_creates_a_folder_with_the_name_of_the_algorithm(capsys):
    assert main(["train", "pro-mp", *ONE]) == 0
    (folder,) = Path("data", "promp", "MetaPointEnvCorner").iterdir()
    assert capsys.readouterr().out.endswith(f"Run folder: {folder.resolve()}\n")
    params = record.read_params(str(folder))
    assert params["algorithm"] == "promp" and params["command"] == ["meta-policy-search", "train", "promp", *ONE]


def train_in_python(folder):
    mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path=folder, meta_batch_size=2, rollouts_per_meta_task=2,
              max_path_length=5, hidden_sizes=())


@pytest.mark.thorough(but="script")
@pytest.mark.parametrize("train", [
    lambda folder: main(["train", "vpg_maml", *ONE, "--dump_path", folder]),
    lambda folder: vpg_maml.main([*ONE, "--dump_path", folder]), train_in_python,
], ids=["command line", "script", "python"])
def test_runs_are_resumed(train):
    train("run")
    logger.reset()
    assert main(["resume", "run", "--n_itr", "2"]) == 0
    assert list(read_progress("run")["Itr"]) == [0, 1]
    params = record.read_params("run")
    assert params["settings"]["n_itr"] == 2 and [process["itr"] for process in params["resumed"]] == [1]


def test_error_during_resumed_training_is_not_reported_as_a_wrong_folder(monkeypatch):
    main(["train", "vpg_maml", *ONE, "--dump_path", "run"])
    logger.reset()
    monkeypatch.setattr(mps.Trainer, "train", lambda trainer: float("the environment failed"))
    with pytest.raises(ValueError, match="the environment failed"):
        main(["resume", "run", "--n_itr", "2"])


def test_unknown_flag_next_to_a_flag_that_ends_in_an_underscore(capsys):
    parser = Parser("program", "")
    parser.add_argument("--lambda_")
    with pytest.raises(SystemExit):
        parser.parse_args(["--lamda_", "1"])
    assert "did you mean '--lambda_'?" in capsys.readouterr().err


def test_lists_of_environments_and_algorithms(capsys):
    for command, names in (("envs", mps.available_envs()), ("algorithms", list(CONFIGS))):
        assert main([command]) == 0
        table = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in table[1:]] == names and table[0].split()[1] == "description"
        assert main([command, "--json"]) == 0
        texts = json.loads(capsys.readouterr().out)
        assert list(texts) == names and all(texts.values())


# User modules ----------------------------------------------------------------------------------------------------

MODULE = """
import meta_policy_search as mps

built = []

class MyEnv(mps.MetaPointEnvCorner):
    pass

class MyAlgorithm(mps.VPGMAML):
    def __init__(self, policy, bonus=0.0, inner_lr=0.2, learning_rate=1e-3, meta_batch_size=20):
        super().__init__(policy, inner_lr=inner_lr, learning_rate=learning_rate, meta_batch_size=meta_batch_size)
        built.append((bonus, inner_lr, learning_rate))

mps.register_env("MyEnv-v0", MyEnv)
"""


@pytest.fixture
def my_module(monkeypatch):
    Path("my_module_of_a_user.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(env_registry, "_FACTORIES", dict(env_registry._FACTORIES))
    yield "my_module_of_a_user"
    sys.modules.pop("my_module_of_a_user", None)


def test_environment_and_algorithm_of_a_user_module(my_module):
    """Constructor arguments of the algorithm are flags, with the defaults of the constructor."""
    algorithm, env = f"{my_module}:MyAlgorithm", f"{my_module}:MyEnv-v0"
    assert main(["train", algorithm, "--env", env, "--smoke", "--n_itr", "1", "--bonus", "0.5"]) == 0
    assert sys.modules[my_module].built == [(0.5, 0.2, 1e-3)]
    (folder,) = Path("data", "MyAlgorithm", "MyEnv-v0").iterdir()
    params = record.read_params(str(folder))
    assert params["algorithm"] == algorithm
    assert {"env": env, "bonus": 0.5, "inner_lr": 0.2}.items() <= params["settings"].items()
    assert type(mps.make_env(f"{my_module}:MyEnv")) is sys.modules[my_module].MyEnv
    logger.reset()
    assert main(["resume", str(folder), "--n_itr", "2"]) == 0 and len(read_progress(folder)["Itr"]) == 2


@pytest.mark.parametrize("parent, has_return_baseline", [("DICEMAML", False), ("VPG_DICEMAML", True)])
def test_algorithm_of_a_user_has_the_settings_of_its_nearest_parent(my_module, parent, has_return_baseline):
    Path(f"{my_module}.py").write_text(MODULE.replace("VPGMAML", parent))
    names = [field.name for field in dataclasses.fields(find_config(f"{my_module}:MyAlgorithm"))]
    assert ("return_baseline" in names) == has_return_baseline


def test_settings_of_a_user_algorithm_are_checked(my_module, capsys):
    assert find_config(f"{my_module}:MyAlgorithm")(inner_lr=1).inner_lr == 1.0
    message = mistake(capsys, "train", f"{my_module}:MyAlgorithm", *ONE, "--inner_lr", -1)
    assert "inner_lr: expected a finite number of at least 0, got -1.0" in message
    assert "bonus: expected a number, got 'high'" in mistake(
        capsys, "train", f"{my_module}:MyAlgorithm", *ONE, "--bonus", "high")


# Defaults --------------------------------------------------------------------------------------------------------

OTHERS = {  # settings of the command line that are not arguments of a class: the same as these defaults of `train`
    "adapt_params": ("all",), "learning_rate_schedule": "constant", "meta_optimizer": "Adam", "observe_task": False,
    "eval_every": 0, "curvature": "gauss_newton"}
RUN = {"env", "env_kwargs", "seed", "n_itr", "log_formats", "snapshot_mode", "snapshot_gap", "plot_gap", "eval_tasks",
       "parallel", "ray_address", "ray_workers", "ray_cpus_per_worker"}


def defaults_of_train(algorithm):
    """Returns the default of each argument of `train` for an algorithm."""
    is_dice, is_rl2 = "dice" in algorithm, algorithm == "rl2"
    classes = (mps.NormalizedEnv, mps.GaussianGRUPolicy if is_rl2 else mps.MetaGaussianMLPPolicy, mps.MetaSampler,
               mps.TrialSampleProcessor if is_rl2 else mps.DiceMetaSampleProcessor if is_dice
               else mps.MetaSampleProcessor, mps.ConjugateGradientOptimizer, mps.Trainer, mps.TrialEnv,
               registry.get_algorithm(algorithm))
    found = {name: argument.default for cls in classes
             for name, argument in constructor_signature(cls).parameters.items()}
    found = {**found, **TRAIN_DEFAULTS, **OTHERS}
    if not is_rl2:
        found["baseline"] = "LinearTimeBaseline" if is_dice else "LinearFeatureBaseline"
    found["return_baseline"] = "LinearFeatureBaseline"
    found["exploration"] = algorithm == "e_maml"
    return found


@pytest.mark.parametrize("algorithm", [name for name, config in CONFIGS.items() if name in registry._ALGORITHMS])
def test_settings_have_the_defaults_of_train(algorithm):
    config, defaults = CONFIGS[algorithm](), defaults_of_train(algorithm)
    names = {field.name for field in dataclasses.fields(config)} - RUN
    shown = {name: getattr(defaults[name], "__name__", defaults[name]) for name in names}
    assert {name: vars(config)[name] for name in names} == shown


# Start-up --------------------------------------------------------------------------------------------------------


def test_commands_without_computation_do_not_load_tensorflow(tmp_path):
    """Lists, plots, help and errors in settings take less than the import of TensorFlow, and leave no folder."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "progress.csv").write_text("Itr,n_timesteps,AverageReturn\n0,1,2\n1,2,3\n")
    commands = ["runs run", "envs", "algorithms", "plot run", "--help", "--version", "train promp --help",
                "train promp --learning_rate -1", "train promp --n_itr 0", "train promp --log_formats csv xml"]
    program = ("import sys\nfrom meta_policy_search.cli.main import main\n"
               "for command in sys.argv[1:]:\n"
               "    try:\n        status = main(command.split())\n"
               "    except SystemExit as stop:\n        status = stop.code\n"
               "    print('status', status, 'tensorflow' in sys.modules)\n")
    out, err = start("-c", program, *commands).communicate(timeout=120)
    statuses = re.findall(r"^status (\d) (\w+)$", out, flags=re.MULTILINE)
    assert statuses == [("0", "False")] * 7 + [("2", "False")] * 3, out + err
    assert [line.partition("error: ")[2].partition(",")[0] for line in err.splitlines()] == [
        "learning_rate: expected a finite number above 0", "n_itr: expected an integer of at least 1",
        "log_formats: expected one of 'stdout'"]
    assert sorted(os.listdir()) == ["run"]


def test_ctrl_c_during_start_up_prints_no_traceback():
    """The process is interrupted after it has imported NumPy, before training has started."""
    process = start("-X", "importtime", "-m", "meta_policy_search", "train", "promp", "--env", "MetaPointEnvCorner")
    try:
        while not re.search(r"\| +numpy$", line := process.stderr.readline()):
            assert line, "the process ended"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT and out == "" and "Traceback" not in err
    assert not os.listdir()
