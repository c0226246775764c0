"""Tests the arguments of ProMP and its logged values."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import ProMP
from meta_policy_search.tf_compat import tf
from tests.helpers.numpy_reference import Objective, kl_from_old
from tests.helpers.small_world import M, collect, draw_data, make_policy, set_theta, shapes_of, update

START = {"clip_eps": 0.15, "target_inner_step": 0.02, "adaptive_inner_kl_penalty": False, "anneal_factor": 0.5}


@pytest.fixture(scope="module")
def built():
    """Returns an algorithm with two adaptation steps and a very small learning rate."""
    with tf.Graph().as_default():
        yield ProMP(make_policy(), meta_batch_size=M, num_inner_grad_steps=2, learning_rate=1e-5, num_ppo_steps=4,
                    init_inner_kl_penalty=0.7, **START)


@pytest.fixture
def algo(built):
    """Restores the initial state of the algorithm."""
    vars(built).update(START)
    built.inner_kl_coeff = np.full(2, 0.7)
    return built


def objective(algo, data, clip_eps):
    return Objective(shapes_of(algo.policy), data).pro_mp(clip_eps, algo.inner_kl_coeff)


def test_losses_divergences_and_coefficients_are_logged(algo):
    data, before = draw_data(2), set_theta(algo.policy)
    logged = update(algo, data)
    after, shapes = algo.policy.get_flat_params().astype(float), shapes_of(algo.policy)
    plain = Objective(shapes, data)
    assert logged["LossBefore"] == pytest.approx(objective(algo, data, 0.15)(before), rel=1e-4)
    assert logged["LossAfter"] == pytest.approx(objective(algo, data, 0.15)(after), rel=1e-4)
    assert logged["LossAfter"] < logged["LossBefore"]
    chains = [plain.chain(after, m) for m in range(M)]
    inner = [[kl_from_old(chains[m][k], shapes, data[k][m]) for m in range(M)] for k in range(2)]
    assert logged["KLInner"] == pytest.approx(np.mean(inner), rel=1e-3)
    assert logged["KLOuter"] == pytest.approx(plain.mean_kl(after), rel=1e-3)
    assert logged["KLCoeffInner"] == pytest.approx(0.7) and logged["ClipEps"] == 0.15


def test_learning_rate_and_num_ppo_steps_set_size_and_number_of_adam_steps(algo):
    # with a constant gradient, each step of Adam has the length of the learning rate; its moments
    # depend on earlier gradients, so the test starts with new ones
    with tf.Graph().as_default():
        fresh = ProMP(make_policy(), meta_batch_size=M, learning_rate=1e-5, num_ppo_steps=7)
        before, data = set_theta(fresh.policy), draw_data()
        fresh.optimize_policy(data)
        np.testing.assert_allclose(np.abs(fresh.policy.get_flat_params() - before), 7e-5, rtol=0.02)


def test_anneal_factor_shrinks_the_clipping_range_after_each_update(algo):
    data = draw_data(2)
    theta = set_theta(algo.policy)
    rows = [update(algo, data)]
    set_theta(algo.policy)
    rows.append(update(algo, data))
    assert [r["ClipEps"] for r in rows] == [0.15, 0.075] and algo.clip_eps == 0.0375
    for logged, clip_eps in zip(rows, (0.15, 0.075)):  # and the loss clips to it
        assert logged["LossBefore"] == pytest.approx(objective(algo, data, clip_eps)(theta), rel=1e-4)


def test_adaptive_penalty_moves_each_step_towards_the_target(algo):
    vars(algo).update(adaptive_inner_kl_penalty=True)
    for kl, factors in (
        ([0.02 * 1.6, 0.02], [2.0, 1.0]),
        ([0.02 * 1.4, 0.02 / 1.4], [1.0, 1.0]),
        ([0.02 / 1.6, 0.02 * 1.6], [0.5, 2.0]),
    ):
        np.testing.assert_allclose(algo._adapted_kl_coeff(np.array(kl)), 0.7 * np.array(factors), rtol=1e-6)


@pytest.mark.parametrize("target, factor", [(1e-9, 2.0), (1e9, 0.5)])
def test_adaptive_penalty_takes_effect_in_the_next_update(algo, target, factor):
    vars(algo).update(adaptive_inner_kl_penalty=True, target_inner_step=target)
    data, theta = draw_data(2), set_theta(algo.policy)
    assert update(algo, data)["KLCoeffInner"] == pytest.approx(0.7)
    set_theta(algo.policy)
    logged = update(algo, data)
    assert logged["KLCoeffInner"] == pytest.approx(0.7 * factor)
    expected = Objective(shapes_of(algo.policy), data).pro_mp(0.075, np.full(2, 0.7 * factor))(theta)
    assert logged["LossBefore"] == pytest.approx(expected, rel=1e-4)


def test_small_penalty_grows_again():
    algo = ProMP(make_policy(), meta_batch_size=M, num_inner_grad_steps=2)
    for kl, factor in ((0.0, 0.5), (1.0, 2.0)):
        start = algo.inner_kl_coeff
        for _ in range(200):
            algo.inner_kl_coeff = algo._adapted_kl_coeff(np.full(2, kl))
        np.testing.assert_allclose(algo.inner_kl_coeff, start * factor ** 200.0)


def test_penalty_without_adaptation_is_constant(algo):
    vars(algo).update(target_inner_step=1e-9)
    for _ in range(2):
        assert update(algo, draw_data(2))["KLCoeffInner"] == pytest.approx(0.7)


def test_default_penalty_is_adaptive_and_per_adaptation_step():
    algo = ProMP(make_policy(), meta_batch_size=M, target_inner_step=1e-9, num_ppo_steps=1, num_minibatches=2,
                 init_inner_kl_penalty=0.0005)
    assert algo.inner_kl_coeff.tolist() == [0.0005]
    # when the update uses minibatches
    fed, original = [], algo.optimizer._evaluate
    algo.optimizer._evaluate = lambda batch: fed.append(batch) or original(batch)
    data = collect(algo)
    algo.optimize_policy(data)
    # then the penalty has doubled,
    assert algo.inner_kl_coeff.tolist() == [0.001]
    # and each minibatch has all pre-update samples and half of the post-update samples
    shapes = [{name: np.shape(value) for name, value in batch.items()} for batch in fed]
    assert len(shapes) == 2
    for shape in shapes:
        assert {size[:2] for name, size in shape.items() if name.startswith("step0/")} == {(M, 8)}
        assert {size[:2] for name, size in shape.items() if name.startswith("step1/")} == {(M, 4)}


def test_non_finite_samples_are_refused_and_change_nothing(algo):
    data, before = draw_data(2), set_theta(algo.policy)
    data[2][1]["advantages"][3] = np.nan
    coeff, clip_eps = algo.inner_kl_coeff.copy(), algo.clip_eps
    with pytest.raises(ValueError, match="step2: task 1, advantages: expected finite"):
        algo.optimize_policy(data)
    np.testing.assert_array_equal(algo.policy.get_flat_params(), before.astype("f"))
    assert algo.clip_eps == clip_eps and (algo.inner_kl_coeff == coeff).all()


@pytest.mark.parametrize("name, value", [
    ("learning_rate", 0.0), ("num_ppo_steps", 0), ("num_minibatches", 0), ("clip_eps", 0.0),
    ("target_inner_step", -0.1), ("target_inner_step", 0), ("init_inner_kl_penalty", -1.0),
    ("adaptive_inner_kl_penalty", 1), ("anneal_factor", 1.1), ("anneal_factor", 0.0),
])
def test_arguments_are_checked(name, value):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
        ProMP(make_policy(), meta_batch_size=M, **{name: value})
