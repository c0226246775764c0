"""The entries that compare MAML, ANIL, BOIL and CAVIA."""
import numpy as np
import pytest

from benchmarks.workload import SMOKE
from experiments.results.entries import ENTRIES, all_settings, build
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.meta_algos.adapted_params import select_params
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.tf_compat import tf

CASES = [(name, method) for name in ENTRIES if name.startswith("partial_adaptation_")
         for method in ENTRIES[name].methods]


def test_methods_adapt_their_parameters():
    for name, method in CASES:
        settings = all_settings(method.script, {**ENTRIES[name].settings, **method.settings})
        with tf.Graph().as_default():
            names = list(MetaGaussianMLPPolicy(2, 2, 2, context_dim=settings["context_dim"]).get_params())
        assert list(select_params(settings["adapt_params"], names)) == expected_names(names, method.name)


@pytest.mark.thorough(but="navigation-cavia")
@pytest.mark.parametrize("entry, method", [("navigation", "cavia"), ("direction", "boil")])
def test_a_method_trains_and_adapts(entry, method):
    name, method = next(case for case in CASES if (case[0], case[1].name) == (f"partial_adaptation_{entry}", method))
    entry = ENTRIES[name]
    settings = {**entry.settings, **method.settings, **SMOKE, "seed": 1}
    trainer = build(method.script, settings)
    trainer.train_itr()
    trainer.sampler.close()
    assert list(trainer.algo.step_sizes) == expected_names(list(trainer.policy.get_params()), method.name)
    returns = MetaEvaluator.from_trainer(trainer).evaluate(2, entry.num_steps).task_returns
    assert returns.shape == (2, entry.num_steps + 1) and np.isfinite(returns).all()


def expected_names(names, method):
    """The parameters that adapt."""
    head = [name for name in names if "/output/" in name or "log_std" in name]
    return {"maml": names, "anil": head, "boil": [name for name in names if name not in head],
            "cavia": ["context"]}[method.partition("_")[0]]
