"""The published results that `experiments/reproduce.py` reproduces, with their settings, read from `entries.json`.

`papers/NAME.md` describes each outcome, next to its data.
"""
import dataclasses
import importlib
import os
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence

from meta_policy_search.cli.algorithms import build_trainer, find_config
from meta_policy_search.cli.settings import RunConfig, make_config, read_json

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


def config_class(script: str) -> type[RunConfig]:
    """Returns the settings class of a training script in `experiments`, or of an algorithm that has no script."""
    has_file = os.path.exists(os.path.join(os.path.dirname(HERE), f"{script}.py"))
    return importlib.import_module(f"experiments.{script}").Config if has_file else find_config(script)


def make_settings(script: str, settings: Mapping[str, Any]) -> RunConfig:
    """Returns all settings of a training script, some of which are given."""
    return make_config(config_class(script), settings)


def build(script: str, settings: Mapping[str, Any]) -> "Trainer":
    """Builds the trainer of a training script in a separate graph."""
    from meta_policy_search.tf_compat import tf  # imported here because it takes seconds

    with tf.Graph().as_default():
        return build_trainer(make_settings(script, settings))


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
