"""Tests first-order optimization of small problems with known solutions."""
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from meta_policy_search.optimizers import MAMLFirstOrderOptimizer, MAMLPPOOptimizer, Optimizer
from meta_policy_search.optimizers.base import LinearSchedule
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from tests.helpers.small_world import Target

SGD = tf.train.GradientDescentOptimizer
START = np.array([1.0, -2.0], "f")


class Quadratic:
    """`L(w) = mean_n (w - x_n)^2 / 2`, whose gradient is `w - mean x`."""

    def __init__(self, optimizer, divergence=None, **further):
        self.optimizer = optimizer
        self.target = Target(w=START)
        self.x_ph = tf.placeholder(tf.float32, [None, 2])
        w = self.target.variables["w"]
        loss = 0.5 * tf.reduce_mean(tf.reduce_sum((w - self.x_ph) ** 2, axis=1))
        optimizer.build_graph(loss, self.target, {"x": self.x_ph}, divergence=divergence and divergence(w), **further)

    def optimize(self, x):
        return self.optimizer.optimize({"x": np.asarray(x, "f")})

    @property
    def w(self):
        return self.target.values.read()["w"]


ZEROS = np.zeros((4, 2))


def loss_at(w, x):
    return 0.5 * np.mean(np.sum((w - np.asarray(x)) ** 2, axis=1))


def test_gradient_is_one_vector_with_zeros_for_independent_variables():
    # given L = x |w|^2 / 2 + s, which does not depend on the second variable
    target = Target(w=START, unused=[[7.0], [7.0]], s=1.0)
    x_ph, variables = tf.placeholder(tf.float32, []), target.variables
    optimizer = MAMLFirstOrderOptimizer()
    loss = 0.5 * x_ph * tf.reduce_sum(variables["w"] ** 2) + variables["s"]
    optimizer.build_graph(loss, target, {"x": x_ph})
    gradient = optimizer.gradient({"x": np.float32(3.0)})
    np.testing.assert_array_equal(gradient, [3.0, -6.0, 0.0, 0.0, 1.0])
    assert gradient.dtype == np.float64


def test_one_gradient_descent_step_and_the_loss_before_it():
    x = np.random.default_rng(0).normal(size=(4, 2))
    problem = Quadratic(MAMLFirstOrderOptimizer(SGD, learning_rate=0.1))
    assert isinstance(problem.optimizer, Optimizer)
    assert problem.optimizer.loss({"x": x}) == pytest.approx(loss_at(START, x), rel=1e-5)
    assert problem.optimize(x) == pytest.approx(loss_at(START, x), rel=1e-5)
    np.testing.assert_allclose(problem.w, START - 0.1 * (START - x.mean(axis=0)), rtol=1e-5)


@pytest.mark.parametrize("cls, scale, rate", [(SGD, 1e20, 1e20), ("Adam", 1.0, 1e39), ("Adam", 1e25, 1e-3)])
def test_steps_that_overflow_are_rejected(cls, scale, rate):
    # given a loss that is linear in the parameters, with a finite gradient
    target, optimizer = Target(w=START), MAMLFirstOrderOptimizer(cls, learning_rate=rate)
    optimizer.build_graph(scale * tf.reduce_sum(target.variables["w"]), target, {})
    state = optimizer.get_state()
    with pytest.raises(FloatingPointError, match="the updated .* is not finite; .* reduce the step size"):
        optimizer.optimize({})
    np.testing.assert_array_equal(target.values.read()["w"], START)
    np.testing.assert_equal(optimizer.get_state(), state)


def test_tf_optimizer_cls_and_args():
    # given momentum 0.5 and a constant gradient of one: steps of 0.1, then 0.1 * 1.5
    target = Target(w=[0.0])
    optimizer = MAMLFirstOrderOptimizer(tf.train.MomentumOptimizer, {"momentum": 0.5}, learning_rate=0.1)
    optimizer.build_graph(tf.reduce_sum(target.variables["w"]), target, {})
    optimizer.optimize({})
    np.testing.assert_allclose(target.values.read()["w"], [-0.1], rtol=1e-6)
    optimizer.optimize({})
    np.testing.assert_allclose(target.values.read()["w"], [-0.25], rtol=1e-6)


