"""Tests the command line of the package: commands, resuming, user modules and errors before TensorFlow is loaded."""
import functools
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

import meta_policy_search as mps
from meta_policy_search.cli.main import COMMANDS, main
from meta_policy_search.envs import registry as env_registry
from meta_policy_search.plotting import read_progress
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.run_folder import read_params
from meta_policy_search.utils import logger
from tests.helpers import commands
from tests.helpers.processes import start

mistake = functools.partial(commands.mistake, main)
ONE = ("--env", "MetaPointEnvCorner", "--smoke", "--n_itr", "1")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
    (["trains"], "error: expected one of the commands demo, train, .*, got 'trains'; did you mean 'train'?"),
    (["train", "--algo", "promp"], "expected the algorithm before the flags, as in .* train promp .*, got --algo"),
    (["train", "prompt"], "train: error: algo: expected one of .*, got 'prompt'; did you mean 'promp'?"),
    (["train", "nowhere:A"], "expected MODULE:NAME with a module that can be imported, got 'nowhere:A'"),
    (["resume", "nowhere"], "resume: error: nowhere cannot be resumed: .*No such file or directory"),
    (["resume", "."], "resume: error: . cannot be resumed: folder: expected a run folder .*, got ., which "),
    *(([*command, ""], f"error: argument {command[-1]}: expected a path, got ''") for command in (
        ["train", "promp", "--dump_path"], ["plot", "run", "--output"])),
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
    params = read_params(str(folder))
    assert params["algorithm"] == "promp" and params["command"] == [os.path.basename(sys.argv[0]), *sys.argv[1:]]


def test_lists_of_environments_and_algorithms(capsys):
    for command, names in (("envs", mps.available_envs()), ("algorithms", mps.available_algorithms())):
        assert main([command]) == 0
        table = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in table[1:]] == names and table[0].split()[1] == "description"
        assert main([command, "--json"]) == 0
        texts = json.loads(capsys.readouterr().out)
        assert list(texts) == names and all(texts.values())


MODULE = """
import meta_policy_search as mps

built = []

class MyEnv(mps.MetaPointEnvCorner):
    pass

class Short(mps.TRPOMAML):
    def __init__(self, policy, inner_lr=0.1, meta_batch_size=20):
        super().__init__(policy, inner_lr=inner_lr, meta_batch_size=meta_batch_size)

class MyAlgorithm(mps.VPGMAML):
    def __init__(self, policy, bonus=0.0, inner_lr=0.2, learning_rate=1e-3, meta_batch_size=20):
        super().__init__(policy, inner_lr=inner_lr, learning_rate=learning_rate, meta_batch_size=meta_batch_size)
        built.append((bonus, inner_lr, learning_rate))

mps.register_env("MyEnv-v0", MyEnv)
"""


PARTS = """
evaluated = []

class Processor(mps.MetaSampleProcessor):
    def __init__(self, baseline, reward_bonus=0.0, **kwargs):
        super().__init__(baseline, **kwargs)
        self.reward_bonus = reward_bonus

class SmallPolicy(mps.MetaGaussianMLPPolicy):
    def __init__(self, meta_batch_size, obs_dim, action_dim, hidden_sizes=(8,), gain=1.0):
        super().__init__(meta_batch_size, obs_dim, action_dim, hidden_sizes=hidden_sizes)
        self.gain = gain

class Scaled(mps.NormalizedEnv):
    def __init__(self, env, scale=1.0):
        super().__init__(env)
        self.scale = scale

class Evaluator(mps.MetaEvaluator):
    def evaluate(self, *args, **kwargs):
        evaluated.append(WithParts)
        return super().evaluate(*args, **kwargs)

class WithParts(mps.VPGMAML):
    env_wrappers = (Scaled,)
    sample_processor_cls = Processor
    evaluator_cls = Evaluator
    default_settings = {**mps.VPGMAML.default_settings, "inner_lr": 0.3}

    @classmethod
    def policy_cls(cls, is_discrete):
        return SmallPolicy
"""


