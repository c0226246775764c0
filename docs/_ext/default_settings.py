"""Sphinx extension with tables of settings and their defaults, read from the signatures and the presets.

`.. default-settings:: TITLE`, `.. presets:: TITLE` and `.. settings-of-train:: TITLE` are `csv-table` directives
without rows.
"""
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping

from docutils.parsers.rst.directives.tables import CSVTable
from docutils.statemachine import StringList

import meta_policy_search as mps
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.settings import settings_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SCRIPTS = ("pro_mp", "maml_trpo", "e_maml", "vpg_maml", "dice_maml")
ALGORITHMS = ("promp", "trpo_maml", "e_maml", "vpg_maml", "dice_maml", "vpg_dice_maml")
SIZES = ("env", "n_itr", "meta_batch_size", "rollouts_per_meta_task", "max_path_length", "inner_lr")
PRESETS = Path(__file__).resolve().parent.parent.parent / "experiments" / "configs"


def joined(values: Mapping[str, Any]) -> str:
    """Returns the first value, followed by differing values with their names."""
    by_text: Dict[str, List[str]] = {}
    for name, value in values.items():
        text = "required" if value is inspect.Parameter.empty else getattr(value, "__name__", str(value))
        by_text.setdefault(text, []).append(name)
    first, *others = by_text or [""]
    return "; ".join([first, *(f"{', '.join(by_text[text])}: {text}" for text in others)])


def default_rows() -> Iterator[List[str]]:
    """Yields a row for each setting of the meta-learning algorithms that is not an argument of `train`.

    The cells of `train` and of scripts are empty if no algorithm or script has another default.
    """
    algorithms = {name: mps.get_algorithm(name) for name in ALGORITHMS}
    classes = (mps.NormalizedEnv, mps.MetaSampler, mps.MetaGaussianMLPPolicy, mps.MetaSampleProcessor,
               mps.DiceMetaSampleProcessor, *algorithms.values(), mps.ConjugateGradientOptimizer)
    scripts = {name: importlib.import_module(f"experiments.{name}") for name in SCRIPTS}
    of_classes = {cls.__name__: settings_of([cls]) for cls in classes}
    of_train = {name: settings_of_algorithm(cls) for name, cls in algorithms.items()}
    names = {name for settings in of_train.values() for name in settings} - settings_of([mps.train], ()).keys()
    for name in sorted(names):
        by_class, by_algo = ({owner: settings[name].default for owner, settings in parts.items() if name in settings}
                             for parts in (of_classes, of_train))
        by_script = {script: module.PUBLISHED.get(name, by_algo[module.ALGORITHM])
                     for script, module in scripts.items() if module.ALGORITHM in by_algo}
        is_changed = not by_class or any(name in cls.default_settings for cls in algorithms.values())
        is_published = any(name in module.PUBLISHED for module in scripts.values())
        yield [f"``{name}``", joined(by_class), joined(by_algo) if is_changed else "",
               joined(by_script) if is_published else ""]


def preset_rows() -> Iterator[List[str]]:
    """Yields a row for each file of settings of one training."""
    for path in sorted(PRESETS.glob("*.json")):
        settings = json.loads(path.read_text(encoding="utf-8"))
        if "grid" not in settings:
            yield [f"``{path.name}``", *(str(settings.get(name, "")) for name in SIZES)]


def train_rows() -> Iterator[List[str]]:
    """Yields a row for each setting of `train` with ProMP and default parts: the parts, the default, the meaning."""
    policy = mps.ProMP.policy_cls(False)
    parts = (*mps.ProMP.env_wrappers, policy, mps.MetaSampler, mps.ProMP.sample_processor_cls, mps.ProMP)
    for name, setting in settings_of_algorithm(mps.ProMP, policy).items():
        if name not in settings_of([mps.train], ()):
            owners = [part.__name__ for part in parts if name in settings_of([part])] or ["train"]
            meaning = re.split(r"(?<=[\w)`])\. |[.;,] [Dd]efault\b|; see |\.$", setting.help)[0]
            yield [f"``{name}``", ", ".join(owners), joined({"": setting.default}), meaning]


class DefaultSettings(CSVTable):
    """The table of defaults."""

    rows = staticmethod(default_rows)

    def run(self) -> List[Any]:
        """Returns the table."""
        self.content = StringList([" | ".join(row) for row in self.rows()], source=__file__)
        return super().run()


class Presets(DefaultSettings):
    """The table of presets."""

    rows = staticmethod(preset_rows)


class SettingsOfTrain(DefaultSettings):
    """The table of the settings of `train` with their meaning."""

    rows = staticmethod(train_rows)


def setup(app: "Sphinx") -> Dict[str, Any]:
    """Adds the directives."""
    app.add_directive("default-settings", DefaultSettings)
    app.add_directive("presets", Presets)
    app.add_directive("settings-of-train", SettingsOfTrain)
    return {"version": "1", "parallel_read_safe": True}