def test_tf_optimizer_args_can_set_the_learning_rate():
    problem = Quadratic(MAMLFirstOrderOptimizer(SGD, {"learning_rate": 0.5}))
    problem.optimize(ZEROS)
    np.testing.assert_allclose(problem.w, 0.5 * START, rtol=1e-6)
    with pytest.raises(TypeError, match="^tf_optimizer_args: .*'betas'"):
        MAMLFirstOrderOptimizer(SGD, {"betas": (0.9, 0.99)})
    with pytest.raises(TypeError, match="^tf_optimizer_args: expected a dict, got 3$"):
        MAMLFirstOrderOptimizer(SGD, 3)


@pytest.mark.parametrize("tolerance, steps", [(None, 6), (0.0, 6), (0.3, 5), (10.0, 2)])
def test_tolerance_stops_when_an_epoch_improves_less(tolerance, steps):
    # given losses 2.5 * 0.81^i before step i, which decrease by 0.475, 0.385, 0.312, 0.252, ..., seen one step later
    problem = Quadratic(MAMLFirstOrderOptimizer(SGD, learning_rate=0.1, max_epochs=6, tolerance=tolerance))
    problem.optimize(ZEROS)
    np.testing.assert_allclose(problem.w, 0.9**steps * START, rtol=1e-5)


def test_minibatches_split_the_samples_once_per_epoch():
    # given a loss that is linear in the samples, so that SGD steps on 3 parts add up to 3 times the mean step
    target = Target(w=[0.0, 0.0])
    x_ph, c_ph = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [])
    loss = c_ph * tf.reduce_mean(tf.reduce_sum(x_ph * target.variables["w"], axis=1))
    optimizer = MAMLFirstOrderOptimizer(SGD, learning_rate=1.0, num_minibatches=3, max_epochs=2, tolerance=None)
    optimizer.build_graph(loss, target, {"x": x_ph, "c": c_ph})
    x = np.random.default_rng(0).normal(size=(6, 2)).astype("f")
    # when it is optimized for two epochs
    optimizer.optimize({"x": x, "c": 2.0})
    # then every sample was in one minibatch per epoch, and every minibatch had the scalar
    np.testing.assert_allclose(target.values.read()["w"], -2 * 3 * 2.0 * x.mean(axis=0), rtol=1e-4)


def test_minibatches_are_smaller_random_subsets():
    seen = []
    problem = Quadratic(MAMLFirstOrderOptimizer(SGD, num_minibatches=2, max_epochs=2, tolerance=None))
    original = problem.optimizer.compute_means
    problem.optimizer.compute_means = lambda fetches, values: seen.append(values["x"]) or original(fetches, values)
    x = np.arange(20.0).reshape(10, 2)
    assert problem.optimize(x) == pytest.approx(loss_at(START, x), rel=1e-5)  # of all samples, not of one part
    whole, *parts = seen
    assert len(whole) == 10 and [len(part) for part in parts] == [5] * 4
    for epoch in (parts[:2], parts[2:]):
        np.testing.assert_array_equal(np.sort(np.concatenate(epoch), axis=0), x)
    assert sorted(parts[0][:, 0]) != sorted(parts[2][:, 0])