@pytest.fixture
def my_module(monkeypatch):
    Path("my_module_of_a_user.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(env_registry.ENVS, "entries", dict(env_registry.ENVS.entries))
    yield "my_module_of_a_user"
    sys.modules.pop("my_module_of_a_user", None)


@pytest.mark.thorough
def test_environment_and_algorithm_of_a_user_module(my_module):
    """Constructor arguments of the algorithm are flags, with the defaults of the constructor."""
    algorithm, env = f"{my_module}:MyAlgorithm", f"{my_module}:MyEnv-v0"
    assert main(["train", algorithm, "--env", env, "--smoke", "--n_itr", "1", "--bonus", "0.5"]) == 0
    assert sys.modules[my_module].built == [(0.5, 0.2, 1e-3)]
    (folder,) = Path("data", "MyAlgorithm", "MyEnv-v0").iterdir()
    params = read_params(str(folder))
    assert params["algorithm"] == algorithm
    assert {"env": env, "bonus": 0.5, "inner_lr": 0.2}.items() <= params["settings"].items()
    assert type(mps.make_env(f"{my_module}:MyEnv")) is sys.modules[my_module].MyEnv
    logger.reset()
    assert main(["resume", str(folder), "--n_itr", "2"]) == 0 and len(read_progress(folder)["Itr"]) == 2


def test_settings_of_a_user_algorithm_are_checked(my_module, capsys):
    arguments = ["train", f"{my_module}:MyAlgorithm", *ONE]
    assert "inner_lr: expected a finite number of at least 0, got -1" in mistake(capsys, *arguments, "--inner_lr", -1)
    assert "unrecognized arguments: --max_grad_norm 1" in mistake(capsys, *arguments, "--max_grad_norm", 1)
    arguments[1] = f"{my_module}:Short"
    assert "unrecognized arguments: --cg_iters 3" in mistake(capsys, *arguments, "--cg_iters", 3)


@pytest.mark.thorough
def test_parts_of_a_user_algorithm_are_used(my_module, capsys):
    """Class attributes choose the parts, and the arguments of these are settings, in Python and as flags."""
    Path(f"{my_module}.py").write_text(MODULE + PARTS)
    algorithm = f"{my_module}:WithParts"
    flags = ["--reward_bonus", "2", "--scale", "0.5"]
    assert main(["train", algorithm, *ONE, *flags, "--dump_path", "shell"]) == 0
    module = sys.modules[my_module]
    assert settings_of_algorithm(module.WithParts)["inner_lr"].default == 0.3
    tiny = {"hidden_sizes": (8,), "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 10}
    in_python = mps.train("MetaPointEnvCorner", module.WithParts, 1, dump_path="python", reward_bonus=2, scale=0.5,
                          **tiny)
    for run in (in_python, mps.load_run("shell")):
        trainer = run.trainer
        assert type(trainer.sample_processor) is module.Processor and trainer.sample_processor.reward_bonus == 2
        assert type(trainer.policy) is module.SmallPolicy and trainer.algo.inner_lr == 0.3
        assert type(trainer.env) is module.Scaled and trainer.env.scale == 0.5
        run.evaluate(tasks=2)
        assert module.evaluated.pop() is module.WithParts
    capsys.readouterr()
    assert "algo: expected" in mistake(capsys, "train", f"{my_module}:MyEnv", *ONE)


@pytest.mark.parametrize("is_command", [True, False], ids=["command", "Python"])
@pytest.mark.thorough(but="command")
def test_policy_of_a_user_is_given_as_a_class_or_by_name(is_command, my_module):
    """Its arguments are settings."""
    Path(f"{my_module}.py").write_text(MODULE + PARTS)
    if is_command:
        assert main(["train", "vpg_maml", *ONE, "--policy", f"{my_module}:SmallPolicy", "--gain", "3",
                     "--dump_path", "run"]) == 0
        run = mps.load_run("run")
    else:
        run = mps.train("MetaPointEnvCorner", "vpg_maml", 1, dump_path="run", policy=f"{my_module}:SmallPolicy",
                        gain=3, meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=5)
    assert type(run.policy) is sys.modules[my_module].SmallPolicy and run.policy.gain == 3
    assert run.resume(2).trainer.itr == 2
    assert main(["train", "vpg_maml", "--config_file", "run/params.json", "--dump_path", "again"]) == 0
    assert mps.load_run("again").policy.gain == 3


def test_commands_without_computation_do_not_load_tensorflow(tmp_path):
    """Lists, plots and general help take less than the import of TensorFlow, and leave no folder."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "progress.csv").write_text("Itr,n_timesteps,AverageReturn\n0,1,2\n1,2,3\n")
    commands = ["runs run", "plot run", "envs", "algorithms", "--help", "--version", "trains", "train promp --env Typo"]
    program = ("import sys\nfrom meta_policy_search.cli.main import main\n"
               "for command in sys.argv[1:]:\n"
               "    try:\n        status = main(command.split())\n"
               "    except SystemExit as stop:\n        status = stop.code\n"
               "    print('status', status, 'tensorflow' in sys.modules)\n")
    out, err = start("-c", program, *commands).communicate(timeout=120)
    statuses = re.findall(r"^status (\d) (\w+)$", out, flags=re.MULTILINE)
    assert statuses == [("0", "False")] * 6 + [("2", "False")] * 2, out + err
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


@pytest.mark.thorough
def test_commands_find_modules_of_the_current_folder(my_module, tmp_path):
    """They do not replace installed modules, and `params.json` records their paths."""
    assert main(["train", "vpg_maml", "--env", f"{my_module}:MyEnv", "--smoke", "--dump_path", "run"]) == 0
    assert read_params("run")["modules"][my_module]["file"] == str(tmp_path / f"{my_module}.py")
    Path("tqdm.py").write_text("raise ImportError('a module of the user')")
    process = start("-m", "meta_policy_search", "evaluate", "run", "--num_tasks", "2")
    _, err = process.communicate()
    assert process.returncode == 0, err
