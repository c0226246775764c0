"""A run written by hand, and the figures that are drawn."""
import os

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """Calls a function that writes a picture; returns its figure."""
    from matplotlib.figure import Figure

    savefig, figures = Figure.savefig, []
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), savefig(self, *a, **k)))

    def draw(plot, *arguments, **keywords):
        path = plot(*arguments, **keywords)
        assert isinstance(path, str) and os.path.exists(path)
        return figures[-1]

    return draw


@pytest.fixture
def folder(tmp_path):
    """A run of three iterations, written by hand."""
    (tmp_path / "progress.csv").write_text(
        "n_timesteps,Step_0-AverageReturn,Step_1-AverageReturn,AdaptationGain,AdaptationGainCI95,Note\n"
        "100,1.0,2.0,1.0,0.3,ok\n"
        "200,1.0,4.0,3.0,0.4,\n"
        "300,2.0,7.0,5.0,1.2,ok\n"
    )
    return tmp_path
