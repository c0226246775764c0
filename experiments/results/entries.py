"""The published results that `experiments/reproduce.py` reproduces, with their settings, read from `entries.json`.

`papers/NAME.md` describes each outcome, next to its data.
"""
import dataclasses
import importlib
import os
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence

from meta_policy_search.registry import get_algorithm
from meta_policy_search.run import build_trainer, settings_of_algorithm
from meta_policy_search.settings import read_json
from meta_policy_search.tf_compat import tf

if TYPE_CHECKING:
    from meta_policy_search.meta_trainer import Trainer

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Method:
    """One line of a comparison, trained once per seed."""

    name: str  # name in folders and files
    label: str
    script: str  # name of a script in `experiments`, without `.py`, or of an algorithm that has no script
    settings: Mapping[str, Any]
    seeds: Sequence[int] = (1, 2, 3)
    published: Optional[Sequence[Optional[float]]] = None  # mean return after 0, 1, ... steps, if reported
    published_curve: Sequence[tuple[float, float]] = ()  # (million steps, return after adaptation) of a figure
    snapshot: Optional[str] = "last"  # the one that is tested; None for the random initialization


@dataclasses.dataclass(frozen=True)
class Entry:
    """A published result, and the runs that reproduce it."""

    title: str
    question: str
    source: str
    settings: Mapping[str, Any]  # settings of all methods
    methods: Sequence[Method]
    num_steps: int  # gradient steps of the test
    halve_steps: bool = False  # whether steps after the first have half the size, as in the MAML paper
    rollouts: Optional[int] = 20  # paths per new task and number of steps; None: as in training
    test_tasks: int = 40  # tasks of the test
    # success rate: by the metaworld package; return of a trial: by `TrialEvaluation`
    score: Literal["mean return", "success rate", "return of a trial"] = "mean return"
    differs: str = ""  # differences from the published settings
    groups: Mapping[str, float] = dataclasses.field(default_factory=dict)  # tasks whose returns are listed separately


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A published result about estimates, and the module that measures them."""

    title: str
    question: str
    source: str
    module: str  # in `experiments.results`; its `measure(seed, methods)` yields (method, {key: value})
    key: str  # meaning of the keys, the columns of the table
    value: str  # meaning of the numbers
    methods: Mapping[str, str]  # name to label
    seeds: Sequence[int]
    columns: Optional[Sequence[int]] = None  # keys in the table; None: all
    published: Mapping[str, Sequence[Optional[float]]] = dataclasses.field(default_factory=dict)
    differs: str = ""


def script_settings(script: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `meta_policy_search.train` for a training script with the given settings.

    `script` may also be the name of an algorithm that has no script.
    """
    if not os.path.exists(os.path.join(os.path.dirname(HERE), f"{script}.py")):
        return {"algo": script, **settings}
    module = importlib.import_module(f"experiments.{script}")
    return {"env": get_algorithm(module.ALGORITHM).default_settings["env"], "algo": module.ALGORITHM,
            **module.PUBLISHED, **settings}


def all_settings(script: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `script_settings` with all defaults."""
    given = script_settings(script, settings)
    known = settings_of_algorithm(get_algorithm(given["algo"]))
    return {name: setting.default for name, setting in known.items()} | given


def build(script: str, settings: Mapping[str, Any]) -> "Trainer":
    """Builds the trainer of a training script in a separate graph."""
    with tf.Graph().as_default():
        return build_trainer(**script_settings(script, settings))


def preset(name: str) -> dict[str, Any]:
    """Reads the settings in `experiments/configs/NAME.json`."""
    return read_json(os.path.join(os.path.dirname(HERE), "configs", name + ".json"))


def _make_entry(methods: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], based_on: Optional[str] = None,
                **fields: Any) -> Entry:
    """Builds an entry; its settings override the settings of the preset `based_on`."""
    settings = {**(preset(based_on) if based_on else {}), **settings}
    return Entry(settings=settings, methods=[Method(**method) for method in methods], **fields)


_CONTENT = read_json(os.path.join(HERE, "entries.json"))
ENTRIES = {name: _make_entry(**fields) for name, fields in _CONTENT["entries"].items()}
MEASUREMENTS = {name: Measurement(**fields) for name, fields in _CONTENT["measurements"].items()}
