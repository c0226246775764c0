"""Writes the small run of this version that `tests/test_last_release.py` of later versions reads.

    python -m tests.helpers.release_run

The folder `tests/data/release` then contains what stays readable (`docs/versioning.rst`): `params.json`,
`progress.csv` and the weights `policy.npz`, with mean actions in `actions.json` to compare with.
"""
import json
import shutil
import tempfile
from pathlib import Path

import meta_policy_search as mps

FOLDER = Path(__file__).resolve().parent.parent / "data" / "release"
OBSERVATIONS = [[0.0, 0.0], [1.0, -2.0]]


def write_run(folder):
    """Trains for two iterations and keeps the promised files, without details of the machine."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as source:
        run = mps.train("MetaPointEnvCornerGoals", "promp", n_itr=2, meta_batch_size=2, rollouts_per_meta_task=2,
                        max_path_length=5, hidden_sizes=(4,), dump_path=Path(source, "run"), progress_bar=False)
        shutil.copy(Path(run.folder, "progress.csv"), folder)
        params = json.loads(Path(run.folder, "params.json").read_text())
    params["machine"]["system"], params["git_revision"] = "Linux", None
    (folder / "params.json").write_text(json.dumps(params, indent=2) + "\n")
    run.policy.save_npz(folder / "policy.npz")
    actions = [run.policy.act(observation, deterministic=True).tolist() for observation in OBSERVATIONS]
    (folder / "actions.json").write_text(json.dumps(actions) + "\n")


if __name__ == "__main__":
    write_run(FOLDER)
