"""The learned baseline: gradient, training, fit to tasks, sample processors, bad input."""
import re
from functools import partial

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.baselines import GaussianMLPBaseline, LinearFeatureBaseline
from meta_policy_search.baselines.gaussian_mlp_baseline import value_loss
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.ops.networks import make_mlp
from meta_policy_search.utils import seeding
from meta_policy_search.utils.utils import explained_variance_1d
from tests.helpers.runs import assert_same

TINY = dict(meta_batch_size=2, rollouts_per_meta_task=3, max_path_length=8, hidden_sizes=(4,), progress_bar=False)


@pytest.fixture(autouse=True)
def seed():
    with seeding.evaluation_seed(0):
        yield


def make_paths(value, num_paths=20, length=50, obs_dim=2, seed=0):
    """Paths whose return is a function of observations `[T, O]` and steps `[T]`."""
    rng = np.random.default_rng(seed)
    paths = [{"observations": rng.normal(1.0, 2.0, (length, obs_dim)), "rewards": np.zeros(length)}
             for _ in range(num_paths)]
    for path in paths:
        path["returns"] = value(path["observations"], np.arange(length))
    return paths


def curved(observations, steps):
    return 30.0 + 5.0 * np.sin(observations[:, 0]) * observations[:, 1] + 0.1 * steps


def explained(baseline, paths):
    return explained_variance_1d(np.concatenate([baseline.predict(path) for path in paths]),
                                 np.concatenate([path["returns"] for path in paths]))


@pytest.mark.parametrize("hidden_sizes", [(3,), (4, 3)])
def test_the_gradient_is_that_of_central_differences(hidden_sizes):
    rng = np.random.default_rng(0)
    params = {name: values + 0.3 * rng.normal(size=values.shape)  # float64
              for name, values in make_mlp("value_network", 3, 1, hidden_sizes, rng).items()}
    inputs, targets = rng.normal(size=(7, 3)), rng.normal(size=7)
    _, gradients = value_loss(params, inputs, targets)
    assert set(gradients) == set(params)
    for name, values in params.items():
        for index in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[index] = 1e-6
            up, down = (value_loss({**params, name: values + sign * step}, inputs, targets)[0] for sign in (1.0, -1.0))
            assert gradients[name][index] == pytest.approx((up - down) / 2e-6, abs=1e-8), (name, index)


def test_the_loss_is_half_the_mean_squared_error():
    params = {"hidden_0/kernel": [[0.5], [-1.0]], "hidden_0/bias": [0.1],
              "output/kernel": [[2.0]], "output/bias": [0.3]}
    params = {f"value_network/{name}": np.array(values) for name, values in params.items()}
    inputs, targets = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    errors = [2.0 * np.tanh(0.5 - 2.0 + 0.1) + 0.3 - 1.0, 2.0 * np.tanh(-1.0 + 0.1) + 0.3 + 1.0]
    assert value_loss(params, inputs, targets)[0] == pytest.approx(np.square(errors).sum() / 4.0)


def test_the_first_step_of_adam_has_the_learning_rate_as_length():
    """Given one batch, then each parameter with a gradient changes by the learning rate against its sign."""
    baseline = GaussianMLPBaseline(hidden_sizes=(4,), learning_rate=0.01, num_epochs=1)
    paths = make_paths(curved)
    baseline.fit(paths)
    before = baseline.get_param_values()["params"]
    baseline.train(paths)
    after = baseline.get_param_values()["params"]
    changes = after["value_network/output/kernel"] - before["value_network/output/kernel"]
    np.testing.assert_allclose(np.abs(changes), 0.01, rtol=1e-3)


def test_it_learns_a_value_function_that_is_not_linear():
    baseline = GaussianMLPBaseline(learning_rate=5e-3, num_epochs=20, batch_size=200, fit_tasks=False)
    for itr in range(10):
        baseline.train(make_paths(curved, seed=itr))
    new = make_paths(curved, seed=100)
    linear = LinearFeatureBaseline()
    linear.fit(new)
    assert explained(baseline, new) > 0.95 > 0.5 > explained(linear, new)


