"""Tests constrained steps on small problems with known solutions, and Hessian-vector products."""
import pickle

import numpy as np
import pytest
import threadpoolctl

from meta_policy_search.optimizers import ConjugateGradientOptimizer, FiniteDifferenceHvp, Optimizer
from meta_policy_search.optimizers.conjugate_gradient_optimizer import conjugate_gradients
from meta_policy_search.tf_compat import tf
from tests.helpers.small_world import Target
from tests.helpers.threads import blas_threads

HVPS = ["finite_difference", FiniteDifferenceHvp(symmetric=False), "exact"]
H = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]])  # curvature of the constraint
G = np.array([1.0, -2.0, 0.5])  # slope of the loss


def make_target(w=(0.0, 0.0, 0.0)):
    """Returns variables in two parts, `[1]` and `[1, 2]`, and all three numbers as a tensor."""
    target = Target(first=w[:1], rest=[w[1:]])
    return target, tf.concat([tf.reshape(v, [-1]) for v in target.variables.values()], axis=0)


class CountsThreads(FiniteDifferenceHvp):
    """Records the number of threads of matrix operations."""

    def at(self, optimizer, input_val_dict):
        self.threads = blas_threads()
        return super().at(optimizer, input_val_dict)


class Problem:
    """Minimizes `scale * G w + bend |w|^2` subject to `mean(x) w H w / 2 <= epsilon`."""

    def __init__(self, optimizer, epsilon=0.02, start=(0.0, 0.0, 0.0), damping=None):
        self.optimizer = optimizer
        target, w = make_target(start)
        self.phs = {"x": tf.placeholder(tf.float32, [None], name="x"), "scale": tf.placeholder(tf.float32, []),
                    "bend": tf.placeholder(tf.float32, [])}
        loss = self.phs["scale"] * slope(w) + self.phs["bend"] * tf.reduce_sum(w**2)
        kl = 0.5 * tf.reduce_mean(self.phs["x"]) * tf.reduce_sum(w * tf.linalg.matvec(H.astype("f"), w))
        self.epsilon = epsilon
        optimizer.build_graph(loss, target, self.phs, (kl, epsilon), damping=damping)

    def values(self, x=(1.0, 1.0, 1.0, 1.0), scale=1.0, bend=0.0):
        return {"x": np.array(x, "f"), "scale": scale, "bend": bend}

    def optimize(self, **values):
        return self.optimizer.optimize(self.values(**values))

    @property
    def w(self):
        return self.optimizer.get_flat()


def build_optimizer(optimizer, loss, constraint=lambda w: tf.reduce_sum(w**2), inputs=None):
    """Builds an optimizer of `loss(w)` under `constraint(w) <= 0.02`, starting at zero; returns the optimizer."""
    target, w = make_target()
    optimizer.build_graph(loss(w), target, inputs or {}, (constraint(w), 0.02))
    return optimizer


def slope(w):
    return tf.reduce_sum(G.astype("f") * w)


def natural_step(h=H, epsilon=0.02):
    """Returns `-sqrt(2 eps / (g H^-1 g)) H^-1 g`, the minimum of a linear loss on the ellipse of the constraint."""
    direction = np.linalg.solve(h, G)
    return -np.sqrt(2 * epsilon / (G @ direction)) * direction


# Conjugate gradients


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_conjugate_gradients_tolerance_is_relative_to_the_right_hand_side(scale):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix, b = root @ root.T + np.eye(6), rng.normal(size=6)
    products = []
    x, _ = conjugate_gradients(lambda p: products.append(p) or matrix @ p, scale * b, residual_tolerance=1e-2)
    assert np.linalg.norm(matrix @ x - scale * b) <= 0.1 * np.linalg.norm(scale * b)
    assert len(products) == 4  # of 6 iterations, at any scale


