"""Tests the step size of meta-updates: schedules, changes during a run, and optimizers."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import TRPOMAML, VPGMAML
from meta_policy_search.optimizers.base import LinearSchedule
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from tests.helpers.small_world import M, draw_data, make_policy, relative_error, set_theta

SGD = tf.train.GradientDescentOptimizer


def make_algo(**arguments):
    algo = VPGMAML(make_policy(), meta_batch_size=M, tf_optimizer_cls=SGD, **arguments)
    set_theta(algo.policy)
    return algo


def step(algo, data):
    """Performs a meta-update; returns its step size, computed from the gradient and the parameter change."""
    gradient, before = algo.optimizer.gradient(algo.meta_input_values(data)), algo.policy.get_flat_params()
    algo.optimize_policy(data)
    change = algo.policy.get_flat_params().astype(float) - before
    rate = -(change @ gradient) / (gradient @ gradient)
    assert relative_error(change, -rate * gradient) < 1e-3
    logged = logger.getkvs()["LearningRate"]
    logger.dumpkvs()
    assert logged == pytest.approx(rate, rel=1e-3)
    return rate


def test_steps_follow_the_schedule():
    algo, data = make_algo(learning_rate=LinearSchedule(0.04, 0.0, 4)), draw_data()
    assert [step(algo, data) for _ in range(3)] == pytest.approx([0.04, 0.03, 0.02], rel=1e-3)
    assert algo.learning_rate == pytest.approx(0.01)


def test_changed_rate_takes_effect_in_the_next_meta_update():
    algo, data = make_algo(learning_rate=0.01), draw_data()
    assert step(algo, data) == pytest.approx(0.01, rel=1e-3)
    algo.learning_rate = 0.03
    assert algo.learning_rate == 0.03 and step(algo, data) == pytest.approx(0.03, rel=1e-3)
    algo.learning_rate = lambda update: 0.01 * update  # the third
    assert step(algo, data) == pytest.approx(0.02, rel=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("change, expected", [(None, (0.03, 0.02)), (0.03, (0.03, 0.03)),
                                              (LinearSchedule(0.08, 0.0, 8), (0.07, 0.06))])
def test_state_holds_the_schedule_position_and_the_set_rate(change, expected):
    one, other, data = *(make_algo(learning_rate=LinearSchedule(0.04, 0.0, 4)) for _ in range(2)), draw_data()
    step(one, data)
    if change is not None:
        one.learning_rate = change
    other.set_state(one.get_state())
    assert other.learning_rate == one.learning_rate == pytest.approx(expected[0])
    step(one, data)
    other.policy.set_params(one.policy.get_param_values())
    assert step(one, data) == pytest.approx(expected[1], rel=1e-3)


def test_failed_update_does_not_advance_the_schedule():
    algo, data = make_algo(learning_rate=LinearSchedule(0.04, 0.0, 4)), draw_data()
    broken = draw_data()
    broken[0][0]["advantages"][:] = 1e38  # their sum is not finite
    with pytest.raises(FloatingPointError):
        algo.optimize_policy(broken)
    assert step(algo, data) == pytest.approx(0.04, rel=1e-3)


@pytest.mark.parametrize("rate, error", [(0.0, ValueError), (-1.0, ValueError), ("linear", TypeError)])
def test_rates_are_validated(rate, error):
    with pytest.raises(error, match="learning_rate"):
        make_algo(learning_rate=rate)
    algo = make_algo()
    with pytest.raises(error, match="learning_rate"):
        algo.learning_rate = rate
    assert algo.learning_rate == 1e-3


def test_schedule_values_are_validated():
    algo = make_algo(learning_rate=lambda update: -0.1)
    before = algo.policy.get_flat_params()
    with pytest.raises(ValueError, match="learning_rate.*-0.1"):
        algo.optimize_policy(draw_data())
    np.testing.assert_array_equal(algo.policy.get_flat_params(), before)


def test_trpo_maml_has_no_learning_rate():
    algo = TRPOMAML(make_policy(), meta_batch_size=M, num_inner_grad_steps=0)
    with pytest.raises(AttributeError):
        algo.learning_rate = 0.1


def test_linear_schedule_is_linear_and_then_constant():
    schedule = LinearSchedule(1.0, 0.2, 4)
    assert [schedule(i) for i in (0, 1, 4, 9)] == pytest.approx([1.0, 0.8, 0.2, 0.2])
    with pytest.raises(ValueError, match="num_updates"):
        LinearSchedule(1.0, 0.0, 0)