def test_train_takes_another_target():
    paths = make_paths(curved)
    for path in paths:
        path["discounted_rewards"] = np.full(50, 7.0)
    baseline = GaussianMLPBaseline(fit_tasks=False)
    baseline.train(paths, target_key="discounted_rewards")
    np.testing.assert_allclose(baseline.predict(paths[0]), 7.0, atol=1e-4)


def test_before_training_it_predicts_zero():
    baseline = GaussianMLPBaseline()
    assert baseline.get_param_values() == {}
    np.testing.assert_array_equal(baseline.predict(make_paths(curved)[0]), np.zeros(50))


def test_fit_changes_the_output_layer_to_that_of_the_task():
    """Given a trained network, then the output layer of a task is ridge regression around the shared one."""
    paths, of_task = make_paths(curved), make_paths(lambda *args: -curved(*args), seed=1)
    baseline, shared = GaussianMLPBaseline(reg_coeff=3.0), GaussianMLPBaseline(fit_tasks=False)
    baseline.train(paths)
    shared.set_params(baseline.get_param_values())
    before = baseline.get_param_values()
    baseline.fit(of_task)
    x = np.concatenate([baseline._features(path["observations"], np.arange(50)) for path in of_task])
    residuals = np.concatenate([path["returns"] - shared.predict(path) for path in of_task])
    change = np.linalg.inv(x.T @ x + 3.0 * np.eye(x.shape[1])) @ x.T @ residuals
    np.testing.assert_allclose(baseline.get_param_values()["coeffs"], before["coeffs"] + change, rtol=1e-4)
    for name, values in before["params"].items():  # the shared network does not change
        np.testing.assert_array_equal(baseline.get_param_values()["params"][name], values)


def test_without_fit_to_tasks_predictions_depend_on_earlier_iterations_only():
    baseline = GaussianMLPBaseline(fit_tasks=False)
    baseline.train(make_paths(curved))
    new = make_paths(curved, seed=1)
    before = [baseline.predict(path) for path in new]
    baseline.fit([{**path, "returns": path["returns"] + 100.0} for path in new])
    np.testing.assert_array_equal([baseline.predict(path) for path in new], before)


def test_the_vectorized_method_equals_fit_and_predict():
    paths = make_paths(curved)
    paths[0] = {key: values[:20] for key, values in paths[0].items()}
    one, other = GaussianMLPBaseline(), GaussianMLPBaseline()
    one.train(paths)
    other.set_params(one.get_param_values())
    one.fit(paths)
    lengths = np.array([len(path["returns"]) for path in paths])
    predictions = other.fit_predict(paths, *(np.concatenate([path[key] for path in paths])
                                             for key in ("observations", "returns")), lengths)
    for path, prediction in zip(paths, predictions, strict=True):
        np.testing.assert_allclose(prediction, one.predict(path), rtol=1e-6)


def test_parameters_round_trip_and_are_copies():
    paths = make_paths(curved)
    one, other = GaussianMLPBaseline(), GaussianMLPBaseline()
    one.train(paths)
    kept = one.get_param_values()
    other.set_params(kept)
    kept["params"]["value_network/output/bias"][:] = 100.0
    assert_same(one.get_param_values(), other.get_param_values())
    state = seeding.get_process_state()
    one.train(paths)
    seeding.set_process_state(state)
    other.train(paths)
    assert_same(one.get_param_values(), other.get_param_values())
    other.set_params(None)
    assert other.get_param_values() == {}


def test_the_policy_starts_with_the_same_weights_with_every_baseline(tmp_path):
    runs = [mps.train("MetaPointEnvCorner", baseline=baseline, n_itr=1, learning_rate=1e-30, **TINY,
                      dump_path=tmp_path / type(baseline).__name__)
            for baseline in (GaussianMLPBaseline(), LinearFeatureBaseline())]
    np.testing.assert_array_equal(*(run.policy.get_flat_params() for run in runs))


