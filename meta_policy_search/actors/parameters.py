"""Policy parameters: conversion to and from a flat vector, files, and checks of sizes."""
import math
import os
from collections import OrderedDict
from typing import Any, Mapping, Sequence, Tuple

import numpy as np

from meta_policy_search.types import Params
from meta_policy_search.utils.checks import check_positive, check_positive_int
from meta_policy_search.utils.files import PathLike, user_path


def check_hidden_sizes(hidden_sizes: Sequence[int]) -> Tuple[int, ...]:
    """Checks and returns the number of units of each hidden layer."""
    if np.ndim(hidden_sizes) == 0:
        raise TypeError(f"hidden_sizes: expected a list of integers, got {hidden_sizes!r}")
    return tuple(check_positive_int(f"hidden_sizes[{i}]", size) for i, size in enumerate(hidden_sizes))


def check_std(init_std: float, min_std: float) -> Tuple[float, float]:
    """Checks and returns the initial and the minimum standard deviation of a Gaussian policy."""
    init_std, min_std = check_positive("init_std", init_std), check_positive("min_std", min_std)
    if init_std < min_std:
        raise ValueError(f"init_std: expected at least min_std={min_std}, got {init_std}")
    return init_std, min_std


def flatten_params(params: Params) -> np.ndarray:
    """Concatenates parameters to one vector, float32 `[D]`, in the order of the mapping."""
    return np.concatenate([value.ravel() for value in params.values()])


def unflatten_params(argument: str, flat: np.ndarray, like: Mapping[str, Any],
                     ndim: int) -> "OrderedDict[str, np.ndarray]":
    """Splits flat parameter vectors into parameters by name.

    Args:
        argument: name of `flat` in error messages.
        flat: vectors `[..., D]`.
        like: ordered mapping from parameter name to an array or a variable of its shape.
        ndim: expected number of axes of `flat`.

    Returns:
        Ordered dict from name to a new array, float32 `[..., *shape]`, in the order of `like`.

    Raises:
        ValueError: the number of axes is not `ndim`, the last axis has another size, or a number is not finite.
    """
    flat = np.asarray(flat)
    shapes = [tuple(map(int, value.shape)) for value in like.values()]
    sizes = list(map(math.prod, shapes))
    if flat.shape[-1:] != (sum(sizes),):
        raise ValueError(f"{argument}: expected {sum(sizes)} numbers in the last axis, got shape {flat.shape}")
    if flat.ndim != ndim:
        raise ValueError(f"{argument}: expected {ndim} {'axis' if ndim == 1 else 'axes'}, got shape {flat.shape}")
    with np.errstate(over="ignore"):
        values = flat.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{argument}: expected finite numbers, got {flat[~np.isfinite(values)][0]}")
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=-1)
    return OrderedDict((name, part.reshape(flat.shape[:-1] + shape)) for name, shape, part in zip(like, shapes, parts))


def check_params(values: Params, like: Mapping[str, Any], what: str) -> "OrderedDict[str, np.ndarray]":
    """Returns parameters in the order and dtype of others.

    Args:
        values: arrays by name.
        like: ordered mapping from parameter name to an array of the same shape and dtype.
        what: name of `values` in error messages.

    Raises:
        ValueError: names or shapes differ, or a value is not finite in its dtype.
    """
    if set(values) != set(like):
        raise ValueError(f"{what}: expected the names {sorted(like)}, got {sorted(values)}")
    checked = OrderedDict()
    for name, expected in like.items():
        given = np.asarray(values[name])
        if given.dtype.kind not in "fiu":
            raise ValueError(f"{what}[{name!r}]: expected real numbers, got an array of dtype {given.dtype}")
        with np.errstate(over="ignore"):
            value = given.astype(expected.dtype, copy=False)
        if value.shape == (1, *expected.shape):  # shape of `log_std` in the public ProMP code
            value = value[0]
        if value.shape != expected.shape:
            raise ValueError(f"{what}[{name!r}]: expected shape {expected.shape}, got {value.shape}")
        if not np.isfinite(value).all():
            raise ValueError(f"{what}[{name!r}]: expected finite numbers, got {value}")
        checked[name] = value
    return checked


def read_npz(path: PathLike) -> "OrderedDict[str, np.ndarray]":
    """Reads the arrays of an `.npz` file by name, without running code from the file.

    Raises:
        ValueError: the file is damaged or has another format; the message names it.
        OSError: the file cannot be opened.
    """
    with open(user_path("path", path), "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return OrderedDict((name, arrays[name]) for name in arrays.files)
        except Exception as error:  # damaged archives raise many types of errors
            raise ValueError(f"path: expected a file written by policy.save_npz, got {os.fspath(path)}: "
                             f"{str(error) or type(error).__name__}") from error
