"""Tests `target_kl`: meta-updates that go too far are undone; without it, the first one causes a warning."""
from functools import partial

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.tf_compat import tf
from tests.helpers.runs import read_rows

train = partial(mps.train, "MetaPointEnvCorner", env_kwargs={"reward_type": "dense"}, meta_batch_size=3,
                rollouts_per_meta_task=4, max_path_length=8, learning_rate=0.2, seed=1)


@pytest.mark.parametrize("algo", ["promp", "vpg_maml", "dice_maml", "vpg_dice_maml", "rl2"])
@pytest.mark.thorough(but="promp")
def test_rejected_updates_change_nothing_and_resume_equals_an_uninterrupted_run(algo, tmp_path):
    # given a first update that goes too far
    run = train(algo, n_itr=1, target_kl=0.05, dump_path=tmp_path / "resumed")
    # when training goes on until the learning rate is low enough
    run.resume(6)
    with tf.Graph().as_default():
        train(algo, n_itr=6, target_kl=0.05, dump_path=tmp_path / "uninterrupted")
    # then updates are accepted, and the run equals an uninterrupted one
    assert read_rows(tmp_path / "resumed") == read_rows(tmp_path / "uninterrupted")
    columns = run.progress
    rejected = columns["Rejected"].astype(bool)
    assert rejected[0] and not rejected.all()
    assert (columns["KLOuter"][rejected] < 1e-6).all() and (columns["KLOuter"] <= 1.5 * 0.05).all()
    np.testing.assert_allclose(columns["LearningRate"][:2], [0.2, 0.1])


@pytest.mark.parametrize("algo", ["promp", "vpg_maml", "rl2"])
@pytest.mark.thorough(but="promp")
def test_update_that_increases_its_loss_and_goes_far_is_reported_once(algo, tmp_path):
    run = train(algo, n_itr=3, dump_path=tmp_path, **{"learning_rate": 3.0})
    worse = (run.progress["LossAfter"] > run.progress["LossBefore"]) & (run.progress["KLOuter"] > 1.0)
    assert worse.any()
    assert (tmp_path / "log.txt").read_text().count("set target_kl") == 1