def test_sample_axes_select_the_split_axis():
    target = Target(w=[0.0])
    phs = {name: tf.placeholder(tf.float32, [None, None]) for name in ("split", "whole")}
    # the loss depends on the number of columns of each input
    sizes = tf.cast(tf.stack([tf.size(phs["split"]), 100 * tf.size(phs["whole"])]), tf.float32)
    optimizer = MAMLFirstOrderOptimizer(SGD, learning_rate=1.0, num_minibatches=2)
    optimizer.build_graph(tf.reduce_sum(sizes) * target.variables["w"][0], target, phs, sample_axes={"split": 1})
    optimizer.optimize({"split": np.zeros((2, 6)), "whole": np.zeros((3, 2))})
    np.testing.assert_allclose(target.values.read()["w"], [-2 * (2 * 3 + 600)])


def test_verbose_logs_the_loss_of_every_epoch(messages):
    Quadratic(MAMLFirstOrderOptimizer(SGD, learning_rate=0.1, max_epochs=2, verbose=True)).optimize(ZEROS)
    assert messages == ["Epoch 0: loss 2.5", "Epoch 1: loss 2.025"]
    Quadratic(MAMLFirstOrderOptimizer(SGD, max_epochs=2)).optimize(ZEROS)
    assert len(messages) == 2


@pytest.mark.parametrize("num_minibatches", [1, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_update_with_non_finite_loss_is_refused_as_a_whole(num_minibatches, bad):
    # given a problem with an earlier update, so that Adam's state is not zero
    problem = Quadratic(MAMLFirstOrderOptimizer(max_epochs=3, num_minibatches=num_minibatches, tolerance=None))
    problem.optimize(ZEROS)
    w, slots = problem.w, problem.optimizer.get_state()["variables"]
    assert all(np.any(value) for value in slots.values())
    # when one sample is not finite
    x = np.ones((4, 2))
    x[2, 1] = bad
    problem.optimizer._rng = SimpleNamespace(  # placed in the last minibatch
        permutation=np.arange, bit_generator=SimpleNamespace(state={}))
    with pytest.raises(FloatingPointError, match="the loss is not finite.*first tensor"):
        problem.optimize(x)
    # then variables and Adam's state are unchanged, although a valid minibatch may come first
    np.testing.assert_array_equal(problem.w, w)
    for name, value in problem.optimizer.get_state()["variables"].items():
        np.testing.assert_array_equal(value, slots[name])


def test_non_finite_gradient_is_refused_with_the_name_of_its_variable():
    # given a loss of zero whose derivative is infinite: sqrt(w) at zero
    target = Target(fine=[1.0], root=[0.0])
    variables = target.variables
    optimizer = MAMLFirstOrderOptimizer()
    optimizer.build_graph(tf.reduce_sum(variables["fine"] + tf.sqrt(variables["root"])), target, {})
    with pytest.raises(FloatingPointError, match="the gradient with respect to root:0 is not finite"):
        optimizer.optimize({})
    assert target.values.read() == {"fine": [1.0], "root": [0.0]}


def test_error_names_the_first_non_finite_tensor():
    target, x_ph = Target(w=[1.0]), tf.placeholder(tf.float32, [None])
    culprit = tf.log(x_ph, name="culprit")
    optimizer = MAMLFirstOrderOptimizer()
    loss = tf.reduce_sum(tf.exp(culprit) * target.variables["w"]) + 1.0 / culprit[0]
    optimizer.build_graph(loss, target, {"x": x_ph})
    with pytest.raises(FloatingPointError, match="culprit:0"):
        optimizer.optimize({"x": [2.0, -1.0]})


class Interrupted:
    """Calls a function and raises an error after the call of the given number."""

    def __init__(self, function, number, error):
        self.function, self.number, self.error = function, number, error

    def __call__(self, *args):
        result = self.function(*args)
        self.number -= 1
        if self.number == 0:
            raise self.error
        return result


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError("disk full")])
@pytest.mark.parametrize("where", ["in a step", "between steps", "between epochs"])
def test_interrupted_update_changes_nothing(where, error, monkeypatch):
    # given an optimizer with earlier updates, in the second epoch of the next update
    def problem():
        optimizer = MAMLFirstOrderOptimizer(learning_rate=0.1, num_minibatches=2, max_epochs=3, tolerance=None,
                                            verbose=True)
        optimizer_problem = Quadratic(optimizer)
        optimizer_problem.optimize(x)
        return optimizer_problem

    x = np.random.default_rng(0).normal(size=(8, 2))
    monkeypatch.setattr(logger, "log", lambda text: None)
    one, other = problem(), problem()
    w, state = one.w, one.optimizer.get_state()
    other.target.values.write({"w": w})
    other.optimizer.set_state(state)
    with monkeypatch.context() as patch:
        if where == "in a step":  # TensorFlow raises Ctrl-C after the step was applied
            patch.setattr(one.optimizer, "_take_step", Interrupted(one.optimizer._take_step, 3, error))
        elif where == "between steps":
            patch.setattr(one.optimizer, "_feed", Interrupted(one.optimizer._feed, 4, error))
        else:
            patch.setattr(logger, "log", Interrupted(logger.log, 2, error))
        with pytest.raises(type(error) if isinstance(error, Exception) else error):
            one.optimize(x)
    # then variables, Adam's state and the random state are restored
    np.testing.assert_array_equal(one.w, w)
    after = one.optimizer.get_state()
    assert after["rng"] == state["rng"]
    assert list(after["variables"]) == list(state["variables"]) and len(state["variables"]) == 4
    for name, value in after["variables"].items():
        np.testing.assert_array_equal(value, state["variables"][name])
    # and repeating the update gives the result of an uninterrupted update
    one.optimize(x), other.optimize(x)
    np.testing.assert_array_equal(one.w, other.w)
    assert (one.w != w).all()


