"""The published results that `experiments/reproduce.py` reproduces, with their settings, read from `entries.json`.

`papers/NAME.md` describes each outcome, next to its data.
"""
import dataclasses
import os
from typing import Any, Literal, Mapping, Optional, Sequence

from experiments.settings import read_json

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Method:
    """One line of a comparison, trained once per seed."""

    name: str  # of folders and files
    label: str
    script: str  # in `experiments`, without `.py`
    settings: Mapping[str, Any]
    seeds: Sequence[int] = (1, 2, 3)
    published: Optional[Sequence[Optional[float]]] = None  # mean return in new tasks after 0, 1, ... steps, if reported
    snapshot: Optional[str] = "last"  # the one that is tested; None for the random initialization


@dataclasses.dataclass(frozen=True)
class Entry:
    """A published result, and the runs that reproduce it."""

    title: str
    source: str
    settings: Mapping[str, Any]  # of all methods
    methods: Sequence[Method]
    num_steps: int  # gradient steps in new tasks
    step_sizes: Optional[Sequence[float]] = None  # of these; None as in training
    rollouts: int = 20  # paths in each new task after each step
    test_tasks: Optional[int] = None  # new tasks; None for as many as for most entries
    # the success rate is that of Meta-World's own evaluation, the return of a trial that of `TrialEvaluation`
    score: Literal["mean return", "success rate", "return of a trial"] = "mean return"
    differs: str = ""  # how the settings differ from the published ones


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A published result about estimates, and the module that measures them."""

    title: str
    source: str
    module: str  # in `experiments.results`; its `measure(seed)` returns numbers by method, and of each by `key`
    key: str  # heading of the columns
    value: str  # meaning of the numbers
    methods: Mapping[str, str]  # labels
    seeds: Sequence[int]
    published: Mapping[str, Sequence[Optional[float]]] = dataclasses.field(default_factory=dict)
    differs: str = ""


def preset(name: str) -> dict[str, Any]:
    """Returns the settings in a file of `experiments/configs`."""
    return read_json(os.path.join(os.path.dirname(HERE), "configs", name + ".json"))


def _make_entry(methods: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], based_on: Optional[str] = None,
                **fields: Any) -> Entry:
    """Makes an entry; its settings replace those of the preset that it is based on, if any."""
    settings = {**(preset(based_on) if based_on else {}), **settings}
    return Entry(settings=settings, methods=[Method(**method) for method in methods], **fields)


_CONTENT = read_json(os.path.join(HERE, "entries.json"))
ENTRIES = {name: _make_entry(**fields) for name, fields in _CONTENT["entries"].items()}
MEASUREMENTS = {name: Measurement(**fields) for name, fields in _CONTENT["measurements"].items()}
