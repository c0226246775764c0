"""Checks an installed wheel: files, the import of every module, training, the command line and the Python interface.

Usage: `python check_installed.py FILE.whl`, with the Python interpreter of the environment with the installed wheel.
"""
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

import meta_policy_search
import meta_policy_search as mps
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import make_env, normalize
from meta_policy_search.meta_algos import ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler
from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed

CHECKOUT = Path(__file__).resolve().parent.parent
NUM_TASKS, NUM_ROLLOUTS, NUM_STEPS, NUM_ITERATIONS = 2, 2, 10, 2


def check_files(wheel: str) -> None:
    """Checks that the wheel contains every file of the package and no other files."""
    files = (path.relative_to(CHECKOUT) for path in (CHECKOUT / "meta_policy_search").rglob("*") if path.is_file())
    in_checkout = {
        path.as_posix() for path in files if not any(part.startswith((".", "__pycache__")) for part in path.parts)
    }
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    if in_wheel != in_checkout:
        sys.exit("wheel: expected exactly the files of the package, got missing files "
                 f"{sorted(in_checkout - in_wheel)} and additional files {sorted(in_wheel - in_checkout)}")
    print(f"{len(in_wheel)} files of the package are in the wheel")


def check_imports() -> None:
    """Imports every module, and checks that it comes from the environment and not from the checkout."""
    folder = Path(meta_policy_search.__file__).resolve().parent
    if CHECKOUT in folder.parents:
        sys.exit(f"import: expected the installed package, got {folder}")
    names = [module.name for module in pkgutil.walk_packages(meta_policy_search.__path__, "meta_policy_search.")]
    for name in names:
        importlib.import_module(name)
    print(f"{len(names)} modules imported from {folder}")


def check_training() -> None:
    """Trains for two iterations on a robot, which requires its data file and worker processes."""
    set_seed(1)
    env = normalize(make_env("HalfCheetahRandDirecEnv"))
    policy = MetaGaussianMLPPolicy(NUM_TASKS, env.observation_space.shape[0], env.action_space.shape[0])
    sampler = MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS, parallel=True)
    processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    algo = ProMP(policy, meta_batch_size=NUM_TASKS)
    before = policy.get_param_values()
    with logger.scoped_configure("run", format_strs=["line", "csv"]):
        Trainer(algo, env, sampler, processor, policy, n_itr=NUM_ITERATIONS).train()
    sampler.close()
    after = policy.get_param_values()
    if not all(np.isfinite(after[name]).all() and (after[name] != before[name]).any() for name in before):
        sys.exit("training: expected changed and finite parameters, got others")
    rows = Path("run/progress.csv").read_text(encoding="utf-8").splitlines()[1:]
    if len(rows) != NUM_ITERATIONS or not Path("run/params.pkl").is_file():
        sys.exit(f"training: expected {NUM_ITERATIONS} rows and a snapshot, got {len(rows)} rows")
    print("training completed and wrote its run folder")


COMMANDS = """
    --version
    envs
    algorithms
    pretrained
    train pro-mp --env own:OwnEnv --smoke --dump_path data/own
    plot data/own
    runs data
"""
SMALL = {"meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "progress_bar": False}


def check_commands() -> None:
    """Runs the sweep of the README and the commands above, with an environment from a module in the current folder."""
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (sweep,) = re.findall(r"^echo '.*?^meta-policy-search sweep .*?$", readme, flags=re.DOTALL | re.MULTILINE)
    sweep = sweep.replace("[0.05, 0.1]", "[0.1]").replace("[1, 2]", "[1]")
    commands = "\n".join(f"meta-policy-search {line}" for line in COMMANDS.strip().splitlines())
    Path("own.py").write_text("from meta_policy_search import MetaPointEnvCornerGoals\n\n"
                              "class OwnEnv(MetaPointEnvCornerGoals):\n    pass\n")
    env = {**os.environ, "SMOKE": "1", "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    subprocess.run(["bash", "-euxc", f"{commands}\n{sweep}"], env=env, check=True)
    for name in ("data/own/params.pkl", "data/own/comparison.png"):
        if not Path(name).is_file():
            sys.exit(f"commands: expected the file {name}")


def check_python() -> None:
    """Calls the functions of the Python interface."""
    mps.register_env("CornerEnv-v0", mps.MetaPointEnvCornerGoals)
    mps.register_algorithm("mine", mps.VPGMAML)
    run = mps.train("CornerEnv-v0", "mine", n_itr=2, policy=mps.MetaGaussianMLPPolicy,
                    callbacks=[mps.EvalCallback(every=1, tasks=2)], **SMALL)
    adapted = run.adapt()
    if not np.isfinite(adapted.act([0.0, 0.0])).all() or len(run.progress["Itr"]) != 2 or run.best.policy is None:
        sys.exit("python: expected finite actions, two rows and a best policy")
    mps.load_pretrained("half_cheetah_direction/promp")
    print(f"{len(mps.pretrained())} pretrained policies")


if __name__ == "__main__":
    check_files(sys.argv[1])
    check_imports()
    check_training()
    check_commands()
    check_python()
