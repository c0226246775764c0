"""Tests linear and zero baselines: features, fit, singular fits, parameters, diagnostics, invalid input."""
import pickle
import re
import types

import numpy as np
import pytest

from meta_policy_search import baselines
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline, make_baseline
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.utils.fast_paths import fast_path

LINEAR = [LinearFeatureBaseline, LinearTimeBaseline]


def make_paths(lengths=(7, 12, 5), obs_dim=3, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"observations": rng.normal(size=(n, obs_dim)), "rewards": rng.normal(size=n), "returns": rng.normal(size=n)}
        for n in lengths
    ]


def reference_features(path, with_observations):
    """Returns one row per step, computed directly from the formula."""
    rows = []
    for step, observation in enumerate(path["observations"]):
        t = step / 100.0
        clipped = [min(max(o, -10.0), 10.0) for o in observation] if with_observations else []
        rows.append(clipped + [o * o for o in clipped] + [t, t ** 2, t ** 3, 1.0])
    return np.array(rows)


@pytest.mark.parametrize("observation, clipped", [(25.0, 10.0), (-1e9, -10.0), (9.5, 9.5)])
def test_observations_are_clipped_before_they_are_squared(observation, clipped):
    baseline = LinearFeatureBaseline()
    baseline.set_params([1.0, 1000.0, 0.0, 0.0, 0.0, 0.0])
    assert baseline.predict({"observations": [[observation]]}) == pytest.approx([clipped + 1000.0 * clipped ** 2])


@pytest.mark.parametrize("cls", LINEAR)
@pytest.mark.parametrize("reg_coeff", [1e-5, 0.3, 50.0])
def test_fit_solves_the_damped_normal_equations(cls, reg_coeff):
    # given paths of unequal length; time starts at zero in each path
    paths = make_paths()
    # when fitted
    baseline = cls(reg_coeff=reg_coeff)
    baseline.fit(paths)
    # then w = (X^T X + reg I)^-1 X^T y
    x = np.concatenate([reference_features(path, cls is LinearFeatureBaseline) for path in paths])
    y = np.concatenate([path["returns"] for path in paths])
    expected = np.linalg.inv(x.T @ x + reg_coeff * np.eye(x.shape[1])) @ x.T @ y
    np.testing.assert_allclose(baseline.get_param_values(), expected, rtol=1e-6, atol=1e-9)
    for path in paths:
        np.testing.assert_allclose(
            baseline.predict(path), reference_features(path, cls is LinearFeatureBaseline) @ expected, atol=1e-8)


@pytest.mark.parametrize("reg_coeff", [0.0, 1e-30, 1e-5])
@pytest.mark.parametrize("observations", [
    pytest.param(np.zeros((50, 2)), id="all zero"),
    pytest.param(np.full((50, 2), 10.0), id="constant, like the constant feature"),
    pytest.param(np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 2, axis=1), id="twice the same"),
    pytest.param(np.sign(np.random.default_rng(0).normal(size=(50, 2))), id="squares all one"),
])
def test_singular_fit_is_finite_and_as_good_as_least_squares(observations, reg_coeff):
    # given features without full rank, and the residual of their best fit
    target = np.random.default_rng(1).normal(size=50)
    path = {"observations": observations, "returns": target}
    x = reference_features(path, True)
    assert np.linalg.matrix_rank(x) < x.shape[1]
    best = target - x @ np.linalg.pinv(x) @ target
    # when fitted
    baseline = LinearFeatureBaseline(reg_coeff=reg_coeff)
    baseline.fit([path])
    # then the coefficients are moderate, and the residual equals the minimum
    assert np.abs(baseline.get_param_values()).max() < 1e4
    residual = target - baseline.predict(path)
    assert np.sum(residual ** 2) == pytest.approx(np.sum(best ** 2), rel=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_nearly_singular_fit_is_as_good_as_least_squares(seed):
    # given two observations that differ by 1e-10 to 1e-6 of their size, too little for the normal equations
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(50, 1))
    second = first + 10.0 ** rng.uniform(-10.0, -6.0) * rng.normal(size=(50, 1))
    path = {"observations": 3.0 * np.hstack([first, second]), "returns": rng.normal(size=50)}
    # when fitted without damping, then the residual is at most that of least squares on the features
    baseline = LinearFeatureBaseline(reg_coeff=0.0)
    baseline.fit([path])
    x = reference_features(path, True)
    best = path["returns"] - x @ np.linalg.lstsq(x, path["returns"], rcond=None)[0]
    residual = path["returns"] - baseline.predict(path)
    assert np.sum(residual ** 2) == pytest.approx(np.sum(best ** 2), rel=1e-3)