def test_an_evaluation_does_not_train(tmp_path):
    run = mps.train("MetaPointEnvCorner", baseline=GaussianMLPBaseline(), n_itr=1, **TINY, dump_path=tmp_path / "run")
    before = run.trainer.sample_processor.get_state()
    run.evaluate(tasks=2, num_steps=2)
    assert_same(before, run.trainer.sample_processor.get_state())


def test_the_trainer_trains_it_on_the_paths_from_before_adaptation(tmp_path):
    """Given two inner steps, then each iteration trains once, with the paths of the first step in all tasks."""
    trained, processed = [], []

    class Recorded(GaussianMLPBaseline):
        def fit(self, paths, target_key="returns"):
            processed.append(paths)
            super().fit(paths, target_key)

        def train(self, paths, target_key="returns"):
            trained.append((len(processed), paths))
            super().train(paths, target_key)

    mps.train("MetaPointEnvCorner", "vpg_maml", baseline=Recorded(), n_itr=2, num_inner_grad_steps=2, **TINY,
              dump_path=tmp_path / "run")
    assert [count for count, _ in trained] == [6, 12]  # two tasks, three steps: after the last fit of an iteration
    for i, (_, paths) in enumerate(trained):
        expected = [path for task in processed[6 * i:6 * i + 2] for path in task]
        assert all(path is other for path, other in zip(paths, expected, strict=True))


def test_population_algorithms_train_it():
    env = mps.MetaPointEnvCorner(reward_type="dense")
    spec = mps.EnvSpec.of(env)
    algo = mps.CEM(spec, DeterministicMLPPolicy(2, 2, ()), GaussianMLPBaseline(), n_samples=20, max_path_length=5)
    runner = mps.LocalRunner()
    runner.setup(algo, env)
    runner.train(n_epochs=2, batch_size=5)
    assert algo.baseline.get_param_values()["num_trainings"] == 2


def with_returns(value):
    return [{"observations": np.zeros((3, 2)), "returns": np.full(3, value)}]


@pytest.mark.parametrize("call, message", [
    (partial(GaussianMLPBaseline, hidden_sizes=()), "hidden_sizes: expected at least one hidden layer, got none"),
    (partial(GaussianMLPBaseline, learning_rate=0.0), "learning_rate: expected"),
    (lambda: GaussianMLPBaseline().train([]), "paths: expected at least one path, got none"),
    (lambda: GaussianMLPBaseline().train(with_returns(np.nan)), "paths[0]: returns: expected finite numbers, got nan"),
    (lambda: GaussianMLPBaseline().train(with_returns(1e308)), "paths: values as large as 1e+308 overflow the fit"),
    (lambda: GaussianMLPBaseline().train([{"observations": np.zeros((3, 2))}]), "paths[0]: expected a key 'returns'"),
    (lambda: GaussianMLPBaseline().set_params(np.zeros(3)), "value: expected None or the parameters of a "
     "GaussianMLPBaseline with hidden_sizes=(32, 32), got ndarray"),
])
def test_bad_input_gets_one_line(call, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_other_sizes_are_refused():
    baseline, other = GaussianMLPBaseline(hidden_sizes=(3,)), GaussianMLPBaseline(hidden_sizes=(3, 3))
    baseline.fit(make_paths(curved))
    with pytest.raises(ValueError, match=re.escape("hidden_sizes=(3, 3), got hidden_sizes=(3,)")):
        other.set_params(baseline.get_param_values())
    with pytest.raises(ValueError, match=re.escape("observations: expected shape [T, 2], as in the first paths")):
        baseline.predict({"observations": np.zeros((4, 5))})


def test_a_failed_training_changes_nothing():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="weights of the value network"):
        GaussianMLPBaseline(learning_rate=1e39).train(make_paths(curved))
    baseline = GaussianMLPBaseline()
    baseline.train(make_paths(curved))
    before = baseline.get_param_values()
    with pytest.raises(ValueError):
        baseline.train([{"observations": np.zeros((3, 2)), "returns": np.full(3, 1e308)}])
    assert_same(before, baseline.get_param_values())
