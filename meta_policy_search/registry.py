"""Algorithms by name, for `meta_policy_search.train` and for the titles of plots; imports no TensorFlow."""
import importlib
from typing import Dict, List, NamedTuple, Optional, Union

from meta_policy_search.utils.checks import check_choice


class _Algorithm(NamedTuple):
    target: Union[str, type]  # the class, or "module:Class", which is imported when it is first needed
    title: str

    @property
    def class_name(self) -> str:
        return self.target.rpartition(":")[2] if isinstance(self.target, str) else self.target.__name__


_PACKAGE = "meta_policy_search.meta_algos"
_ALGORITHMS: Dict[str, _Algorithm] = {
    "promp": _Algorithm(f"{_PACKAGE}:ProMP", "ProMP"),
    "trpo_maml": _Algorithm(f"{_PACKAGE}:TRPOMAML", "TRPO-MAML"),
    "vpg_maml": _Algorithm(f"{_PACKAGE}:VPGMAML", "VPG-MAML"),
    "dice_maml": _Algorithm(f"{_PACKAGE}:DICEMAML", "DiCE-MAML"),
    "vpg_dice_maml": _Algorithm(f"{_PACKAGE}:VPG_DICEMAML", "VPG-DiCE-MAML"),
}
_SCRIPTS = {"pro_mp": "ProMP", "maml_trpo": "TRPO-MAML", "e_maml": "E-MAML", "cem": "CEM", "cma_es": "CMA-ES",
            "ddpg": "DDPG"}  # titles of the scripts in `experiments` whose names are not those above


def register_algorithm(name: str, algo_class: type, title: Optional[str] = None) -> None:
    """Makes an algorithm available by name to `meta_policy_search.train`, and to plots by a title.

    Args:
        name: the name, which must not be that of an algorithm of this package.
        algo_class: a subclass of `MAMLAlgo`.
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
    if known is not None and isinstance(known.target, str):
        raise ValueError(f"name: expected another name than {name!r}, which is that of {known.class_name}")
    _ALGORITHMS[name] = _Algorithm(algo_class, title or algo_class.__name__)


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` takes, in alphabetical order."""
    return sorted(_ALGORITHMS)


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm called `name`, such as `"promp"`; raises `ValueError` if there is none."""
    target = _ALGORITHMS[check_choice("algo", name, available_algorithms())].target
    if not isinstance(target, str):
        return target
    module, _, class_name = target.partition(":")
    return getattr(importlib.import_module(module), class_name)


def title_of(name: str) -> str:
    """Returns the title of an algorithm, given its name, its class name or its script; `name` itself if unknown."""
    titles = {algorithm.class_name: algorithm.title for algorithm in _ALGORITHMS.values()}
    titles.update({key: algorithm.title for key, algorithm in _ALGORITHMS.items()})
    return {**titles, **_SCRIPTS}.get(name, name)
