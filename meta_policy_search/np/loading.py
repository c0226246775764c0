"""Loads the policy of a run, or saved weights, as a NumPy policy that runs without TensorFlow."""
import zipfile
from typing import Any, Dict, Mapping, Type, Union

import numpy as np

from meta_policy_search.actors.parameters import flatten_params, read_npz
from meta_policy_search.np import policies
from meta_policy_search.ops.networks import CONTEXT, LOG_STD, fold_context
from meta_policy_search.utils.files import PathLike, user_path
from meta_policy_search.utils.snapshotter import load_snapshot

_PACKAGE = __name__.partition(".")[0]
_WITH_TENSORFLOW = tuple(f"{_PACKAGE}.{module}" for module in (
    "policies", "optimizers", "meta_algos", "meta_trainer", "algos", "evaluation"))
_CLASSES: Dict[str, Type[policies.MLPPolicy]] = {cls.scope: cls for cls in (
    policies.GaussianMLPPolicy, policies.CategoricalMLPPolicy, policies.DeterministicMLPPolicy)}
_STORED = ("GaussianMLPPolicy", "CategoricalMLPPolicy")  # TensorFlow policies of the same names can be loaded
_BY_POSITION = ("obs_dim", "action_dim", "name", "hidden_sizes", "learn_std", "hidden_nonlinearity",
                "output_nonlinearity")  # argument order of the TensorFlow policies
_NOT_IN_PARAMS = ("hidden_nonlinearity", "output_nonlinearity", "init_std", "min_std")  # the parameters show all others


def load_policy(path: PathLike, itr: Union[int, str, None] = None, **arguments: Any) -> policies.Policy:
    """Loads a trained policy that acts without TensorFlow, with its parameters before adaptation.

    `policy.act(observation)` returns its action. Policies that `train` has trained act in `[-10, 10]`, the bounds of
    actions of an environment in the wrapper `normalize` (with another `normalization_scale` s, in `[-s, s]`; those of
    `cem` and `cma_es` in the bounds of the environment). With
    `normalize_obs=True`, they expect the observations of this wrapper. A context becomes part of the bias of the first
    layer. Policies of a custom class are returned unchanged, and import TensorFlow if their class does. Loading a run
    folder or a snapshot can run code from the file; loading an `.npz` file cannot.

    Args:
        path: a run folder, a snapshot, or a file written by `policy.save_npz` (any ending).
        itr: iteration of the snapshot in a run folder, or `"best"`. Default: None, the last snapshot.
        **arguments: constructor arguments of the policy that replace the stored ones. An `.npz` file contains only the
            sizes: pass all other arguments that differ from their defaults, such as `hidden_nonlinearity="relu"`.

    Returns:
        A policy from `np.policies`, or the stored policy of a custom class.

    Raises:
        SnapshotError: the snapshot does not exist or is damaged.
        ValueError: the snapshot does not contain a policy of this package, or the parameters do not fit the arguments.
    """
    path = user_path("path", path)
    if path.endswith(".npz") or zipfile.is_zipfile(path):
        if itr is not None:
            raise ValueError(f"itr: expected None for a file of weights ({path}), got {itr!r}")
        return _of_params(path, read_npz(path), arguments)
    policy = load_snapshot(path, itr, _WITH_TENSORFLOW)["policy"]
    if not type(policy).__module__.startswith(_PACKAGE):  # a custom class, whose base class may be a placeholder
        policy = load_snapshot(path, itr)["policy"]
    if isinstance(policy, policies.Policy):  # for example from a `LocalRunner`
        if arguments:
            raise ValueError(f"{', '.join(arguments)}: expected no arguments for a stored NumPy policy ({path})")
        return policy
    name = type(policy).__name__.removeprefix("Meta")
    if not type(policy).__module__.startswith(_WITH_TENSORFLOW) or name not in _STORED:
        raise ValueError(f"path: expected a run with a {' or '.join(_STORED)} (or Meta...) of this package, got a "
                         f"{type(policy).__name__} in {path}; `load_run(folder)` supports every policy")
    positional = _BY_POSITION if type(policy).__name__ == name else ("meta_batch_size", *_BY_POSITION)
    given = {**dict(zip(positional, policy.arguments["args"])), **policy.arguments["kwargs"]}
    stored = {key: given[key] for key in _NOT_IN_PARAMS if key in given}
    return _of_params(path, policy.params, {**stored, **arguments})


def _of_params(path: str, params: Mapping[str, np.ndarray], arguments: Mapping[str, Any]) -> policies.Policy:
    """Builds the policy that has these parameters; `arguments` replace those that their names and shapes determine."""
    num_context = len(params.get(CONTEXT, ()))
    kernels = [value for name, value in params.items() if name.endswith("/kernel")]
    scope = next(iter(params), "").partition("/")[0]
    if scope not in _CLASSES or not kernels or any(kernel.ndim != 2 for kernel in kernels):
        raise ValueError(f"path: expected the parameters of an MLP policy in {path}, got {', '.join(params) or 'none'}")
    cls = _CLASSES[scope]
    sizes = {"obs_dim": kernels[0].shape[0] - num_context, "action_dim": kernels[-1].shape[1],
             "hidden_sizes": tuple(kernel.shape[1] for kernel in kernels[:-1])}
    learns = {"learn_std": LOG_STD in params} if cls is policies.GaussianMLPPolicy else {}
    policy = cls(**{**sizes, **learns, **arguments})
    params = {name: value for name, value in fold_context(params, cls.scope).items() if name != CONTEXT}
    expected = policy.get_param_values()
    if {name: value.shape for name, value in expected.items()} != {name: value.shape for name, value in params.items()}:
        raise ValueError(f"path: expected the parameters {', '.join(expected)} of {policy} in {path}, got "
                         f"{', '.join(params) or 'none'}; if the names agree, the shapes differ")
    policy.set_flat_params(flatten_params({name: params[name] for name in expected}))
    return policy
