"""Names of environments and algorithms: built-in names, names that the user registers, and MODULE:NAME.

This module does not import TensorFlow.
"""
import contextlib
import importlib
import os
import re
import sys
from collections import ChainMap
from typing import Any, Dict, List, Mapping, Optional, Tuple

from meta_policy_search.utils.checks import comparable_name, did_you_mean, find_name


def search_current_folder() -> None:
    """Makes modules in the current folder importable, after installed ones."""
    with contextlib.suppress(FileNotFoundError):  # the current folder was deleted
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())


class Registry:
    """Entries by name: built-in ones and those that the user registers.

    Args:
        kind (str): name of the argument that selects an entry, in error messages.
        built_in (Mapping): the built-in entries, which cannot be replaced.
        elsewhere (Mapping): names that are no entries, in lower case, and what to use instead. Default: none.
    """

    def __init__(self, kind: str, built_in: Mapping[str, Any], elsewhere: Mapping[str, str] = {}) -> None:  # noqa: B006
        self.kind, self.built_in, self.entries = kind, frozenset(map(comparable_name, built_in)), dict(built_in)
        self.elsewhere = elsewhere

    def register(self, name: str, entry: Any) -> None:
        """Adds an entry, or replaces an entry of the user with the same name.

        Raises:
            TypeError: `name` is not a non-empty string.
            ValueError: `name` has other characters than letters, digits and `_-.:/`, or is the name of another entry.
                Case, hyphens and underscores are ignored.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"name: expected a non-empty string, got {name!r}")
        if not re.fullmatch(r"[\w.:/-]+", name) or ".." in name or name.startswith("/"):  # part of the run folder
            raise ValueError(f"name: expected letters, digits and _-.:/ without '..' and without / at the start, got "
                             f"{name!r}")
        if comparable_name(name) in self.built_in:
            raise ValueError(f"name: expected a name that is not built in, got {name!r}")
        for other in self.entries:
            if other != name and comparable_name(other) == comparable_name(name):
                raise ValueError(f"name: expected a name that differs from {other!r} in more than case, hyphens and "
                                 f"underscores, got {name!r}")
        self.entries[name] = entry

    def find(self, name: str, further: Optional[Dict[str, Any]] = None) -> Tuple[str, Any]:
        """Returns the registered name and the entry of `name`; for MODULE:NAME, `name` and what `import_name` returns.

        Args:
            name: the name; case, hyphens and underscores are ignored.
            further: further entries, which entries of the registry with the same name replace. Default None: none.

        Raises:
            ValueError: the name is unknown.
        """
        entries = ChainMap(self.entries, further or {})  # also contains what an imported module registers
        if isinstance(name, str) and ":" in name and name not in entries:
            return name, import_name(self.kind, name, entries)
        try:
            found = find_name(self.kind, name, entries)
        except ValueError as error:
            if isinstance(name, str) and comparable_name(name) in self.elsewhere:
                raise ValueError(f"{self.kind}: expected a known name, got {name!r}; use "
                                 f"{self.elsewhere[comparable_name(name)]}") from None
            if isinstance(name, str) and re.fullmatch(r"(\./)?[^\W\d]\w*(\.[^\W\d]\w*)+", name):
                module, _, member = name.removeprefix("./").rpartition(".")
                raise ValueError(f"{self.kind}: expected a known name or MODULE:NAME, got {name!r}; did you mean "
                                 f"'{module}:{'NAME' if member == 'py' else member}'?") from None
            raise ValueError(f"{error}{'' if str(error).endswith('?') else '.'} Write your own class as MODULE:NAME"
                             ) from None
        return found, entries[found]


def import_name(argument: str, name: str, registered: Mapping[str, Any]) -> Any:
    """Imports `MODULE:NAME` and returns the object NAME of the module.

    If the module has no object NAME, the function returns the object that is registered under NAME, because the module
    may have registered it. Modules in the current folder are found, after installed ones.

    Args:
        argument: name of the argument in error messages.
        name: the text `MODULE:NAME`.
        registered: registered objects by name.

    Raises:
        ValueError: the module cannot be imported or belongs to the standard library, or NAME is neither in the module
            nor registered.
    """
    module_name, _, attribute = name.rpartition(":")
    if module_name.endswith(".py") or "/" in module_name:
        module_name = module_name.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise ValueError(f"{argument}: expected MODULE:NAME, got {name!r}; did you mean '{module_name}:{attribute}'?")
    if not module_name:
        raise ValueError(f"{argument}: expected MODULE:NAME, such as my_module:MyClass or "
                         f"meta_policy_search:MetaGaussianMLPPolicy, got {name!r}")
    search_current_folder()
    try:
        if module_name.partition(".")[0] in sys.stdlib_module_names:  # settings files may come from others
            raise ImportError(f"{module_name} is a module of Python")
        names = vars(importlib.import_module(module_name))
    except (Exception, SystemExit) as error:
        is_missing = isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}.")
        raise ValueError(f"{argument}: expected MODULE:NAME with a module that can be imported, got {name!r}: "
                         f"{type(error).__name__}: {error}" + ". Run in the folder of the module, or set PYTHONPATH"
                         * is_missing) from error
    found = names.get(attribute, registered.get(attribute))
    if found is None:
        raise ValueError(f"{argument}: expected MODULE:NAME with an object of the module or a registered name, got "
                         f"{name!r}{did_you_mean(attribute, {*names, *registered})}")
    return found


_BUILT_IN = {  # name: MODULE:NAME of the class, which is imported when it is needed; title; description
    "promp": ("meta_algos.pro_mp:ProMP", "ProMP",
              "ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples"),
    "trpo_maml": ("meta_algos.trpo_maml:TRPOMAML", "TRPO-MAML",
                  "MAML (arXiv:1703.03400) with one trust-region step per meta-update, as in its original experiments"),
    "e_maml": ("meta_algos.e_maml:EMAML", "E-MAML",
               "E-MAML (arXiv:1803.01118): TRPO-MAML with an exploration term for the samples before adaptation"),
    "vpg_maml": ("meta_algos.vpg_maml:VPGMAML", "VPG-MAML",
                 "MAML (arXiv:1703.03400) with one Adam step along the policy gradient per meta-update"),
    "dice_maml": ("meta_algos.dice_maml:DICEMAML", "DiCE-MAML",
                  "DiCE-MAML (arXiv:1802.05098): adaptation steps with unbiased second derivatives"),
    "vpg_dice_maml": ("meta_algos.vpg_dice_maml:VPG_DICEMAML", "VPG-DiCE-MAML",
                      "DiCE-MAML with a policy gradient on advantages after adaptation"),
    "rl2": ("meta_algos.rl2:RL2", "RL2",
            "RL2 (arXiv:1611.02779): a recurrent policy that adapts within a trial of several episodes"),
    "cem": ("np.algos.cem:CEM", "CEM",
            "The cross-entropy method (CEM), a gradient-free search over policy parameters"),
    "cma_es": ("np.algos.cma_es:CMAES", "CMA-ES",
               "CMA-ES (arXiv:1604.00772), a gradient-free search that adapts a full covariance matrix"),
    "ddpg": ("algos:DDPG", "DDPG",
             "DDPG (arXiv:1509.02971): a deterministic policy, trained off-policy from a replay buffer")}

ALGORITHMS = Registry("algo", {name: f"meta_policy_search.{cls}" for name, (cls, _, _) in _BUILT_IN.items()}, {
    "maml": "'trpo_maml' (outer step of the paper) or 'vpg_maml'", "metasgd": "trainable_inner_step_size=True",
    "fomaml": "first_order=True with an algorithm such as 'trpo_maml'",
    **{name: f"adapt_params={value!r} with an algorithm such as 'trpo_maml'" for name, value in (
        ("anil", "head"), ("boil", "body"), ("cavia", "context"))}})

TITLES = {name: title for name, (_, title, _) in _BUILT_IN.items()}
"""Titles of algorithms for plots, by registered name."""

DESCRIPTIONS = {name: description for name, (_, _, description) in _BUILT_IN.items()}
"""Descriptions of the built-in algorithms by name. Reading them does not import TensorFlow."""


def register_algorithm(name: str, algo_class: type, title: Optional[str] = None) -> None:
    """Registers an algorithm by name for `meta_policy_search.train`, the command line, and its title for plots.

    Args:
        name: the name, of letters, digits and `_-.:/`; must differ from the names of other algorithms in more than
            case, hyphens and underscores. The same name replaces an earlier class.
        algo_class: a subclass of `MetaAlgo` or `RLAlgorithm`.
        title: title of the algorithm in plots. Default: None, the name of the class.

    Raises:
        TypeError: `name` is not a non-empty string, or `algo_class` is no subclass of `MetaAlgo` or `RLAlgorithm`.
        ValueError: `name` has other characters, or is the name of a built-in or another algorithm.
    """
    bases = [base.__name__ for base in algo_class.__mro__] if isinstance(algo_class, type) else []
    if not {"MetaAlgo", "RLAlgorithm"} & {*bases}:
        raise TypeError(f"algo_class: expected a subclass of MetaAlgo or RLAlgorithm, got {algo_class!r}")
    ALGORITHMS.register(name, algo_class)
    TITLES[name] = title or algo_class.__name__


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` accepts, in alphabetical order."""
    return sorted(ALGORITHMS.entries)


def find_algorithm(name: str) -> str:
    """Returns the registered name of an algorithm.

    Args:
        name: the name; case, hyphens and underscores are ignored. Also MODULE:NAME, where NAME is a class in the module
            or a name that the module registers; it is returned unchanged.

    Raises:
        ValueError: the name is unknown.
    """
    return ALGORITHMS.find(name)[0]


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm `name`, see `find_algorithm`; raises `ValueError` if the name is unknown."""
    _, cls = ALGORITHMS.find(name)
    if isinstance(cls, str):
        module, _, class_name = cls.partition(":")
        return vars(importlib.import_module(module))[class_name]
    return cls


def name_of(algo_class: type) -> str:
    """Returns the registered name of an algorithm, or the name of its class if the class is not registered."""
    forms = (algo_class, f"{algo_class.__module__}:{algo_class.__name__}")
    return next((name for name, cls in ALGORITHMS.entries.items() if cls in forms), algo_class.__name__)


def title_of(name: str) -> str:
    """Returns the plot title of an algorithm; the name without module if the algorithm is unknown."""
    name = name.rpartition(":")[2]
    with contextlib.suppress(ValueError):
        return TITLES[find_algorithm(name)]
    return name
