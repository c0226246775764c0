"""Registry of algorithms by name, for `meta_policy_search.train`, the command line and plot titles.

This module does not import TensorFlow.
"""
import importlib
from typing import Any, Dict, Iterable, List, Optional, Union

from meta_policy_search.utils.checks import find_name
from meta_policy_search.utils.user_modules import import_name

_ALGORITHMS: Dict[str, Union[str, type]] = {  # name to class, or to a class name in `meta_algos`
    "promp": "ProMP", "trpo_maml": "TRPOMAML", "e_maml": "TRPOMAML", "vpg_maml": "VPGMAML", "dice_maml": "DICEMAML",
    "vpg_dice_maml": "VPG_DICEMAML", "rl2": "RL2"}
_TITLES = {"promp": "ProMP", "trpo_maml": "TRPO-MAML", "e_maml": "E-MAML", "vpg_maml": "VPG-MAML",
           "dice_maml": "DiCE-MAML", "vpg_dice_maml": "VPG-DiCE-MAML", "rl2": "RL2", "cem": "CEM", "cma_es": "CMA-ES",
           "ddpg": "DDPG"}
_ALIASES = {"maml_trpo": "trpo_maml"}  # name of its script


def register_algorithm(name: str, algo_class: type, title: Optional[str] = None) -> None:
    """Registers an algorithm by name for `meta_policy_search.train`, the command line, and its title for plots.

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
    _TITLES[name] = title or algo_class.__name__


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` accepts, in alphabetical order."""
    return sorted(_ALGORITHMS)


def find_algorithm(name: str, others: Iterable[str] = ()) -> str:
    """Returns the registered name of an algorithm.

    Args:
        name: the name; case, hyphens and underscores are ignored. Also MODULE:NAME, where NAME is a class in the module
            or a name that the module registers; it is returned unchanged.
        others: further valid names.

    Raises:
        ValueError: the name is unknown.
    """
    if isinstance(name, str) and ":" in name:
        import_name("algo", name, _ALGORITHMS)
        return name
    found = find_name("algo", name, [*_ALGORITHMS, *others, *_ALIASES])
    return _ALIASES.get(found, found)


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm `name`, see `find_algorithm`; raises `ValueError` if the name is unknown."""
    name = find_algorithm(name)
    algorithm = import_name("algo", name, _ALGORITHMS) if ":" in name else _ALGORITHMS[name]
    if isinstance(algorithm, str):
        return getattr(importlib.import_module("meta_policy_search.meta_algos"), algorithm)
    return algorithm


def name_of(algo: Any) -> str:
    """Returns the registered name of an algorithm, or the name of its class if the class is not registered."""
    if vars(algo).get("exploration") and type(algo).__name__ == "TRPOMAML":
        return "e_maml"
    names = (name for name, known in _ALGORITHMS.items() if known in (type(algo), type(algo).__name__))
    return next(names, type(algo).__name__)


def title_of(name: str) -> str:
    """Returns the plot title of an algorithm; returns unknown names unchanged."""
    if ":" in name:
        return name.rpartition(":")[2]
    try:
        return _TITLES[find_algorithm(name, _TITLES)]
    except ValueError:
        return name
