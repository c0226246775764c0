"""The page "Default settings" lists the defaults of classes, of `mps.train` and the command line, and of scripts."""
import inspect
import json
import re
from pathlib import Path

import pytest

import meta_policy_search as mps
from experiments import dice_maml, e_maml, maml_trpo, pro_mp, vpg_maml
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.settings import settings_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "default_settings.rst").read_text(encoding="utf-8")
SCRIPTS = (pro_mp, maml_trpo, e_maml, vpg_maml, dice_maml)
ALGORITHMS = {script.__name__.rpartition(".")[2]: mps.get_algorithm(script.ALGORITHM) for script in SCRIPTS}
CLASSES = (mps.NormalizedEnv, mps.MetaSampler, mps.MetaGaussianMLPPolicy, mps.MetaSampleProcessor,
           mps.DiceMetaSampleProcessor, *ALGORITHMS.values(), mps.VPG_DICEMAML, mps.ConjugateGradientOptimizer)
COMMON = settings_of([mps.train], {"algo", "dump_path", "callbacks"}).keys()
PRESETS = sorted(path for path in (ROOT / "experiments" / "configs").glob("*.json") if "grid" not in path.read_text())


def rows(title):
    """Returns the rows of the `list-table` with this title, as lists of cells."""
    table = PAGE.partition(f".. list-table:: {title}\n")[2].partition("\n\n.. ")[0]
    lines = re.findall(r"^   (\*|  ?) - ?(.*(?:\n {7}.*)*)", table, re.MULTILINE)
    found = []
    for bullet, cell in lines:
        if bullet == "*":
            found.append([])
        found[-1].append(" ".join(cell.split()).replace("``", ""))
    return found[1:]


def as_text(value):
    if value is inspect.Parameter.empty:
        return "required"
    return getattr(value, "__name__", str(value))


def joined(values):
    """Returns the most important value, followed by differing values with their names."""
    texts = {name: as_text(value) for name, value in values}
    first = next(iter(texts.values()))
    others = {}
    for name, text in texts.items():
        if text != first:
            others.setdefault(text, []).append(name)
    return "; ".join([first, *(f"{', '.join(names)}: {text}" for text, names in others.items())])


def expected_rows():
    """Yields a row for each setting of the meta-learning algorithms, apart from those that all algorithms share."""
    of_classes = {cls.__name__: settings_of([cls]) for cls in CLASSES}
    of_train = {name: settings_of_algorithm(cls) for name, cls in ALGORITHMS.items()}
    for setting in dict.fromkeys(setting for settings in of_train.values() for setting in settings):
        defaults = [(name, settings[setting].default) for name, settings in of_classes.items() if setting in settings]
        if setting in COMMON or not defaults:
            continue
        trained = [(name, settings[setting].default) for name, settings in of_train.items() if setting in settings]
        scripts = [(name, script.PUBLISHED.get(setting, dict(trained)[name]))
                   for name, script in zip(ALGORITHMS, SCRIPTS, strict=True) if setting in dict(trained)]
        yield [setting, *map(joined, (defaults, trained, scripts))]


EXPECTED = list(expected_rows())


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda row: row[0])
def test_setting_is_on_the_page(expected):
    (row,) = [row for row in rows("Defaults") if row[0] == expected[0]]
    assert row == expected


def test_page_has_no_other_settings():
    assert [row[0] for row in rows("Defaults")] == [row[0] for row in EXPECTED]


def test_presets_are_on_the_page():
    expected = []
    for path in PRESETS:
        settings = json.loads(path.read_text(encoding="utf-8"))
        expected.append([path.name, *(f"{settings[key]}" if key in settings else "" for key in (
            "env", "n_itr", "meta_batch_size", "rollouts_per_meta_task", "max_path_length", "inner_lr"))])
    assert rows("Presets") == expected


@pytest.mark.parametrize("algo, baseline, return_baseline", [
    ("promp", mps.LinearFeatureBaseline, None), ("dice_maml", mps.LinearTimeBaseline, None),
    ("vpg_dice_maml", mps.LinearTimeBaseline, mps.LinearFeatureBaseline),
])
@pytest.mark.thorough
def test_train_uses_the_baselines_on_the_page(algo, baseline, return_baseline, tmp_path):
    trainer = mps.train("MetaPointEnvCorner", algo, 1, dump_path=tmp_path / "run", meta_batch_size=2,
                        rollouts_per_meta_task=2, max_path_length=5, hidden_sizes=()).trainer
    assert type(trainer.sample_processor.baseline) is baseline
    if algo != "promp":
        assert isinstance(trainer.sample_processor.return_baseline, return_baseline or type(None))
