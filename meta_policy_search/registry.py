"""Registry of algorithms by name, for `meta_policy_search.train`, the command line and plot titles.

This module does not import TensorFlow.
"""
import importlib
from typing import List, NamedTuple, Optional, Union

from meta_policy_search.utils.user_modules import Registry


class Algorithm(NamedTuple):
    """An entry of the registry."""

    cls: Union[str, type]  # the class; of a built-in algorithm, MODULE:NAME
    title: str  # for plots
    description: str  # one sentence


ALGORITHMS = Registry("algo", {
    "promp": Algorithm("meta_policy_search.meta_algos.pro_mp:ProMP", "ProMP",
                       "ProMP (arXiv:1810.06784): several clipped gradient steps per meta-update on the same samples"),
    "trpo_maml": Algorithm("meta_policy_search.meta_algos.trpo_maml:TRPOMAML", "TRPO-MAML", "MAML (arXiv:1703.03400) "
                           "with one trust-region step per meta-update, as in its original experiments"),
    "e_maml": Algorithm("meta_policy_search.meta_algos.e_maml:EMAML", "E-MAML", "E-MAML (arXiv:1803.01118): TRPO-MAML "
                        "with an exploration term for the samples before adaptation"),
    "vpg_maml": Algorithm("meta_policy_search.meta_algos.vpg_maml:VPGMAML", "VPG-MAML", "MAML (arXiv:1703.03400) with "
                          "one Adam step along the policy gradient per meta-update"),
    "dice_maml": Algorithm("meta_policy_search.meta_algos.dice_maml:DICEMAML", "DiCE-MAML", "DiCE-MAML "
                           "(arXiv:1802.05098): adaptation steps with unbiased second derivatives"),
    "vpg_dice_maml": Algorithm("meta_policy_search.meta_algos.vpg_dice_maml:VPG_DICEMAML", "VPG-DiCE-MAML",
                               "DiCE-MAML with a policy gradient on advantages after adaptation"),
    "rl2": Algorithm("meta_policy_search.meta_algos.rl2:RL2", "RL2", "RL2 (arXiv:1611.02779): a recurrent policy that "
                     "adapts within a trial of several episodes"),
    "cem": Algorithm("meta_policy_search.np.algos.cem:CEM", "CEM",
                     "The cross-entropy method (CEM), a gradient-free search over policy parameters"),
    "cma_es": Algorithm("meta_policy_search.np.algos.cma_es:CMAES", "CMA-ES", "CMA-ES (arXiv:1604.00772), a "
                        "gradient-free search that adapts a full covariance matrix"),
    "ddpg": Algorithm("meta_policy_search.algos.ddpg:DDPG", "DDPG", "DDPG (arXiv:1509.02971): a deterministic policy, "
                      "trained off-policy from a replay buffer"),
}, {
    "maml": "'trpo_maml' (outer step of the paper) or 'vpg_maml'", "metasgd": "trainable_inner_step_size=True",
    "fomaml": "first_order=True with an algorithm such as 'trpo_maml'",
    **{name: f"adapt_params={value!r} with an algorithm such as 'trpo_maml'" for name, value in (
        ("anil", "head"), ("boil", "body"), ("cavia", "context"))}})


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
    doc = (algo_class.__doc__ or "").strip().partition("\n")[0]
    ALGORITHMS.register(name, Algorithm(algo_class, title or algo_class.__name__, doc))


def available_algorithms() -> List[str]:
    """Returns the names that `meta_policy_search.train` accepts, in alphabetical order."""
    return ALGORITHMS.names()


def find_algorithm(name: str) -> str:
    """Returns the registered name of an algorithm.

    Args:
        name: the name; case, hyphens and underscores are ignored. Also MODULE:NAME, where NAME is a class in the module
            or a name that the module registers; it is returned unchanged.

    Raises:
        ValueError: the name is unknown.
    """
    return ALGORITHMS.find(name)[0]


def get_entry(name: str) -> Algorithm:
    """Returns the entry of an algorithm, see `find_algorithm`; raises `ValueError` if the name is unknown."""
    _, found = ALGORITHMS.find(name)
    return found if isinstance(found, Algorithm) else Algorithm(found, name.rpartition(":")[2], "")


def get_algorithm(name: str) -> type:
    """Returns the class of the algorithm `name`, see `find_algorithm`; raises `ValueError` if the name is unknown."""
    cls = get_entry(name).cls
    if isinstance(cls, str):
        module, _, class_name = cls.partition(":")
        return vars(importlib.import_module(module))[class_name]
    return cls


def name_of(algo_class: type) -> str:
    """Returns the registered name of an algorithm, or the name of its class if the class is not registered."""
    forms = (algo_class, f"{algo_class.__module__}:{algo_class.__name__}")
    return next((name for name, known in ALGORITHMS.entries.items() if known.cls in forms), algo_class.__name__)


def title_of(name: str) -> str:
    """Returns the plot title of an algorithm; the name without module if the algorithm is unknown."""
    try:
        return ALGORITHMS.find(name.rpartition(":")[2])[1].title
    except ValueError:
        return name.rpartition(":")[2]
