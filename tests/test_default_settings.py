"""The page "Default settings" lists the defaults of classes, of `mps.train` and the command line, and of scripts."""
import inspect
import json
from pathlib import Path

import pytest

import meta_policy_search as mps
from experiments import dice_maml, e_maml, maml_trpo, pro_mp, vpg_maml
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.settings import settings_of

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {"pro_mp": pro_mp, "maml_trpo": maml_trpo, "e_maml": e_maml, "vpg_maml": vpg_maml, "dice_maml": dice_maml}
ALGORITHMS = {script.ALGORITHM: mps.get_algorithm(script.ALGORITHM) for script in SCRIPTS.values()}
ALGORITHMS["vpg_dice_maml"] = mps.VPG_DICEMAML  # has no script
CLASSES = (mps.NormalizedEnv, mps.MetaSampler, mps.MetaGaussianMLPPolicy, mps.MetaSampleProcessor,
           mps.DiceMetaSampleProcessor, *ALGORITHMS.values(), mps.ConjugateGradientOptimizer)
PRESETS = sorted(path for path in (ROOT / "experiments" / "configs").glob("*.json") if "grid" not in path.read_text())
SIZES = ("env", "n_itr", "meta_batch_size", "rollouts_per_meta_task", "max_path_length", "inner_lr")


def rows(title):
    """Returns the rows of the `csv-table` with this title, as lists of cells."""
    page = (ROOT / "docs" / "default_settings.rst").read_text(encoding="utf-8")
    _, body, *_ = page.partition(f".. csv-table:: {title}\n")[2].split("\n\n")
    return [[cell.strip().replace("``", "") for cell in line.split("|")] for line in body.splitlines()]


def joined(values):
    """Returns the first value, followed by differing values with their names."""
    by_text = {}
    for name, value in values.items():
        text = "required" if value is inspect.Parameter.empty else getattr(value, "__name__", str(value))
        by_text.setdefault(text, []).append(name)
    first, *others = by_text
    return "; ".join([first, *(f"{', '.join(by_text[text])}: {text}" for text in others)])


def expected_rows():
    """Yields a row for each setting of the meta-learning algorithms that is not an argument of `train`.

    The cells of `train` and of scripts are empty if no algorithm or script has another default.
    """
    of_classes = {cls.__name__: settings_of([cls]) for cls in CLASSES}
    of_train = {name: settings_of_algorithm(cls) for name, cls in ALGORITHMS.items()}
    names = dict.fromkeys(name for settings in of_train.values() for name in settings)
    for name in names.keys() - settings_of([mps.train], ()).keys():
        classes, train = ({owner: settings[name].default for owner, settings in parts.items() if name in settings}
                          for parts in (of_classes, of_train))
        scripts = {script: module.PUBLISHED.get(name, train[module.ALGORITHM]) for script, module in SCRIPTS.items()
                   if module.ALGORITHM in train}
        is_changed = not classes or any(name in cls.default_settings for cls in ALGORITHMS.values())
        is_published = any(name in module.PUBLISHED for module in SCRIPTS.values())
        yield [name, joined(classes) if classes else "", joined(train) if is_changed else "",
               joined(scripts) if is_published else ""]


def test_settings_are_on_the_page_in_alphabetical_order():
    assert rows("Defaults") == sorted(expected_rows())


def test_presets_are_on_the_page():
    presets = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in PRESETS}
    assert rows("Presets") == [[name, *(str(settings.get(key, "")) for key in SIZES)]
                               for name, settings in presets.items()]


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
