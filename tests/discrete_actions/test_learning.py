"""Tests meta-learning with discrete actions, from environment to meta-update."""
import numpy as np
import pytest

from meta_policy_search import DiceMetaSampleProcessor, MetaCategoricalMLPPolicy, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaBernoulliBanditEnv, MetaTabularMDPEnv, normalize
from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from tests.helpers.trainers import build_trainer

T = 10  # path length


def train(algo_cls, env, n_itr, num_tasks, num_rollouts, seed=1, **arguments):
    """Returns the logged rows and the policy's parameters before and after training."""
    set_seed(seed)
    policy = MetaCategoricalMLPPolicy(num_tasks, env.observation_space.shape[0], int(env.action_space.n),
                                      hidden_sizes=(16,))
    if algo_cls in (DICEMAML, VPG_DICEMAML):
        arguments.update(max_path_length=T, processor=DiceMetaSampleProcessor(
            LinearTimeBaseline(), T, return_baseline=LinearFeatureBaseline()))
    rows, before = [], policy.get_flat_params()
    build_trainer(algo_cls, (num_tasks, num_rollouts, T), n_itr, env, policy,
                  callbacks=[lambda trainer, row: rows.append(row)], **arguments).train()
    return rows, before, policy.get_flat_params()


@pytest.mark.parametrize("algo_cls, arguments", [
    (ProMP, {"num_inner_grad_steps": 2}), (TRPOMAML, {}), (TRPOMAML, {"exploration": True}),
    (VPGMAML, {"trainable_inner_step_size": True}), (VPGMAML, {"inner_type": "dice", "max_path_length": T}),
    (DICEMAML, {}), (VPG_DICEMAML, {}),
], ids=lambda value: value.__name__ if isinstance(value, type) else ", ".join(value) or "defaults")
@pytest.mark.thorough(but="VPG_DICEMAML-defaults", ci=("TRPOMAML-exploration", "VPGMAML-inner_type, max_path_length"))
def test_every_algorithm_trains(algo_cls, arguments):
    rows, before, after = train(algo_cls, normalize(MetaTabularMDPEnv(4, 3)), 2, 3, 4, **arguments)
    assert np.isfinite(after).all() and (after != before).mean() > 0.9
    last_step = arguments.get("num_inner_grad_steps", 1)
    for row in rows:
        for step in range(last_step + 1):
            assert 0.0 < row[f"Step_{step}-AveragePolicyEntropy"] <= np.log(5) + 1e-6
        assert np.isfinite(row["LossBefore"])


def mean_of(rows, column):
    return np.mean([row[column] for row in rows])


@pytest.mark.thorough
def test_trpo_maml_learns_to_find_the_best_arm():
    # given a bandit of five arms, whose rewards are the only information about the task
    rows, _, _ = train(TRPOMAML, MetaBernoulliBanditEnv(5), 9, 20, 20, inner_lr=0.5, step_size=0.03)
    # when the policy is trained for a few iterations,
    # then its pre-update return is that of any policy, 0.5 per pull,
    for step in (0, 1):
        assert rows[0][f"Step_{step}-AverageReturn"] == pytest.approx(0.5 * T, abs=0.7)
    assert mean_of(rows[-3:], "Step_0-AverageReturn") == pytest.approx(0.5 * T, abs=0.7)
    # and its post-update return approaches 5/6 per pull, the mean of the best arm
    assert rows[0]["AdaptationGain"] < 0.5
    assert mean_of(rows[-3:], "AdaptationGain") > 1.3
