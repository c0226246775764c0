"""The entries that compare MAML, ANIL, BOIL and CAVIA train and adapt at tiny size."""
import numpy as np
import pytest

from experiments.results.entries import ENTRIES, config_class
from meta_policy_search.cli.algorithms import build_trainer
from meta_policy_search.cli.settings import SMOKE, make_config
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.tf_compat import tf

NAMES = [name for name in ENTRIES if name.startswith("partial_adaptation_")]
CASES = [(name, method) for name in NAMES for method in ENTRIES[name].methods]


@pytest.mark.thorough(but=["partial_adaptation_navigation-cavia"])
@pytest.mark.parametrize("name, method", CASES, ids=[f"{name}-{method.name}" for name, method in CASES])
def test_a_method_trains_and_adapts(name, method):
    entry = ENTRIES[name]
    settings = {**entry.settings, **method.settings, **SMOKE, "seed": 1}
    with tf.Graph().as_default():
        trainer = build_trainer(make_config(config_class(method.script), settings))
        trainer.train_itr()
        trainer.sampler.close()
        assert list(trainer.algo.step_sizes) == expected_names(trainer.policy, method.name)
        returns = MetaEvaluator.from_trainer(trainer).evaluate(2, entry.num_steps).task_returns
    assert returns.shape == (2, entry.num_steps + 1) and np.isfinite(returns).all()


def expected_names(policy, method):
    """The parameters that adapt."""
    names = list(policy.get_params())
    head = [name for name in names if "/output/" in name or "log_std" in name]
    return {"maml": names, "anil": head, "boil": [name for name in names if name not in head],
            "cavia": ["context"]}[method.partition("_")[0]]
