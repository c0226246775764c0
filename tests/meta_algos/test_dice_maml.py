"""Tests DiCE-MAML except its gradients: accepted samples, and a run with paths that end early."""
import copy

import numpy as np
import pytest

from meta_policy_search import DICEMAML, VPG_DICEMAML, VPGMAML, MetaPointEnvNavigation, logger, normalize, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor
from tests.helpers.sampling import flat_paths
from tests.helpers.small_world import M, T, draw_data, make_policy, padded, set_theta
from tests.helpers.trainers import build_trainer


def padded_data(num_inner_grad_steps=1):
    return [[padded(samples) for samples in step] for step in draw_data(num_inner_grad_steps)]


def make_algo(algo_cls=DICEMAML, **arguments):
    return algo_cls(T, make_policy(), **{"meta_batch_size": M, **arguments})


@pytest.mark.parametrize("max_path_length, error", [(0, ValueError), (2.0, TypeError)])
def test_path_length_is_validated(max_path_length, error):
    with pytest.raises(error, match="max_path_length"):
        DICEMAML(max_path_length, make_policy(), meta_batch_size=M)


def test_samples_padded_to_another_length_are_refused():
    with pytest.raises(ValueError, match=rf"expected paths padded to max_path_length={T + 1} steps.*got {T}"):
        DICEMAML(T + 1, make_policy(), meta_batch_size=M).adapt(padded_data()[0])


def test_policy_gradient_inner_loss_requires_advantages():
    data = padded_data()
    del data[1][2]["advantages"]
    with pytest.raises(ValueError, match="^step1: task 2: expected samples with an entry 'advantages', got none; pass "
                                         "return_baseline, such as .*, to the sample processor$"):
        make_algo(VPG_DICEMAML).optimize_policy(data)


def test_dice_inner_loss_requires_path_lengths():
    data = draw_data()
    algo = VPGMAML(make_policy(), meta_batch_size=M, inner_type="dice", max_path_length=T)
    data[0][1]["path_lengths"] = data[0][1]["path_lengths"][:-1]
    with pytest.raises(ValueError, match="step0: task 1: expected the same number of samples, at least 1"):
        algo.optimize_policy(data)
    del data[0][1]["path_lengths"]
    with pytest.raises(ValueError, match="^step0: task 1: expected samples with an entry 'path_lengths'"):
        algo.optimize_policy(data)


def test_dice_inner_loss_refuses_longer_paths():
    data = draw_data()
    longest = max(max(task["path_lengths"]) for task in data[0])
    algo = VPGMAML(make_policy(), meta_batch_size=M, inner_type="dice", max_path_length=longest - 1)
    message = f"step0: expected paths of at most max_path_length={longest - 1} steps, got {longest}"
    with pytest.raises(ValueError, match=message):
        algo.optimize_policy(data)


def test_padding_has_no_effect_and_samples_are_not_modified():
    data, algo = padded_data(), make_algo()
    set_theta(algo.policy)
    garbage = copy.deepcopy(data)
    for step in garbage:
        for samples in step:
            for key in ("observations", "actions", "adjusted_rewards"):
                samples[key][samples["mask"] == 0] = np.nan
    before = copy.deepcopy(garbage)
    one, other = (algo.optimizer.loss(algo.meta_input_values(values)) for values in (data, garbage))
    assert one == other
    np.testing.assert_equal(garbage, before)


@pytest.mark.parametrize("kind", ["DICEMAML", "VPG_DICEMAML", "inner_type"])
@pytest.mark.thorough(but="VPG_DICEMAML")
def test_run_with_paths_that_end_early(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(MetaPointEnvNavigation, "goal_tolerance", 0.1)
    horizon, num_tasks = 30, 3
    set_seed(1)
    env = normalize(MetaPointEnvNavigation(), normalization_scale=1.0)
    policy = make_policy(num_tasks, hidden_sizes=(8,), init_std=1.0)
    arguments = {"policy": policy, "meta_batch_size": num_tasks, "inner_lr": 0.01, "learning_rate": 0.01}
    if kind == "inner_type":
        algo = VPGMAML(inner_type="dice", max_path_length=horizon, **arguments)
        processor = MetaSampleProcessor(LinearFeatureBaseline())
    else:
        returns = LinearFeatureBaseline() if kind == "VPG_DICEMAML" else None
        algo = {"DICEMAML": DICEMAML, "VPG_DICEMAML": VPG_DICEMAML}[kind](max_path_length=horizon, **arguments)
        processor = DiceMetaSampleProcessor(LinearTimeBaseline(), horizon, return_baseline=returns)
    before = policy.get_flat_params()
    logger.configure(str(tmp_path), ["csv"], "none")
    trainer = build_trainer(algo, (num_tasks, 20, horizon), n_itr=2, env=env, processor=processor)
    rows = [trainer.train_itr() for _ in range(2)]
    trainer.sampler.update_tasks()
    lengths = [len(path["rewards"]) for path in flat_paths(trainer.sampler.obtain_samples())]
    assert min(lengths) < max(lengths) == horizon  # some paths reached the goal
    assert all(np.isfinite(row["LossBefore"]) for row in rows)
    assert 0.0 < np.abs(policy.get_flat_params() - before).max() < 0.1
