"""Provides a run written by hand."""
import pytest


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
