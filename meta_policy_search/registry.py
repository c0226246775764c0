"""Registry of algorithms by name, for `meta_policy_search.train` and plot titles; does not import TensorFlow."""
import importlib
from typing import Dict, List, Optional, Union

from meta_policy_search.utils.checks import check_choice

_ALGORITHMS: Dict[str, Union[str, type]] = {  # name to class, or to a class name in `meta_algos`
    "promp": "ProMP", "trpo_maml": "TRPOMAML", "vpg_maml": "VPGMAML", "dice_maml": "DICEMAML",
    "vpg_dice_maml": "VPG_DICEMAML", "rl2": "RL2"}
_TITLES = {  # by registered name, class name and script name
    **dict.fromkeys(("promp", "ProMP", "pro_mp"), "ProMP"),
    **dict.fromkeys(("trpo_maml", "TRPOMAML", "maml_trpo"), "TRPO-MAML"),
    **dict.fromkeys(("vpg_maml", "VPGMAML"), "VPG-MAML"),
    **dict.fromkeys(("dice_maml", "DICEMAML"), "DiCE-MAML"),
    **dict.fromkeys(("vpg_dice_maml", "VPG_DICEMAML"), "VPG-DiCE-MAML"),
    **dict.fromkeys(("rl2", "RL2"), "RL2"),
    "e_maml": "E-MAML", "cem": "CEM", "cma_es": "CMA-ES", "ddpg": "DDPG"}


def register_algorithm(name: str, algo_class: type, title: Optional[str] = None) -> None:
    """Registers an algorithm by name for `meta_policy_search.train`, and its title for plots.

    Args:
        name: the name; must differ from the names of the built-in algorithms.
        algo_class: a subclass of `MAMLAlgo` or `RL2`.
        title: title of the algorithm in plots. Default: None, the name of the class.

    Raises:
        TypeError: `name` is not a non-empty string, or `algo_class` is not a class.
        ValueError: `name` is the name of a built-in algorithm.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected a non-empty string, got {name!r}")
    if not isinstance(algo_class, type):
        raise TypeError(f"algo_class: expected a class, got {algo_class!r}")
    known = _ALGORITHMS.get(name)
    if isinstance(known, str):
        raise ValueError(f"name: expected a name that no built-in algorithm has, got {name!r}, the name of {known}")
    _ALGORITHMS[name] = algo_class
    _TITLES[name] = _TITLES[algo_class.__name__] = title or algo_class.__name__


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` accepts, in alphabetical order."""
    return sorted(_ALGORITHMS)


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm `name`, such as `"promp"`; raises `ValueError` if the name is unknown."""
    algorithm = _ALGORITHMS[check_choice("algo", name, available_algorithms())]
    if isinstance(algorithm, str):
        return getattr(importlib.import_module("meta_policy_search.meta_algos"), algorithm)
    return algorithm


def title_of(name: str) -> str:
    """Returns the plot title for a registered name, class name or script name; returns unknown names unchanged."""
    return _TITLES.get(name, name)
