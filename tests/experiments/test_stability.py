"""Tests the variants of a run that start from one of its iterations."""
import numpy as np
import pytest

from benchmarks.workload import SMOKE
from experiments.results import draw, stability


@pytest.mark.thorough
def test_variant_with_the_same_settings_equals_the_run(monkeypatch):
    """Resuming from a state after two iterations gives the rows of the original run."""
    monkeypatch.setattr(stability, "ENDS", {"as before": 4, "half the learning rate": 4})
    monkeypatch.setattr(stability, "BEGIN", 2)
    settings = {**SMOKE, "meta_batch_size": 8}
    rows, states = zip(*stability.train("as before", **settings))
    again = [row for row, _ in stability.train("as before", states[1], **settings)]
    other = [row for row, _ in stability.train("half the learning rate", states[1], **settings)]
    np.testing.assert_allclose(again, rows[2:], rtol=1e-4, atol=1e-5)
    assert [row[0] for row in other] == [2, 3]
    np.testing.assert_allclose(other[0][1:5], rows[2][1:5], rtol=1e-4, atol=1e-5)  # sampled before the first difference
    assert abs(other[0][5] - rows[2][5]) > 1e-6


def test_stability_figure_is_drawn_from_the_data(tmp_path, monkeypatch):
    header = ",".join(("variant", *stability.COLUMNS))
    lines = [f"{name},{itr},1,2,3,4,5,6" for name in stability.ENDS for itr in range(3)]
    (tmp_path / "pro_mp_stability.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    monkeypatch.setattr(draw, "HERE", str(tmp_path))
    draw.main(["pro_mp_stability"])
    picture = (tmp_path / "pro_mp_stability.svg").read_text(encoding="utf-8")
    assert all(name in picture for name in stability.ENDS)