@pytest.mark.parametrize("cls", LINEAR)
def test_unfitted_baseline_predicts_zero_and_has_no_parameters(cls):
    baseline = cls()
    assert baseline.get_param_values() is None
    prediction = baseline.predict({"observations": np.ones((4, 2))})
    assert prediction.dtype == np.float64
    np.testing.assert_array_equal(prediction, np.zeros(4))


@pytest.mark.parametrize("cls", LINEAR)
def test_parameters_round_trip(cls):
    paths = make_paths()
    fitted, other = cls(), cls()
    fitted.fit(paths)
    other.set_params(fitted.get_param_values(trainable=True), trainable=True)
    np.testing.assert_array_equal(other.predict(paths[0]), fitted.predict(paths[0]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(paths[0]), fitted.predict(paths[0]))
    given, expected = fitted.get_param_values(), fitted.get_param_values().copy()
    other.set_params(given)
    given[:] = other.get_param_values()[:] = 0.0  # copies
    np.testing.assert_array_equal([fitted.get_param_values(), other.get_param_values()], [expected, expected])
    other.set_params(cls().get_param_values())  # None: not fitted
    np.testing.assert_array_equal(other.predict(paths[0]), np.zeros(len(paths[0]["returns"])))


def test_zero_baseline():
    baseline = ZeroBaseline()
    baseline.fit(make_paths())
    baseline.fit(make_paths(), target_key="rewards")
    prediction = baseline.predict({"observations": np.ones((4, 2), dtype=np.float32)})
    assert prediction.dtype == np.float64
    np.testing.assert_array_equal(prediction, np.zeros(4))
    assert baseline.get_param_values() is None
    baseline.set_params(baseline.get_param_values())
    baseline.log_diagnostics(make_paths(), "Step_0-")
    for value in (np.zeros(5000), np.zeros((30, 30)), {"coeffs": np.zeros((99, 2))}, list(range(99))):
        with pytest.raises(ValueError, match="expected None, because a ZeroBaseline has no parameters, got ") as error:
            baseline.set_params(value)
        assert len(str(error.value)) < 150 and "\n" not in str(error.value)


class Mean:
    """A user-defined baseline that predicts the mean of the target."""

    def fit(self, paths, target_key="returns"):
        self.mean, self.target_key = np.mean(np.concatenate([path[target_key] for path in paths])), target_key

    def predict(self, path):
        return np.full(len(path["observations"]), self.mean)


def test_object_with_fit_and_predict_is_a_baseline():
    baseline = Mean()
    assert make_baseline(baseline) is baseline and fast_path(baseline, "fit_predict") is None
    processor = SampleProcessor(baseline, discount=1.0)
    path = {key: np.ones((3, 1)) for key in ("observations", "actions")} | {
        "rewards": np.arange(3.0), "env_infos": {}, "agent_infos": {}}
    samples = processor.process_samples([path])
    np.testing.assert_allclose(samples["advantages"], samples["returns"] - samples["returns"].mean())
    processor.train_baseline([path])
    assert processor.get_state()["baselines"] == [] and not hasattr(baseline, "train")


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_name_of_a_class_stands_for_a_new_object_with_default_arguments(name):
    one, other = make_baseline(name), make_baseline(name)
    assert type(one) is getattr(baselines, name) and one is not other and repr(one) == f"{name}()"


@pytest.mark.parametrize("value", [None, 3, types.SimpleNamespace(fit=print), types.SimpleNamespace(fit=1, predict=2)])
def test_object_without_fit_and_predict_is_refused(value):
    with pytest.raises(TypeError, match="^return_baseline: expected .* an object with the methods fit and predict, "):
        make_baseline(value, "return_baseline")


@pytest.mark.parametrize("cls", LINEAR)
@pytest.mark.parametrize("lengths", [(6, 6, 6), (7, 12, 5)])
def test_vectorized_method_agrees_with_fit_and_predict(cls, lengths):
    paths, one, other = make_paths(lengths), cls(), cls()
    observations = np.concatenate([path["observations"] for path in paths])
    returns = np.concatenate([path["returns"] for path in paths])
    predictions = fast_path(one, "fit_predict")(paths, observations, returns, np.array(lengths))
    other.fit(paths)
    np.testing.assert_allclose(one.get_param_values(), other.get_param_values(), rtol=1e-9)
    for path, values in zip(paths, predictions, strict=True):
        np.testing.assert_allclose(values, other.predict(path), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("repeated", [False, True])
def test_fit_with_more_features_than_samples_solves_the_primal_form(repeated):
    """Given 1,204 features and 24 samples, then the dual form gives `w` with `(X^T X + r I) w = X^T y`."""
    paths = make_paths(obs_dim=600)
    paths += [{**paths[0], "returns": paths[0]["returns"] + 1.0}] if repeated else []  # `X X^T` is singular
    baseline = LinearFeatureBaseline(reg_coeff=0.1)
    baseline.fit(paths)
    coeffs = baseline.get_param_values()
    features = np.concatenate([reference_features(path, True) for path in paths])
    targets = np.concatenate([path["returns"] for path in paths])
    assert coeffs.shape == (1204,)
    np.testing.assert_allclose(features.T @ (features @ coeffs) + 0.1 * coeffs, features.T @ targets, atol=1e-8)
    np.testing.assert_allclose(baseline.predict(paths[0]), features[:7] @ coeffs, rtol=1e-9)


def test_log_diagnostics_logs_explained_variance_of_the_fitted_target(logged):
    paths = make_paths()
    baseline = LinearFeatureBaseline()
    for target_key, prefix in (("returns", "Step_0-"), ("rewards", "Step_1-")):
        baseline.fit(paths, target_key=target_key)
        baseline.log_diagnostics(paths, prefix)
        target = np.concatenate([path[target_key] for path in paths])
        residual = target - np.concatenate([baseline.predict(path) for path in paths])
        # 1 - Var[y - b] / Var[y]
        assert logged[prefix + "ExplainedVariance"] == pytest.approx(1.0 - residual.var() / target.var())
    assert set(logged) == {"Step_0-ExplainedVariance", "Step_1-ExplainedVariance"}


def broken(key, value):
    paths = make_paths(lengths=(4, 4))
    if value is None:
        del paths[1][key]
    else:
        paths[1][key] = value
    return paths


@pytest.mark.parametrize("paths, message", [
    ([], "paths: expected at least one path, got none"),
    (broken("returns", None), "paths[1]: expected a key 'returns', got only ['observations', 'rewards']"),
    (broken("returns", [0.0, 1.0, np.nan, 2.0]), "paths[1]: returns: expected finite numbers, got nan at step 2"),
    (broken("returns", np.zeros((4, 1))), "paths[1]: returns: expected shape [T] with T of at least 1, got (4, 1)"),
    (broken("returns", np.zeros(5)), "paths[1]: observations: expected shape (5, 3) to match 'returns'"),
    (broken("observations", np.zeros((4, 2))), "paths[1]: observations: expected shape (4, 3)"),
    ([{"observations": np.zeros((2, 64 * 64 * 3)), "returns": np.zeros(2)}],
     "observations: expected at most 5,000 entries for a LinearFeatureBaseline, got 12,288: use baseline"),
    (broken("returns", np.full(4, 1e308)), "targets as large as 1e+308 overflow the fit"),
])
def test_fit_names_the_invalid_entry_and_keeps_its_parameters(paths, message):
    baseline = LinearFeatureBaseline()
    with pytest.raises(ValueError, match=re.escape(message)):
        baseline.fit(paths)
    assert baseline.get_param_values() is None


def test_predict_and_log_diagnostics_name_the_invalid_entry():
    baseline = LinearFeatureBaseline()
    baseline.fit(make_paths(obs_dim=3))
    with pytest.raises(ValueError, match=re.escape("path: expected observations with 10 features, one per coefficient, "
                                                   "got shape (4, 2) with 8 features")):
        baseline.predict({"observations": np.zeros((4, 2))})
    with pytest.raises(ValueError, match="path: expected a key 'observations'"):
        baseline.predict({"rewards": np.zeros(4)})
    with pytest.raises(ValueError, match="paths: expected at least one path"):
        baseline.log_diagnostics([], "")
    with pytest.raises(ValueError, match=re.escape("paths[0]: expected a key 'returns'")):
        baseline.log_diagnostics([{"observations": np.zeros((4, 3))}], "")


@pytest.mark.parametrize("value", [np.zeros((2, 2)), [1.0, np.nan], 3.0])
def test_set_params_rejects_invalid_coefficients(value):
    with pytest.raises(ValueError, match="value: expected None or a vector of finite coefficients"):
        LinearTimeBaseline().set_params(value)


@pytest.mark.parametrize("reg_coeff, error", [(-1e-3, ValueError), (np.nan, ValueError), ("1", TypeError)])
def test_reg_coeff_is_checked(reg_coeff, error):
    with pytest.raises(error, match="reg_coeff: expected"):
        LinearFeatureBaseline(reg_coeff=reg_coeff)