@pytest.mark.parametrize("matrix", [-np.eye(2), np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_conjugate_gradients_stops_without_curvature(matrix):
    x, product = conjugate_gradients(lambda p: matrix @ p, np.ones(2))
    assert not x.any() and not product.any()


# Hessian-vector products


class Curved:
    """`f(w) = mean_n tanh(x_n w)^2 + sum w^4 / 10`, whose Hessian depends on `w`."""

    def __init__(self, hvp, start):
        self.optimizer = ConjugateGradientOptimizer(hvp_approach=hvp)
        target, w = make_target(start)
        x_ph = tf.placeholder(tf.float32, [None, 3])
        f = tf.reduce_mean(tf.tanh(tf.linalg.matvec(x_ph, w)) ** 2) + 0.1 * tf.reduce_sum(w**4)
        self.optimizer.build_graph(tf.reduce_sum(w), target, {"x": x_ph}, (f, 1.0))
        rng = np.random.default_rng(0)
        self.values = {"x": rng.normal(size=(20, 3)).astype("f")}

    def dense_hessian(self, w, h=1e-4):
        def f(w):
            return np.mean(np.tanh(self.values["x"].astype(float) @ w) ** 2) + 0.1 * np.sum(w**4)

        e = h * np.eye(3)
        return np.array([[(f(w + a + b) - f(w + a - b) - f(w - a + b) + f(w - a - b)) / (4 * h * h) for b in e]
                         for a in e])


@pytest.mark.parametrize(
    "hvp, tolerance",
    [("exact", 1e-4), ("finite_difference", 1e-3), (FiniteDifferenceHvp(symmetric=False), 3e-2)],
)
@pytest.mark.parametrize("length", [1e-4, 1.0, 1e3])
def test_products_equal_the_dense_hessian_for_vectors_of_any_length(hvp, tolerance, length):
    start = np.array([0.3, -0.5, 0.8])
    problem = Curved(hvp, start)
    hessian = problem.dense_hessian(start)
    for x in length * np.random.default_rng(1).normal(size=(4, 3)):
        product = problem.optimizer.hessian_product(problem.values)(x)
        assert product.dtype == np.float64
        assert np.linalg.norm(product - hessian @ x) <= tolerance * np.linalg.norm(hessian @ x)
    np.testing.assert_array_equal(problem.optimizer.get_flat(), start.astype("f"))


def test_base_eps_is_the_length_of_the_difference_step():
    seen = []
    problem = Curved(FiniteDifferenceHvp(base_eps=0.25), np.zeros(3))
    original = problem.optimizer.set_flat
    problem.optimizer.set_flat = lambda w: seen.append(w) or original(w)
    problem.optimizer.hessian_product(problem.values)(np.array([0.0, 30.0, 40.0]))
    np.testing.assert_allclose(seen, [[0.0, 0.15, 0.2], [0.0, -0.15, -0.2], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("symmetric", [True, False])
def test_finite_differences_restore_the_parameters_even_after_an_error(symmetric):
    start = np.array([0.3, -0.5, 0.8], "f")
    problem = Curved(FiniteDifferenceHvp(symmetric=symmetric), start)
    product = problem.optimizer.hessian_product(problem.values)

    def fails(*args):
        assert (problem.optimizer.get_flat() != start).any()
        raise KeyboardInterrupt

    problem.optimizer.compute = fails
    with pytest.raises(KeyboardInterrupt):
        product(np.ones(3))
    np.testing.assert_array_equal(problem.optimizer.get_flat(), start)


# Steps


@pytest.mark.parametrize("hvp", HVPS)
def test_linear_loss_is_optimized_to_the_border_of_the_trust_region(hvp):
    # the constraint of the full step equals epsilon up to rounding, so the line search may shorten it once
    problem = Problem(ConjugateGradientOptimizer(hvp_approach=hvp, backtrack_ratio=0.999))
    assert isinstance(problem.optimizer, Optimizer)
    assert problem.optimize() == pytest.approx(0.0, abs=1e-6)  # the loss before the step
    np.testing.assert_allclose(problem.w, natural_step(), rtol=1e-2)
    stats = problem.optimizer.step_stats
    assert stats["LossAfter"] == pytest.approx(G @ natural_step(), rel=1e-2)
    assert 0.98 * problem.epsilon < stats["MeanKL"] <= problem.epsilon
    assert problem.optimizer.constraint_val(problem.values()) == pytest.approx(stats["MeanKL"], rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_step_does_not_depend_on_the_scale_of_the_loss(scale):
    problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact"))
    problem.optimize(scale=scale)
    np.testing.assert_allclose(problem.w, natural_step(), rtol=1e-3)


def test_loss_gradient_and_constraint_use_the_inputs():
    w = np.array([0.3, -0.1, 0.2])
    problem = Problem(ConjugateGradientOptimizer(), start=w)
    values = problem.values(scale=2.0, bend=0.5, x=[2.0, 4.0])
    assert problem.optimizer.loss(values) == pytest.approx(2 * G @ w + 0.5 * w @ w, rel=1e-5)
    np.testing.assert_allclose(problem.optimizer.gradient(values), 2 * G + w, rtol=1e-5)
    assert problem.optimizer.constraint_val(values) == pytest.approx(0.5 * 3.0 * w @ H @ w, rel=1e-5)


def test_cg_iters_limits_the_accuracy_of_the_direction():
    one = Problem(ConjugateGradientOptimizer(cg_iters=1, hvp_approach="exact", backtrack_ratio=0.999))
    one.optimize()
    cosine = one.w @ -G / np.linalg.norm(one.w) / np.linalg.norm(G)
    assert cosine == pytest.approx(1.0, abs=1e-5)  # one iteration: along the gradient
    exact = natural_step()
    assert exact @ -G / np.linalg.norm(exact) / np.linalg.norm(G) < 0.98


def test_damping_is_added_to_the_curvature_of_the_named_variables():
    problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact", reg_coeff=1.0), damping={"rest": 10.0})
    problem.optimize()
    np.testing.assert_allclose(problem.w, natural_step(H + np.diag([1.0, 11.0, 11.0])), rtol=1e-3)


@pytest.mark.parametrize("factor, sizes", [(1.0, {8}), (0.5, {4}), (0.01, {1})])
def test_subsample_factor_is_the_fraction_of_samples_in_the_products(factor, sizes):
    problem = Problem(ConjugateGradientOptimizer(subsample_factor=factor, hvp_approach="exact"))
    seen, original = [], problem.optimizer.hessian_product
    problem.optimizer.hessian_product = lambda values: seen.append(values) or original(values)
    x = np.arange(1.0, 9.0)
    problem.optimize(x=x), problem.optimize(x=x)
    assert {len(values["x"]) for values in seen} == sizes
    assert all(values["scale"] == 1.0 for values in seen)  # scalars are unchanged
    drawn = {tuple(values["x"]) for values in seen}
    assert all(set(subset) <= set(x) for subset in drawn)
    assert len(drawn) == (1 if factor == 1.0 else 2)  # one per optimize call, drawn anew


def test_loss_and_constraint_use_all_samples_with_subsampling():
    problem = Problem(ConjugateGradientOptimizer(subsample_factor=0.25, hvp_approach="exact", backtrack_ratio=0.99,
                                                 max_backtracks=300))
    x = np.array([0.5, 3.0, 3.0, 3.0])
    for _ in range(3):
        problem.optimizer.set_flat(np.zeros(3))
        problem.optimize(x=x)
        constraint = 0.5 * x.mean() * problem.w @ H @ problem.w
        assert constraint <= problem.epsilon * (1 + 1e-5)
        assert problem.optimizer.step_stats["MeanKL"] == pytest.approx(constraint, rel=1e-5)


def test_backtrack_ratio_and_the_line_search():
    # given a loss whose full step is too long: G w + bend w^2 decreases only for short steps
    full = natural_step()
    bend = 1.5 * (-G @ full) / (full @ full)  # lower than at zero for fractions below 1 / 1.5
    for ratio, fraction in ((0.8, 0.8**2), (0.5, 0.5)):
        problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact", backtrack_ratio=ratio))
        problem.optimize(bend=bend)
        stats = problem.optimizer.step_stats
        assert stats["StepFraction"] == pytest.approx(fraction)
        np.testing.assert_allclose(problem.w, fraction * full, rtol=1e-3)
        assert stats["LossAfter"] < stats["LossBefore"]


def test_step_that_violates_the_constraint_is_shortened():
    # given samples of which the product uses the quarter with the smallest curvature
    problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact", backtrack_ratio=0.5))
    problem.optimizer._subsample = lambda values: {**values, "x": values["x"][:1]}
    problem.optimize(x=[0.1, 2.0, 2.0, 2.0])
    stats = problem.optimizer.step_stats
    assert 0.0 < stats["StepFraction"] < 0.5 and stats["MeanKL"] <= problem.epsilon


def hopeless(**arguments):
    """A problem whose loss increases in every direction by a cliff without gradient."""
    def loss(w):
        return slope(w) + 10.0 * tf.stop_gradient(tf.cast(tf.reduce_any(tf.not_equal(w, 0.0)), tf.float32))

    return build_optimizer(ConjugateGradientOptimizer(hvp_approach="exact", **arguments), loss)


@pytest.mark.parametrize("max_backtracks", [1, 4])
def test_parameters_are_unchanged_after_max_backtracks(max_backtracks, messages):
    optimizer = hopeless(max_backtracks=max_backtracks)
    optimizer.optimize({})
    assert optimizer.get_flat().tolist() == [0.0, 0.0, 0.0]
    assert not any(optimizer.step_stats.values())
    assert messages == ["no step met the conditions of the line search; the parameters are unchanged"]


def test_accept_violation_keeps_the_smallest_step(messages):
    optimizer = hopeless(accept_violation=True, max_backtracks=3, backtrack_ratio=0.5)
    optimizer.optimize({})
    stats = optimizer.step_stats
    assert stats["StepFraction"] == 0.25 and stats["LossAfter"] > 9.0
    full_length = np.sqrt(0.02)  # where |w|^2 is epsilon
    np.testing.assert_allclose(np.linalg.norm(optimizer.get_flat()), 0.25 * full_length, rtol=1e-4)
    assert not messages


def test_accept_violation_never_keeps_a_step_into_nan():
    optimizer = ConjugateGradientOptimizer(hvp_approach="exact", accept_violation=True, max_backtracks=2)
    build_optimizer(optimizer, lambda w: tf.reduce_sum(tf.log(1.0 - 1e6 * w)))
    optimizer.optimize({})  # the loss decreases towards the end of the logarithm's domain
    assert optimizer.get_flat().tolist() == [0.0, 0.0, 0.0] and optimizer.step_stats["StepFraction"] == 0.0


@pytest.mark.parametrize("drop", [0.0, -np.inf])
def test_loss_of_minus_infinity_is_not_accepted(drop):
    # given a loss that drops to minus infinity after a tenth of the full step
    def loss(w):
        is_far = tf.stop_gradient(tf.reduce_sum(w**2)) > 0.02 * 0.1**2
        return slope(w) + tf.where(is_far, tf.constant(drop, tf.float32), 0.0)

    optimizer = build_optimizer(ConjugateGradientOptimizer(hvp_approach="exact", backtrack_ratio=0.5), loss)
    optimizer.optimize({})
    assert optimizer.step_stats["StepFraction"] == (1.0 if drop == 0.0 else 0.0625)


@pytest.mark.parametrize("accept_violation", [False, True])
def test_at_a_minimum_no_line_search_runs_and_parameters_are_unchanged(accept_violation, messages):
    start = np.array([0.1, 0.2, -0.1], "f")
    optimizer = ConjugateGradientOptimizer(hvp_approach="exact", accept_violation=accept_violation)
    problem = Problem(optimizer, start=start)
    writes, original = [], optimizer.set_flat
    optimizer.set_flat = lambda flat: writes.append(flat) or original(flat)
    assert problem.optimize(scale=0.0) == 0.0
    np.testing.assert_array_equal(problem.w, start)
    constraint = pytest.approx(0.5 * start @ H @ start, rel=1e-5)
    assert optimizer.step_stats == {**dict.fromkeys(optimizer.step_stats, 0.0), "MeanKLBefore": constraint,
                                    "MeanKL": constraint}
    assert not writes
    assert messages == ["the gradient or the curvature along it is zero; the parameters are unchanged"]


def test_with_a_flat_constraint_parameters_are_unchanged(messages):
    problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact"))
    problem.optimize(x=[0.0, 0.0])
    assert problem.w.tolist() == [0.0, 0.0, 0.0] and problem.optimizer.step_stats["StepFraction"] == 0.0
    assert len(messages) == 1


@pytest.mark.parametrize("debug_nan, is_terminal, opened", [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_debugger_opens_only_on_a_terminal(debug_nan, is_terminal, opened, monkeypatch, messages):
    calls = []
    monkeypatch.setattr("pdb.set_trace", lambda: calls.append(1))
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": staticmethod(lambda: is_terminal)}))
    problem = Problem(ConjugateGradientOptimizer(debug_nan=debug_nan))
    with pytest.raises(FloatingPointError, match="the loss is not finite.*first tensor that is not finite: "):
        problem.optimize(scale=np.nan)
    assert len(calls) == opened and problem.w.tolist() == [0.0, 0.0, 0.0]


def test_non_finite_gradient_is_refused():
    optimizer = build_optimizer(ConjugateGradientOptimizer(), lambda w: tf.reduce_sum(tf.sqrt(w)))
    with pytest.raises(FloatingPointError, match="the gradient of the loss is not finite"):
        optimizer.optimize({})
    assert optimizer.get_flat().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("accept_violation", [False, True])
def test_non_finite_constraint_is_refused(accept_violation):
    start = np.array([0.1, 0.2, 0.3], "f")
    optimizer = ConjugateGradientOptimizer(accept_violation=accept_violation, debug_nan=True)
    with pytest.raises(FloatingPointError, match="the constraint is not finite.*first tensor that is not finite"):
        Problem(optimizer, start=start).optimize(x=[1.0, np.nan])
    np.testing.assert_array_equal(optimizer.get_flat(), start)


@pytest.mark.parametrize("hvp", HVPS)
def test_non_finite_curvature_is_refused(hvp):
    # given a constraint that is zero at zero and NaN elsewhere: |w|^1.5, whose second derivative is infinite at zero
    optimizer = build_optimizer(ConjugateGradientOptimizer(hvp_approach=hvp), slope,
                                constraint=lambda w: tf.reduce_sum(w * tf.sqrt(w)))
    with pytest.raises(FloatingPointError, match="the curvature of the constraint is not finite"):
        optimizer.optimize({})
    assert optimizer.get_flat().tolist() == [0.0, 0.0, 0.0]


def test_update_interrupted_before_the_line_search_changes_nothing():
    start = np.array([0.1, 0.2, 0.3], "f")
    problem = Problem(ConjugateGradientOptimizer(subsample_factor=0.5), start=start)
    state, original, calls = problem.optimizer.get_state(), problem.optimizer.compute, []

    def interrupted(*args):
        calls.append((problem.w != start).any())
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*args)

    problem.optimizer.compute = interrupted
    with pytest.raises(KeyboardInterrupt):
        problem.optimize()
    assert all(calls)  # during a finite difference
    np.testing.assert_array_equal(problem.w, start)
    assert problem.optimizer.get_state() == state  # the same subsample will be drawn again
    assert not problem.optimizer.step_stats


def test_parameters_are_restored_if_the_line_search_is_interrupted():
    problem = Problem(ConjugateGradientOptimizer(hvp_approach="exact"))
    original = problem.optimizer.compute_means

    def interrupted(fetches, *args):
        if fetches == [problem.optimizer._loss, problem.optimizer._constraint]:
            assert problem.w.any()  # during a trial step
            raise KeyboardInterrupt
        return original(fetches, *args)

    problem.optimizer.compute_means = interrupted
    with pytest.raises(KeyboardInterrupt):
        problem.optimize()
    assert problem.w.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("cls, name, value", [
    *((ConjugateGradientOptimizer, *pair) for pair in [
        ("cg_iters", 0), ("reg_coeff", -1.0), ("subsample_factor", 0.0), ("subsample_factor", 1.1),
        ("backtrack_ratio", 1.0), ("backtrack_ratio", 0.0), ("max_backtracks", 0), ("debug_nan", 1),
        ("accept_violation", "no"), ("hvp_approach", "newton"), ("hvp_approach", FiniteDifferenceHvp)]),
    (FiniteDifferenceHvp, "base_eps", 0.0), (FiniteDifferenceHvp, "symmetric", 1),
])
def test_arguments_are_checked(cls, name, value):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
        cls(**{name: value})


def test_gauss_newton_product_has_only_the_curvature_in_the_outputs():
    # given y = tanh(w), and the squared length dy diag(curvature) dy of a change
    start, curvature = np.array([0.5, -0.3, 0.2]), np.array([3.0, 1.0, 2.0])
    target, w = make_target(start)
    y = tf.tanh(w)
    f, optimizer = tf.reduce_sum(y), ConjugateGradientOptimizer(hvp_approach="gauss_newton")
    optimizer.build_graph(
        f, target, {}, (f, 1.0), constraint_metric=([y], lambda dy: tf.reduce_sum(curvature.astype("f") * dy[0] ** 2)))
    x = np.array([1.0, -2.0, 0.5])
    slope = 1.0 - np.tanh(start) ** 2
    np.testing.assert_allclose(optimizer.hessian_product({})(x), slope * curvature * slope * x, rtol=1e-5)


def test_problem_is_validated():
    target, w = make_target()
    scalar = tf.reduce_sum(w**2)
    with pytest.raises(ValueError, match=r"leq_constraint: expected a scalar tensor, got shape \(3,\)"):
        ConjugateGradientOptimizer().build_graph(scalar, target, {}, (w, 1.0))
    with pytest.raises(ValueError, match=r"leq_constraint\[1\]: .*got 0"):
        ConjugateGradientOptimizer().build_graph(scalar, target, {}, (scalar, 0.0))
    with pytest.raises(ValueError, match="constraint_metric: expected the outputs.*gauss_newton"):
        ConjugateGradientOptimizer(hvp_approach="gauss_newton").build_graph(scalar, target, {}, (scalar, 1.0))


# Pickles


@pytest.mark.parametrize("hvp", ["exact", FiniteDifferenceHvp(base_eps=1e-3, symmetric=False)], ids=str)
def test_pickle_has_the_arguments_and_no_graph(hvp):
    """The pickle of a built optimizer is an optimizer with the same arguments that can be built."""
    first = Problem(ConjugateGradientOptimizer(cg_iters=3, reg_coeff=1.0, hvp_approach=hvp))
    first.optimize()
    other = pickle.loads(pickle.dumps(first.optimizer))
    assert repr(other) == repr(first.optimizer) and not other.step_stats
    assert repr(other.hvp_approach) == repr(hvp)
    second = Problem(other)
    second.optimize()
    np.testing.assert_array_equal(second.w, first.w)


def test_vectors_are_summed_in_one_thread():
    """Sums of more than 10,000 numbers in several threads depend on the number of threads."""
    products = CountsThreads()
    problem = Problem(ConjugateGradientOptimizer(hvp_approach=products))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        problem.optimize()
        assert products.threads == {1} != blas_threads()
