"""Defaults of `mps.train`, and the page "Default settings"."""
import pytest

import meta_policy_search as mps
from meta_policy_search.settings import settings_of


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


def test_subclass_without_description_has_the_descriptions_of_its_base_class():
    class Mine(mps.VPGMAML):
        """An algorithm without the section `Args:`."""

    assert settings_of([Mine])["inner_lr"].help == settings_of([mps.VPGMAML])["inner_lr"].help != ""