@pytest.mark.parametrize("values", [{}, {"y": ZEROS}, {"x": ZEROS, "y": ZEROS}])
def test_inputs_are_validated(values):
    problem = Quadratic(MAMLFirstOrderOptimizer())
    for method in (problem.optimizer.loss, problem.optimizer.optimize):
        with pytest.raises(ValueError, match=r"input_val_dict: expected the names \['x'\]"):
            method(values)


def test_more_minibatches_than_samples_are_refused():
    problem = Quadratic(MAMLFirstOrderOptimizer(num_minibatches=5))
    with pytest.raises(ValueError, match="num_minibatches: expected at most the number of samples, 4, got 5"):
        problem.optimize(ZEROS)


def test_inputs_with_different_numbers_of_samples_are_refused():
    target = Target(w=[0.0])
    phs = {name: tf.placeholder(tf.float32, [None]) for name in "ab"}
    loss = target.variables["w"][0] * (tf.reduce_mean(phs["a"]) + tf.reduce_mean(phs["b"]))
    optimizer = MAMLFirstOrderOptimizer(num_minibatches=2)
    optimizer.build_graph(loss, target, phs)
    with pytest.raises(ValueError, match="the same number of samples.*'a': 4, 'b': 6"):
        optimizer.optimize({"a": np.zeros(4), "b": np.zeros(6)})


def test_problem_is_validated():
    target = Target(w=[0.0, 1.0])
    with pytest.raises(ValueError, match=r"loss: expected a scalar tensor, got shape \(2,\)"):
        MAMLFirstOrderOptimizer().build_graph(1.0 * target.variables["w"], target, {})
    with pytest.raises(ValueError, match=r"sample_axes: .*\['x'\]"):
        MAMLFirstOrderOptimizer().build_graph(tf.reduce_sum(target.variables["w"]), target, {}, {"x": 0})
    with pytest.raises(ValueError, match=r"task_inputs: .*\['y'\]"):
        MAMLFirstOrderOptimizer().build_graph(tf.reduce_sum(target.variables["w"]), target, {}, {}, ["y"])


