"""Compares the numbers of short training runs before and after a change of structure, bit for bit.

    python benchmarks/same_numbers.py ../before --save numbers.json     # two to four minutes on two cores
    python benchmarks/same_numbers.py . --compare numbers.json
    python benchmarks/same_numbers.py . --compare numbers.json --only rl2

Each run trains two or three iterations in a forked process. Rows without times and final parameters must be equal. Both
commands must run on the same machine with the same libraries.
"""
import argparse
import concurrent.futures
import contextlib
import hashlib
import io
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

POINT, CHEETAH, BANDIT = "MetaPointEnvCornerGoals", "HalfCheetahRandDirecEnv", "MetaBernoulliBanditEnv"
META = ("promp", "trpo_maml", "e_maml", "vpg_maml", "dice_maml", "vpg_dice_maml")
RECURRENT = {"n_itr": 2, "meta_batch_size": 4, "rollouts_per_meta_task": 3, "max_path_length": 10}
SIZES = {**RECURRENT, "hidden_sizes": (8, 8)}
SINGLE = {"n_itr": 2, "hidden_sizes": (8,), "max_path_length": 10}
Numbers = dict[str, dict[str, str]]


def cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yields name, environment, algorithm and settings of each run."""
    for algo in META:
        for steps in (0, 1, 2):
            if not (steps == 0 and algo == "e_maml"):
                yield f"{algo}-point-{steps}", POINT, algo, {**SIZES, "num_inner_grad_steps": steps}
        for name, settings in {
            "trained": {"trainable_inner_step_size": True},
            "first_order": {"first_order": True},
            "partial": {"adapt_params": "head"},
            "zero_baseline": {"baseline": "ZeroBaseline"},
            "workers": {"parallel": True},
        }.items():
            yield f"{algo}-{name}", POINT, algo, {**SIZES, **settings}
        for env in (BANDIT, "MetaTabularMDPEnv", CHEETAH, "HopperRandParamsEnv", "CartPoleMassEnv", "MetaPointEnv"):
            yield f"{algo}-{env}", env, algo, SIZES
    for name, settings in {
        "minibatches": {"num_minibatches": 2},
        "schedule": {"learning_rate": {"start": 1e-3, "end": 1e-4, "num_updates": 3}},
        "rmsprop": {"tf_optimizer_cls": "RMSProp", "max_grad_norm": 0.5},
        "entropy": {"entropy_coef": 0.01, "anneal_factor": 0.9},
        "value_network": {"baseline": "GaussianMLPBaseline"},
        "time_baseline": {"baseline": "LinearTimeBaseline"},
        "normalized": {"normalize_obs": True, "normalize_reward": True, "discount": 0.9, "gae_lambda": 0.9},
        "positive_adv": {"positive_adv": True, "normalize_adv": True},
        "context": {"context_dim": 3, "adapt_params": "context"},
        "relu": {"hidden_nonlinearity": "relu", "learn_std": False, "init_std": 0.5},
        "evaluation": {"eval_every": 1, "eval_tasks": 3},
        "oracle": {"observe_task": True},
        "diagnostics": {"diagnostics": True},
        "ant": {"env": "AntRandGoalEnv"},
    }.items():
        yield f"promp-{name}", settings.pop("env", POINT), "promp", {**SIZES, **settings}
    for inner, exploration in itertools.product(("log_likelihood", "dice", "taypo"), (False, True)):
        for algo in ("trpo_maml", "vpg_maml"):
            yield (f"{algo}-{inner}-{exploration}", POINT, algo,
                   {**SIZES, "inner_type": inner, "exploration": exploration})
    for approach in ("exact", "gauss_newton"):
        yield f"trpo_maml-{approach}", POINT, "trpo_maml", {**SIZES, "hvp_approach": approach}
    for env, settings in itertools.product((BANDIT, POINT, CHEETAH), ({}, {"cell": "lstm"}, {"num_minibatches": 2})):
        yield (f"rl2-{env}-{'-'.join(settings)}", env, "rl2",
               {**RECURRENT, "hidden_size": 8, "num_minibatches": 1, **settings})
    for algo, env in itertools.product(("cem", "cma_es"), (POINT, "Pendulum-v1", CHEETAH)):
        yield f"{algo}-{env}", env, algo, {**SINGLE, "n_samples": 20}
    for env in (POINT, "Pendulum-v1"):
        yield (f"ddpg-{env}", env, "ddpg",
               {**SINGLE, "steps_per_epoch": 2, "n_train_steps": 3, "min_buffer_size": 10, "max_path_length": 20})


def digest(value: Any) -> str:
    """Returns the hash of an array with its data type and shape."""
    import numpy as np

    array = np.ascontiguousarray(value)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def numbers_of(checkout: str, case: tuple[str, str, str, dict[str, Any]]) -> tuple[str, dict[str, str]]:
    """Trains one run; returns its name and the hashes of the columns and of the final parameters, or its error."""
    import meta_policy_search as mps

    assert mps.__file__ == f"{checkout}/meta_policy_search/__init__.py", mps.__file__
    name, env, algo, settings = case
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            run = mps.train(env, algo, seed=3, dump_path=f"{folder}/run", progress_bar=False, **settings)
            numbers = {column: digest(values) for column, values in run.progress.items() if "Time" not in column}
        return name, {**numbers, "final parameters": digest(run.policy.get_flat_params())}
    except Exception:
        return name, {"error": traceback.format_exc().strip().splitlines()[-1].replace(checkout, "")}


def record(checkout: Path, only: str) -> Numbers:
    """Trains the short runs of a checkout in forked processes; returns their numbers by name."""
    sys.path.insert(0, str(checkout))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import meta_policy_search.run  # noqa: F401  # forked processes have loaded all modules

    wanted = [case for case in cases() if only in case[0]]
    with concurrent.futures.ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        results = {}
        for name, numbers in pool.map(numbers_of, itertools.repeat(str(checkout)), wanted):
            results[name] = numbers
            print(f"\r{len(results)} of {len(wanted)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return results


def differences(old: Numbers, new: Numbers) -> list[str]:
    """Returns one line for each run that failed, that one side lacks, or whose numbers differ."""
    lines = []
    for name in {**old, **new}:
        before, numbers = old.get(name, {}), new.get(name, {})
        keys = [key for key in {**before, **numbers} if before.get(key) != numbers.get(key) or key == "error"]
        if keys:
            shown = ", ".join(f"{key} ({before.get(key)} -> {numbers.get(key)})" for key in keys[:3])
            lines.append(f"{name}: {len(keys)} of {len(numbers)} differ: {shown}")
    return lines


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Records the numbers of a checkout; saves them or compares them with saved numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="folder of the checkout")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the numbers to a JSON file")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with the numbers in a JSON file")
    parser.add_argument("--only", default="", metavar="TEXT", help="only runs whose name contains TEXT")
    options = parser.parse_args(arguments)
    numbers = record(options.checkout.resolve(), options.only)
    for name, columns in numbers.items():
        if "error" in columns:
            print(f"{name}: {columns['error']}")
    if options.save:
        options.save.write_text(json.dumps(numbers, indent=1))
    if options.compare:
        before = json.loads(options.compare.read_text())
        before = {name: columns for name, columns in before.items() if options.only in name}
        lines, count = differences(before, numbers), len({**before, **numbers})
        print("\n".join([*lines, f"{count - len(lines)} of {count} runs are equal"]))
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
