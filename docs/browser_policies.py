"""Trains the policies of the page "Adapt a policy yourself" and writes their weights.

    python docs/browser_policies.py   # docs/_static/adapt_policies.js, two minutes on two cores

One policy is trained with ProMP, the other one for all tasks without adaptation, with as many environment steps.
"""
import json
import tempfile
from pathlib import Path

import meta_policy_search as mps
from meta_policy_search.tf_compat import tf

FILE = Path(__file__).resolve().parent / "_static" / "adapt_policies.js"
SETTINGS = {"seed": 1, "meta_batch_size": 20, "rollouts_per_meta_task": 10, "normalization_scale": 1.0,
            "hidden_sizes": (32, 32), "gae_lambda": 0.95, "learning_rate": 2e-3, "clip_eps": 0.3,
            "init_inner_kl_penalty": 5e-4, "adaptive_inner_kl_penalty": False, "eval_every": 0}
POLICIES = {"promp": {"n_itr": 40, "inner_lr": 0.5}, "all_tasks": {"n_itr": 80, "num_inner_grad_steps": 0}}


def main() -> None:
    """Trains both policies."""
    weights = {}
    for name, own in POLICIES.items():
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            run = mps.train("MetaPointEnvNavigation", "promp", dump_path=folder, **SETTINGS, **own)
            print(name, run.evaluate(tasks=40))
            values = run.policy.get_param_values().values()
            weights[name] = [value.reshape(-1, value.shape[-1]).astype(float).round(5).tolist() for value in values]
    text = json.dumps(weights, separators=(",", ":"))
    FILE.write_text("// Written by docs/browser_policies.py: kernel and bias of each layer in turn, and the log std.\n"
                    f"const POLICIES = {text};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