@pytest.mark.parametrize("name, value", [
    ("tf_optimizer_cls", "Newton"), ("tf_optimizer_cls", SGD(0.1)), ("tf_optimizer_cls", dict), ("learning_rate", 0.0),
    ("learning_rate", np.nan), ("learning_rate", "linear"), ("learning_rate", {"start": 0.1}),
    ("learning_rate", {"start": 0.1, "end": 0.0, "num_updates": 1.5}), ("max_epochs", 0), ("tolerance", -1.0),
    ("num_minibatches", 0), ("num_minibatches", 1.5), ("verbose", 1),
])
def test_arguments_are_checked(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        MAMLFirstOrderOptimizer(**{name: value})


@pytest.mark.parametrize("cls", [MAMLFirstOrderOptimizer, MAMLPPOOptimizer])
@pytest.mark.parametrize("name", ["Adam", "RMSProp", "GradientDescent", "Adagrad", "AdamOptimizer"])
def test_tensorflow_optimizer_can_be_specified_by_name(cls, name):
    """Steps have equal bits with the name and with the class."""
    tf_optimizer_cls = getattr(tf.train, name.removesuffix("Optimizer") + "Optimizer")
    by_name, by_class = (Quadratic(cls(each, learning_rate=0.1, max_epochs=3)) for each in (name, tf_optimizer_cls))
    for problem in (by_name, by_class):
        problem.optimize(ZEROS)
    np.testing.assert_array_equal(by_name.w, by_class.w)
    assert (by_name.w != START).all()


def test_schedule_can_be_a_dict_of_arguments():
    """Steps have equal bits with the dict, which JSON can represent, and with the object."""
    arguments = {"start": 0.1, "end": 0.0, "num_updates": 4}
    by_dict, by_object = (Quadratic(MAMLFirstOrderOptimizer(SGD, learning_rate=rate))
                          for rate in (arguments, LinearSchedule(**arguments)))
    for _ in range(3):
        for problem in (by_dict, by_object):
            problem.optimize(ZEROS)
    np.testing.assert_array_equal(by_dict.w, by_object.w)
    np.testing.assert_allclose(by_dict.w, START * (1 - 0.1) * (1 - 0.075) * (1 - 0.05), rtol=1e-6)
    # and it can be assigned
    by_dict.optimizer.learning_rate = {"start": 0.5, "end": 0.1, "num_updates": np.int64(6)}
    assert by_dict.optimizer.learning_rate == pytest.approx(0.3)


@pytest.mark.parametrize("rate, message", [
    ({"start": 0.1, "stop": 0.0}, "expected the entries start, end, num_updates of a linear schedule, got start, stop"),
    ({"start": 0.1, "end": -1.0, "num_updates": 4}, "end: expected a finite number of at least 0, got -1.0"),
])
def test_message_about_an_invalid_schedule(rate, message):
    with pytest.raises(ValueError, match=f"^learning_rate: {message}$"):
        MAMLFirstOrderOptimizer(learning_rate=rate)


@pytest.mark.parametrize("arguments, steps", [({}, 40), ({"tolerance": 10.0}, 2)])
def test_ppo_optimizer_runs_every_epoch_without_a_tolerance(arguments, steps):
    problem = Quadratic(MAMLPPOOptimizer(SGD, learning_rate=0.1, max_epochs=40, **arguments))
    problem.optimize(ZEROS)
    np.testing.assert_allclose(problem.w, 0.9**steps * START, rtol=1e-4)


@pytest.mark.parametrize("cls", [MAMLFirstOrderOptimizer, MAMLPPOOptimizer])
def test_pickle_has_the_arguments_and_no_graph(cls):
    """The pickle of a built optimizer is an optimizer with the same arguments that can be built."""
    first = Quadratic(cls(SGD, learning_rate=0.2, max_epochs=3))
    first.optimize(ZEROS)
    other = pickle.loads(pickle.dumps(first.optimizer))
    assert repr(other) == repr(first.optimizer) and other.learning_rate == 0.2
    second = Quadratic(other)
    second.optimize(ZEROS)
    np.testing.assert_array_equal(second.w, first.w)


# Limited divergence: with x = 0 and SGD, w = (1 - rate)^k START after k steps


def limited(rate, target_kl, num_steps=5, cls=SGD, **further):
    """A quadratic problem with the divergence `|w - START|^2`; `|START|^2` is 5."""
    optimizer = MAMLPPOOptimizer(cls, learning_rate=rate, max_epochs=num_steps, target_kl=target_kl, **further)
    return Quadratic(optimizer, divergence=lambda w: tf.reduce_sum((w - START) ** 2))


@pytest.mark.parametrize("num_steps", [3, 5])
def test_step_beyond_the_target_is_undone_and_ends_the_update(num_steps):
    # given divergences of 0.05, 0.18 and 0.37 after one, two and three steps
    problem = limited(0.1, 0.2, num_steps)
    # when the limit is 1.5 * 0.2
    problem.optimize(ZEROS)
    # then two steps remain, also if the third one is the last
    np.testing.assert_allclose(problem.w, 0.9 ** 2 * START, rtol=1e-6)
    assert problem.optimizer.step_stats["Rejected"] == 0.0 and problem.optimizer.rate_factor == 1.0


def test_update_within_the_target_equals_one_without_target():
    free, problem = limited(0.1, None), limited(0.1, 1.0)
    for one in (free, problem):
        one.optimize(ZEROS)
    np.testing.assert_array_equal(problem.w, free.w)
    assert "Rejected" not in free.optimizer.step_stats


def test_rejected_updates_halve_the_learning_rate_and_small_ones_increase_it():
    problem = limited(0.1, 0.03)
    rates, rejected = [], []
    for _ in range(2):  # first step: divergence 0.05, then 0.0125; second step: 0.0475, above 0.045
        problem.optimize(ZEROS)
        rates.append(problem.optimizer.step_stats["LearningRate"])
        rejected.append(problem.optimizer.step_stats["Rejected"])
    np.testing.assert_allclose(problem.w, 0.95 * START, rtol=1e-6)
    assert (rates, rejected) == ([0.1, 0.05], [1.0, 0.0])
    factors = []
    for rate, num_updates in ((1e-4, 3), (1e6, 20)):
        problem.optimizer.learning_rate = rate
        for _ in range(num_updates):
            problem.optimize(ZEROS)
            factors.append(problem.optimizer.rate_factor)
    assert factors[:3] == [0.75, 1.0, 1.0] and factors[-1] == 1e-4


@pytest.mark.parametrize("num_minibatches", [1, 2])
def test_update_that_increases_the_loss_is_undone_with_the_moments(num_minibatches):
    # given an earlier update, so that Adam's moments are not zero
    problem = limited(0.01, 1e6, 1, "Adam", num_minibatches=num_minibatches)
    problem.optimize(ZEROS)
    w, moments = problem.w, problem.optimizer.get_state()["variables"]
    # when a step overshoots
    problem.optimizer.learning_rate = 100.0
    problem.optimize(ZEROS)
    # then nothing remains of it
    np.testing.assert_array_equal(problem.w, w)
    np.testing.assert_equal(problem.optimizer.get_state()["variables"], moments)
    assert problem.optimizer.step_stats["Rejected"] == 1.0
    # and the state contains the factor
    state = problem.optimizer.get_state()
    assert state["rate_factor"] == 0.5
    other = limited(0.01, 1e6, 1, "Adam", num_minibatches=num_minibatches)
    other.optimizer.set_state(state)
    assert other.optimizer.rate_factor == 0.5


def test_target_requires_a_divergence():
    with pytest.raises(ValueError, match="target_kl: expected None, because .* no kl_sym, got 0.1"):
        Quadratic(MAMLPPOOptimizer(target_kl=0.1))
    with pytest.raises(ValueError, match="target_kl: expected a finite number above 0, got 0"):
        MAMLPPOOptimizer(target_kl=0)
