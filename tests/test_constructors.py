"""Every public class writes out and documents its constructor arguments."""
import inspect

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.envs import mujoco_envs
from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.settings import describe_arguments
from meta_policy_search.utils.serializable import constructor_signature
from tests.test_top_level import NAMES

RESULTS = {"Run", "SearchPolicy"}  # users do not build these: functions of the package return them
CLASSES = {name: cls for name, cls in ((name, getattr(mps, name)) for name in sorted(set(NAMES) - RESULTS))
           if inspect.isclass(cls) and not issubclass(cls, BaseException) and not vars(cls).get("_is_protocol")}


def constructor_arguments(cls):
    """Returns the parameters of the constructor; without a constructor, `Configurable` accepts none."""
    signature = inspect.signature(cls) if issubclass(cls, tuple) else constructor_signature(cls)
    return list(signature.parameters.values())


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"BatchableMetaEnv"}))  # base class
def test_no_constructor_takes_args_or_kwargs(name):
    kinds = {p.kind for p in constructor_arguments(CLASSES[name])}
    assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items()
                                  if not issubclass(cls, tuple) and "__init__" in vars(cls)])
def test_docstring_documents_every_argument_in_order(name):
    """Help texts of the command line are read from these docstrings."""
    names = [p.name for p in constructor_arguments(CLASSES[name]) if p.kind is not p.VAR_KEYWORD]
    assert list(describe_arguments(inspect.getdoc(CLASSES[name]))) == names


MAML = "policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size, first_order"
NETWORK = "obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity, output_nonlinearity"


@pytest.mark.parametrize("cls, by_position", [
    (ProMP, MAML), (TRPOMAML, MAML), (VPGMAML, MAML), (DICEMAML, f"max_path_length, {MAML}"),
    (VPG_DICEMAML, f"max_path_length, {MAML}"), (MetaGaussianMLPPolicy, f"meta_batch_size, {NETWORK}"),
    (MetaCategoricalMLPPolicy, f"meta_batch_size, {NETWORK}"), (mujoco_envs.AntRandGoalEnv, "goal"),
    (mujoco_envs.SwimmerRandVelEnv, "min_velocity, max_velocity"),
    (mujoco_envs.HopperRandParamsEnv, "log_scale_limit, rand_params"),
])
def test_positional_arguments_have_the_documented_order(cls, by_position):
    parameters = constructor_arguments(cls)
    assert ", ".join(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD) == by_position


INT, FLOAT, BOOL = np.int64, np.float32, np.bool_


@pytest.mark.parametrize("cls, arguments", [
    (MetaGaussianMLPPolicy, {"meta_batch_size": INT(2), "obs_dim": INT(3), "action_dim": INT(2), "init_std": FLOAT(0.5),
                             "hidden_sizes": [INT(4), INT(5)], "learn_std": BOOL(False), "context_dim": INT(1)}),
    (MetaCategoricalMLPPolicy, {"meta_batch_size": 2, "obs_dim": 3, "action_dim": 2, "hidden_sizes": np.array([4, 5])}),
    (mps.GaussianRecurrentPolicy, {"meta_batch_size": 2, "obs_dim": 3, "action_dim": INT(2), "hidden_size": INT(4)}),
    (mps.DiceMetaSampleProcessor, {"baseline": "ZeroBaseline", "max_path_length": INT(9), "discount": FLOAT(0.5),
                                   "gae_lambda": INT(0), "normalize_adv": BOOL(False), "positive_adv": BOOL(True)}),
    (mps.GaussianMLPBaseline, {"hidden_sizes": [INT(3)], "learning_rate": FLOAT(0.5), "num_epochs": INT(3)}),
    (mps.MAMLFirstOrderOptimizer, {"learning_rate": FLOAT(0.5), "max_epochs": INT(3), "tolerance": FLOAT(0.5)}),
    (mps.ConjugateGradientOptimizer, {"cg_iters": INT(3), "backtrack_ratio": FLOAT(0.5), "debug_nan": BOOL(True)}),
])
def test_lists_and_numpy_values_are_accepted(cls, arguments):
    """JSON has lists and no tuples; loops over `np.logspace` or `np.arange` pass NumPy numbers."""
    part = cls(**arguments)
    for name, value in arguments.items():
        stored = vars(part).get(name, vars(part).get(f"_{name}"))
        if isinstance(value, (INT, FLOAT, BOOL)) and stored is not None:
            assert stored == value and not isinstance(stored, np.generic), name
        elif name == "hidden_sizes":
            assert isinstance(stored, tuple) and list(stored) == list(value)
