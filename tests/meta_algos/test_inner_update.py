"""Tests a custom inner update rule with task-specific state: momentum, compared with NumPy."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import VPGMAML
from meta_policy_search.ops import adaptation
from meta_policy_search.tf_compat import tf
from tests.helpers.numpy_reference import inner_gradient
from tests.helpers.small_world import M, draw_data, flat_task_params, make_policy, relative_error, set_theta, shapes_of

INNER_LR, DECAY = 0.3, 0.5


class MomentumMAML(VPGMAML):
    """`v' = DECAY v + g`, `theta' = theta - alpha v'`; the velocity starts at zero. The step number has no effect."""

    def initial_inner_state(self, params):
        zeros = {name: tf.zeros_like(value) for name, value in params.items()}
        return {**zeros, "step": next(iter(zeros.values()))[:, 0, 0]}

    def inner_update(self, params, loss, state):
        gradients = adaptation.task_gradients(params, loss, self.first_order)
        velocity = {name: DECAY * state[name] + gradients[name] for name in params}
        return {name: params[name] - self.step_sizes[name] * velocity[name] for name in params}, {
            **velocity, "step": state["step"] + 1.0}


def own(base=MomentumMAML, **methods):
    return type("Own", (base,), methods)


@pytest.mark.parametrize("algo_class, error, message", [
    (own(inner_update=lambda self, params, loss, state: params), TypeError,
     r"Own.inner_update: expected a pair \(parameters, state\), got a OrderedDict"),
    (own(inner_update=lambda self, params, loss, state: ({min(params): params[min(params)]}, state)), ValueError,
     "Own.inner_update: parameters: expected a dict with .*, got log_std_net"),
    (own(inner_update=lambda self, params, loss, state: (
        {name: tf.reduce_mean(value, axis=0) for name, value in params.items()}, state)), ValueError,
     r"Own.inner_update: parameters: .*kernel: expected the shape \('M', .*, got \("),
    (own(inner_update=lambda self, params, loss, state: (params, {"speed": loss})), ValueError,
     "Own.inner_update: state: expected a dict with mean_.*, got speed"),
    (own(initial_inner_state=lambda self, params: {name: tf.zeros(()) for name in params}), TypeError,
     r"Own.initial_inner_state: expected a dict of tensors \[M, ...\], got {'mean_"),
    (own(initial_inner_state=lambda self, params: None), TypeError,
     r"Own.initial_inner_state: expected a dict of tensors \[M, ...\], got None"),
    (own(initial_inner_state=lambda self, params: {}), KeyError,
     "Own.inner_update: expected a state with the entry .*initial_inner"),
    (own(VPGMAML, inner_loss=lambda self, step: tf.zeros_like(VPGMAML.inner_loss(self, step))), ValueError,
     "inner_loss: expected a loss that depends on the adapted parameters"),
    (own(VPGMAML, meta_objective=lambda self, steps: VPGMAML.meta_objective(self, steps)._replace(
        loss=tf.constant(1.0))), ValueError, "loss: expected a loss that depends on the variables"),
])
def test_wrong_methods_are_named(algo_class, error, message):
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        algo_class(make_policy(), meta_batch_size=M)


@pytest.fixture(scope="module")
def built():
    with tf.Graph().as_default():
        yield MomentumMAML(make_policy(), inner_lr=INNER_LR, meta_batch_size=M, num_inner_grad_steps=2)


@pytest.fixture
def algo(built):
    built.policy.switch_to_pre_update()
    return built


def expected_after(theta, shapes, steps, task, lr=INNER_LR):
    velocity = np.zeros_like(theta)
    for samples in steps:
        velocity = DECAY * velocity + inner_gradient(theta, shapes, samples[task], "likelihood_ratio")
        theta = theta - lr * velocity
    return theta


def check(algo, theta, steps, lr=INNER_LR):
    for task, actual in enumerate(flat_task_params(algo.policy)):
        expected = expected_after(theta, shapes_of(algo.policy), steps, task, lr)
        assert relative_error(actual - theta, expected - theta) < 1e-4


def test_state_is_passed_from_one_adaptation_step_to_the_next(algo):
    data, theta = draw_data(2), set_theta(algo.policy)
    for count in (1, 2):
        algo.adapt(data[count - 1])
        check(algo, theta, data[:count])


def test_state_restarts_with_the_pre_update_parameters(algo):
    data, theta = draw_data(2), set_theta(algo.policy)
    algo.adapt(data[0])
    algo.policy.switch_to_pre_update()
    algo.adapt(data[1])
    check(algo, theta, [data[1]])
    # also for parameters that the user sets
    algo.policy.update_task_parameters([algo.policy.get_param_values()] * M)
    algo.adapt(data[1], step_size=0.1)
    check(algo, theta, [data[1]], lr=0.1)


def test_another_number_of_tasks_has_a_separate_state(algo):
    data, theta = draw_data(2), set_theta(algo.policy)
    algo.adapt(data[0])
    one = algo.with_meta_batch_size(1)
    one.adapt(data[0][:1])
    algo.adapt(data[1])
    check(algo, theta, data[:2])
    check(one, theta, data[:1])
    one.adapt(data[1][:1])
    check(one, theta, data[:2])


def test_meta_objective_has_the_same_adaptation_steps(algo):
    """After two adaptations, the parameters equal those of the last step in the graph."""
    data, _ = draw_data(2), set_theta(algo.policy)
    algo.adapt(data[0])
    algo.adapt(data[1])
    feed = algo.optimizer._feed(algo.meta_input_values(data))
    chain = algo.policy._variables.session().run(dict(algo._chain[-1].params), feed)
    for name, values in algo.policy.stacked_param_values().items():
        np.testing.assert_allclose(chain[name], values, rtol=1e-4, atol=1e-6)


def test_meta_gradient_flows_through_all_velocities(algo):
    """The difference of the losses at `theta + h d` and `theta - h d` equals the meta-gradient along `d`."""
    data, theta = draw_data(2), set_theta(algo.policy)
    values = algo.meta_input_values(data)
    gradient = algo.optimizer.gradient(values)
    direction = gradient / np.linalg.norm(gradient)
    losses = []
    for h in (1e-2, -1e-2):
        algo.policy.set_flat_params((theta + h * direction).astype("f"))
        losses.append(algo.optimizer.loss(values))
    assert (losses[0] - losses[1]) / 2e-2 == pytest.approx(np.linalg.norm(gradient), rel=1e-2)


@pytest.mark.parametrize("inner_loss", [
    lambda step: step.log_prob * step.inputs.advantages, lambda step: tf.reduce_mean(step.log_prob), lambda step: None])
def test_inner_loss_that_is_not_one_number_for_each_task_is_rejected(inner_loss):
    """A loss of each sample would add to the losses of all tasks without an error."""
    algo_class = own(VPGMAML, inner_loss=lambda self, step: inner_loss(step))
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"^Own.inner_loss: expected a tensor \[M\] with"):
        algo_class(make_policy(), meta_batch_size=M)
