"""Algorithms by name, for `meta_policy_search.train` and for the titles of plots; imports no TensorFlow."""
import importlib
from typing import Dict, List, Optional, Union

from meta_policy_search.utils.checks import check_choice

_ALGORITHMS: Dict[str, Union[str, type]] = {  # classes; those of this package by their names in `meta_algos`
    "promp": "ProMP", "trpo_maml": "TRPOMAML", "vpg_maml": "VPGMAML", "dice_maml": "DICEMAML",
    "vpg_dice_maml": "VPG_DICEMAML", "rl2": "RL2"}
_TITLES = {  # by name, class and script
    **dict.fromkeys(("promp", "ProMP", "pro_mp"), "ProMP"),
    **dict.fromkeys(("trpo_maml", "TRPOMAML", "maml_trpo"), "TRPO-MAML"),
    **dict.fromkeys(("vpg_maml", "VPGMAML"), "VPG-MAML"),
    **dict.fromkeys(("dice_maml", "DICEMAML"), "DiCE-MAML"),
    **dict.fromkeys(("vpg_dice_maml", "VPG_DICEMAML"), "VPG-DiCE-MAML"),
    **dict.fromkeys(("rl2", "RL2"), "RL2"),
    "e_maml": "E-MAML", "cem": "CEM", "cma_es": "CMA-ES", "ddpg": "DDPG"}


def register_algorithm(name: str, algo_class: type, title: Optional[str] = None) -> None:
    """Makes an algorithm available by name to `meta_policy_search.train`, and to plots by a title.

    Args:
        name: the name, which must not be that of an algorithm of this package.
        algo_class: a subclass of `MAMLAlgo` or `RL2`.
        title: name of the algorithm in plots; default None, the name of the class.

    Raises:
        TypeError: `name` is not a string, or `algo_class` not a class.
        ValueError: this package has an algorithm of that name.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected a non-empty string, got {name!r}")
    if not isinstance(algo_class, type):
        raise TypeError(f"algo_class: expected a class, got {algo_class!r}")
    known = _ALGORITHMS.get(name)
    if isinstance(known, str):
        raise ValueError(f"name: expected another name than {name!r}, which is that of {known}")
    _ALGORITHMS[name] = algo_class
    _TITLES[name] = _TITLES[algo_class.__name__] = title or algo_class.__name__


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` takes, in alphabetical order."""
    return sorted(_ALGORITHMS)


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm called `name`, such as `"promp"`; raises `ValueError` if there is none."""
    algorithm = _ALGORITHMS[check_choice("algo", name, available_algorithms())]
    if isinstance(algorithm, str):
        return getattr(importlib.import_module("meta_policy_search.meta_algos"), algorithm)
    return algorithm


def title_of(name: str) -> str:
    """Returns the title of an algorithm, given its name, its class name or its script; `name` itself if unknown."""
    return _TITLES.get(name, name)
