"""Files of the last release stay readable, see `docs/versioning.rst`. `tests/helpers/release_run.py` wrote them."""
import json
import shutil

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.cli.main import main
from meta_policy_search.utils.snapshotter import write_snapshot
from tests.helpers.release_run import FOLDER, OBSERVATIONS
from tests.helpers.runs import read_rows


def recorded(name):
    return json.loads((FOLDER / name).read_text())


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "data" / "run")


def test_weights_give_the_same_actions_in_the_graph_and_in_numpy():
    policy = mps.MetaGaussianMLPPolicy(meta_batch_size=2, obs_dim=2, action_dim=2, hidden_sizes=(4,))
    policy.load_npz(FOLDER / "policy.npz")
    actor = mps.load_policy(FOLDER / "policy.npz")
    for observation, action in zip(OBSERVATIONS, recorded("actions.json")):
        _, info = policy.get_action(observation)
        np.testing.assert_allclose(info["mean"], action, atol=1e-6)
        np.testing.assert_allclose(actor.act(observation, deterministic=True), action, atol=1e-6)


def test_run_is_listed_plotted_and_repeated_with_the_same_columns(folder, tmp_path, capsys):
    """Given `params.json` and `progress.csv`; `train --config_file` accepts the recorded settings."""
    assert main(["runs", str(folder), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["algorithm"], listed["environment"], listed["iterations"]) == ("promp", "MetaPointEnvCornerGoals", 2)
    assert main(["plot", str(folder)]) == 0
    repeated = tmp_path / "repeated"
    assert main(["train", "promp", "--config_file", str(folder / "params.json"), "--dump_path", str(repeated)]) == 0
    new, old = (json.loads((run / "params.json").read_text())["settings"] for run in (repeated, folder))
    assert {name: new[name] for name in old} == old
    assert read_rows(folder)[0].keys() <= read_rows(repeated)[0].keys()


def test_resuming_a_run_of_another_version_is_refused_with_the_version(folder):
    write_snapshot(str(folder / "params.pkl"), 1, {"state": {"version": "0.0.1"}})
    with pytest.raises(ValueError, match="is from meta_policy_search 0.0.1, and this is version .*policy.load_npz"):
        mps.load_run(folder)
