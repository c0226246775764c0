"""Networks, cells and distributions of users, written once: training, evaluation, adaptation, resuming, workers."""
import copy
import functools
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.actors import actor_from_policy
from meta_policy_search.actors.from_policy import PolicyActor
from meta_policy_search.ops.networks import (
    CELLS,
    Cell,
    dense,
    gaussian,
    gaussian_heads,
    layer_norm,
    make_dense,
    make_layer_norm,
)
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.fast_paths import replaces

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as for a script
M, P, T, H = 2, 4, 3, 4


def network(xp, params, observations, num_layers):
    x = observations
    for i in range(num_layers):
        x = xp.tanh(layer_norm(xp, params, dense(xp, params, x, f"hidden_{i}"), f"norm_{i}"))
    return gaussian(xp, dense(xp, params, x, "output"), params["log_std"])


class NormalizedPolicy(mps.MetaPolicy):
    """A Gaussian policy with layer normalization."""

    distribution_cls = mps.DiagonalGaussian

    def make_params(self, rng):
        params, size = {"log_std": np.zeros(self.action_dim)}, self.obs_dim
        for i, units in enumerate(self.hidden_sizes):
            params.update({**make_dense(f"hidden_{i}", size, units, rng), **make_layer_norm(f"norm_{i}", units)})
            size = units
        return {**params, **make_dense("output", size, self.action_dim, rng)}

    def make_network(self):
        return functools.partial(network, num_layers=len(self.hidden_sizes))


def make_cell(input_size, num_units, rng):
    return make_dense("cell", input_size + num_units, num_units, rng)


def step(xp, params, inputs, state):
    state = xp.tanh(dense(xp, params, xp.concat([inputs, state]), "cell"))
    return state, state


CELL = Cell(make_cell, step)
RL2 = {"algo": "rl2", "env": "MetaBernoulliBanditEnv", "hidden_size": H, "num_minibatches": 1}
RUNS = {"layer normalization": {"algo": "promp", "env": "MetaPointEnvCorner", "policy": NormalizedPolicy,
                                "hidden_sizes": (4, 4, 4), "trainable_inner_step_size": True},
        "adapts the output layer": {"algo": "vpg_maml", "env": "MetaPointEnvCorner", "policy": NormalizedPolicy,
                                    "hidden_sizes": (4,), "adapt_params": ["output/*"]},
        "cell": {**RL2, "cell": CELL}, "lstm": {**RL2, "cell": "lstm"}}


def train(name, folder, n_itr, **arguments):
    return mps.train(**RUNS[name], dump_path=folder, n_itr=n_itr, meta_batch_size=M, rollouts_per_meta_task=P,
                     max_path_length=T, seed=3, progress_bar=False, log_formats=["csv"], **arguments)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.thorough(but="cell", ci=("adapts the output layer", "lstm"))
def test_run_is_evaluated_adapted_resumed_and_does_not_depend_on_workers(name, tmp_path):
    whole = train(name, tmp_path / "whole", 2)
    assert np.isfinite(whole.evaluate(tasks=2).returns).all() and np.isfinite(whole.adapt(seed=1).returns).all()
    train(name, tmp_path / "parts", 1)
    resumed = mps.load_run(tmp_path / "parts")
    resumed.resume(2, log_formats=["csv"])
    in_workers = train(name, tmp_path / "workers", 2, parallel=True)
    for run in (resumed, in_workers):
        np.testing.assert_array_equal(run.policy.get_flat_params(), whole.policy.get_flat_params())


def make(name):
    if name == "network":
        policy = NormalizedPolicy(M, 2, 2, hidden_sizes=(4, 4))
        policy.load_params(np.random.default_rng(0).normal(size=(M, len(policy.get_flat_params()))))
        return policy
    return mps.GaussianRecurrentPolicy(M, 2, 2, hidden_size=H, cell=CELLS.get(name, CELL))


@pytest.mark.parametrize("name", ["network", "gru", "lstm", "own cell"])
def test_copies_and_weights_files_act_like_the_policy(name, tmp_path):
    observations, policy = np.random.default_rng(1).normal(size=(2, M, P, 2)), make(name)
    policy.get_actions(observations[0])  # changes the recurrent state
    copies = [copy.deepcopy(policy), pickle.loads(cloudpickle.dumps(policy))]
    policy.save_npz(tmp_path / "weights")
    policy.load_npz(tmp_path / "weights")
    actions = policy.get_actions(observations[1])[0]
    for each in copies:
        np.testing.assert_array_equal(each.get_actions(observations[1])[0], actions)


@pytest.mark.parametrize("name", ["network", "gru", "lstm", "own cell"])
def test_actor_agrees_with_the_graph_and_needs_no_tensorflow(name, tmp_path):
    policy, observations = make(name), np.random.default_rng(1).normal(size=(M, T, 2))
    actor = policy.make_actor().for_tasks(0, M)
    program = ("import pickle, sys, numpy as np; actor, observations = pickle.load(open(sys.argv[1], 'rb')); "
               "infos = [actor.act(x[:, None], np.zeros((len(x), 1, 2), 'f'))[1] for x in observations]; "
               "assert 'tensorflow' not in sys.modules; pickle.dump(infos, open(sys.argv[1], 'wb'))")
    (tmp_path / "actor").write_bytes(cloudpickle.dumps((actor, np.swapaxes(observations, 0, 1))))
    subprocess.run([sys.executable, "-c", program, tmp_path / "actor"], check=True)
    means = np.stack([info["mean"][:, 0] for info in pickle.loads((tmp_path / "actor").read_bytes())], axis=1)
    params = policy.policies_params_phs if name == "network" else policy.get_params()
    info = policy.distribution_info_sym(tf.constant(observations, tf.float32), params)
    feed = policy.policies_params_feed_dict if name == "network" else {}
    expected = VariableSet(policy.get_params()).session().run(info["mean"], feed)
    np.testing.assert_allclose(means, expected, atol=1e-6)


class Documented(mps.GaussianRecurrentPolicy):
    """Acts through `get_actions`."""

    def get_actions(self, observations):
        return super().get_actions(observations)


class Centered(mps.DiagonalGaussian):
    def sample(self, dist_info, rng=None):
        return dist_info["mean"]


class CenteredPolicy(mps.GaussianRecurrentPolicy):
    distribution_cls = Centered


@pytest.mark.parametrize("cls", [mps.GaussianRecurrentPolicy, Documented, CenteredPolicy])
def test_recurrent_state_is_reset_at_the_start_of_each_path(cls):
    # given paths of two rounds, sampled with fewer environments than paths
    policy = cls(M, 2, 2, hidden_size=H)
    policy.set_flat_params(np.random.default_rng(0).normal(size=len(policy.get_flat_params())))
    assert isinstance(actor_from_policy(policy), PolicyActor) == (cls is not mps.GaussianRecurrentPolicy)
    policy.get_actions([np.zeros((1, 2))] * M)  # of another number of paths
    with mps.MetaSampler(mps.MetaPointEnvCorner(), policy, P, M, T, envs_per_task=2) as sampler:
        sampler.update_tasks()
        paths = [path for _ in range(2) for task in sampler.obtain_samples().values() for path in task]
    # then distributions and values are those of paths that start with the state zero
    info, values = VariableSet(policy.get_params()).session().run(policy.trial_info_sym(
        tf.constant(np.stack([path["observations"] for path in paths]), tf.float32)))
    for path, mean, value in zip(paths, info["mean"], values):
        np.testing.assert_allclose(path["agent_infos"]["mean"], mean, atol=1e-5)
        np.testing.assert_allclose(path["agent_infos"]["value"], value, atol=1e-5)
        assert cls is not CenteredPolicy or (path["actions"] == path["agent_infos"]["mean"]).all()


def mean_action(info, noise):
    return np.array(info["mean"])


class Greedy(Centered):
    transform_noise = replaces("sample")(staticmethod(mean_action))


class GreedyPolicy(mps.GaussianRecurrentPolicy):
    distribution_cls = Greedy


class DocumentedGreedy(Documented, GreedyPolicy):
    """Acts through `get_actions`."""


@pytest.mark.thorough
def test_recurrent_state_is_the_same_in_training_evaluation_and_adaptation_through_get_actions(tmp_path):
    results = []
    for cls in (GreedyPolicy, DocumentedGreedy):
        run = mps.train("MetaPointEnvCorner", "rl2", 2, policy=cls, cell="lstm", hidden_size=H, meta_batch_size=M,
                        rollouts_per_meta_task=P, max_path_length=T, episodes_per_trial=2, envs_per_task=2, seed=3,
                        progress_bar=False, log_formats=["csv"], dump_path=tmp_path / cls.__name__)
        assert isinstance(actor_from_policy(run.policy), PolicyActor) == (cls is DocumentedGreedy)
        adapted, actions = run.adapt(seed=1), []
        copies = [adapted, copy.deepcopy(adapted), pickle.loads(cloudpickle.dumps(adapted))]
        for observation in np.eye(2):
            actions.append([each.act(observation) for each in copies])
            for each in copies:
                each.observe(1.0)
        np.testing.assert_array_equal(np.ptp(actions, axis=1), 0.0)  # copies have the same state
        results.append([run.policy.get_flat_params(), run.evaluate(tasks=2).returns, adapted.returns, actions])
    for fast, documented in zip(*results):  # two code paths: float32 rounding, amplified by two iterations
        np.testing.assert_allclose(fast, documented, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("cell", ["rnn", 3, None])
def test_unknown_cells_are_refused(cell):
    with pytest.raises(ValueError, match="cell: expected one of 'gru', 'lstm', got "):
        mps.CategoricalRecurrentPolicy(M, 2, 2, cell=cell)


@pytest.mark.parametrize("dones", [[True, False], "a", np.ones((3, 2), bool), np.zeros((2, 2))])
def test_states_are_reset_only_by_bools_per_path(dones):
    policy = mps.GaussianRecurrentPolicy(2, 2, 2, hidden_size=3)
    policy.get_actions([np.zeros((2, 2))] * 2)
    with pytest.raises(ValueError, match=r"dones: expected bools of shape \(2, 2\), got"):
        policy.reset(dones)


class OnlyActs(mps.MetaPolicy):
    """Overrides the documented method for acting and nothing else."""

    def get_actions(self, observations):
        return [np.full((len(task), self.action_dim), m) for m, task in enumerate(observations)], None


def test_policy_that_only_overrides_get_actions_can_be_sampled_and_copied():
    policy = OnlyActs(2, 2, 2)
    for each in (policy, copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        with mps.MetaSampler(mps.MetaPointEnvCorner(), each, 3, 2, 4) as sampler:
            batch = sampler.obtain_samples()
        assert [path["actions"].tolist() for path in batch[1]] == [[[1.0, 1.0]] * 4] * 3
    assert policy.get_param_values() == {} and policy.action_shape == (2,)
    policy.log_diagnostics(batch[0])


@pytest.mark.parametrize("use, error, message", [
    (lambda: OnlyActs(2, 2, 2).distribution, NotImplementedError,
     "OnlyActs.distribution: .* override distribution_cls, make_params and make_network"),
    (lambda: OnlyActs(2, 2, 2).distribution_info_sym(tf.zeros((1, 2))), NotImplementedError,
     "OnlyActs.distribution_info_sym: .* make_network returned None; override make_params and make_network"),
    (lambda: type("Own", (NormalizedPolicy,), {"distribution_cls": None})(2, 2, 2), NotImplementedError,
     "Own.distribution: the policy has no distribution: distribution_cls is None; override distribution_cls, make_par"),
    (lambda: mps.RL2(type("Own", (mps.GaussianRecurrentPolicy,), {"make_network": lambda self: None})(M, 2, 2),
                     meta_batch_size=M), NotImplementedError,
     "Own.distribution_info_sym: the policy has no network: make_network returned None; override make_params"),
    (lambda: mps.MetaPolicy(2, 2, 2).get_actions(np.zeros((2, 1, 2))), NotImplementedError,
     "MetaPolicy.get_actions: .* override get_actions, or make_params"),
    (lambda: mps.VPGMAML(OnlyActs(2, 2, 2), meta_batch_size=2), ValueError,
     "policy: expected a policy with a network, got one without parameters$"),
])
def test_policy_without_a_network_names_what_it_lacks(use, error, message):
    with pytest.raises(error, match=f"^{message}"):
        use()


def test_a_parameter_of_a_cell_cannot_have_the_name_of_a_head():
    def make_parameters(input_size, num_units, rng):
        return {**make_cell(input_size, num_units, rng), "action/bias": np.zeros(num_units, np.float32)}

    with pytest.raises(ValueError, match="cell: expected other names .* than those of the heads, got 'action/bias'"):
        mps.GaussianRecurrentPolicy(M, 2, 2, hidden_size=2, cell=Cell(make_parameters, CELL.step))


def with_network(network, base=NormalizedPolicy):
    """Returns a policy class with another network."""
    return type("Wrong", (base,), {"make_network": lambda self: network})


def renamed(xp, params, observations):
    info = network(xp, params, observations, 0)
    return {"mu": info["mean"], "log_std": info["log_std"]}


def misspelled(xp, params, observations):
    return gaussian(xp, dense(xp, params, observations, "outputs"), params["log_std"])


def of_numpy(xp, params, observations):
    return gaussian(xp, np.tanh(dense(xp, params, observations, "output")), params["log_std"])


def of_tensorflow(xp, params, observations):
    return gaussian(xp, tf.tanh(dense(xp, params, observations, "output")), params["log_std"])


def without_axis(xp, params, observations):
    return {"mean": dense(xp, params, observations, "output"), "log_std": params["log_std"]}


def of_one_size(name):
    """Returns a network one of whose outputs has size 1 instead of the size of an action."""
    def cut(xp, params, observations):
        info = network(xp, params, observations, 0)
        return {**info, name: info[name][..., :1]}

    return cut


@pytest.mark.parametrize("wrong, message", [
    (of_one_size("mean"), r"that returns mean of shape \[None, None, 2\], got \[None, None, 1\]"),
    (of_one_size("log_std"), r"that returns log_std of shape \[None, None, 2\], got \[None, 1, 1\]"),
    (without_axis, r"that returns log_std of shape \[None, None, 2\], got \[None, 2\]"),
    (renamed, "that returns a dict with mean and log_std, got {'log_std'"),
    (lambda xp, params, observations: dense(xp, params, observations[..., 1:], "output"),
     "that uses operations of xp and parameters of make_params, got ValueError: Dimensions must be equal"),
    (misspelled, "that uses operations of xp and parameters of make_params, got KeyError: 'outputs/kernel'"),
    (lambda xp, params, observations: xp.gelu(observations), "that uses .*, got AttributeError: .* 'gelu'"),
    (of_numpy, "that uses operations of xp and parameters of make_params, got NotImplementedError"),
    (of_tensorflow, "that uses operations of xp, got one with operations of TensorFlow"),
    (lambda xp, params, observations: None, "that returns a dict with mean and log_std, got None"),
])
def test_wrong_networks_are_named(wrong, message):
    with pytest.raises(ValueError, match=f"make_network: expected a network {message}"):
        with_network(wrong)(2, 3, 2, hidden_sizes=()).make_actor().act(np.zeros((2, 1, 3)), np.zeros((2, 1, 2)))


def same_everywhere(xp, params, observations):
    return {"mean": dense(xp, params, observations, "output"), "log_std": np.zeros(2, np.float32)}


def test_outputs_that_are_the_same_in_all_rows_need_no_leading_axes():
    policy = with_network(same_everywhere)(2, 3, 2, hidden_sizes=())
    _, infos = policy.make_actor().act(np.ones((2, 4, 3)), np.zeros((2, 4, 2)))
    assert infos["log_std"].shape == infos["mean"].shape == (2, 4, 2)


def heads(change):
    """Returns a recurrent policy whose network changes the outputs of the library's network."""
    def changed(xp, params, inputs):
        return change(gaussian_heads(xp, params, inputs, min_std=1e-6))

    return with_network(changed, mps.GaussianRecurrentPolicy)(M, 3, 2, hidden_size=H)


@pytest.mark.parametrize("method", ["make_params", "make_network"])
def test_attribute_that_is_set_too_late_is_named(method):
    class Wrong(mps.MetaGaussianMLPPolicy):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.scale = 2.0

    setattr(Wrong, method, lambda self, *args: self.scale)
    with pytest.raises(AttributeError, match=r"no attribute 'scale'. .*: set the attribute before super\(\).__init__"):
        Wrong(M, 2, 2)


@pytest.mark.parametrize("change, message", [
    (lambda info: {**info, "mean": info["mean"][..., :1]}, r"mean of shape \[None, None, 2\], got \[{}, {}, 1\]"),
    (lambda info: {**info, "value": info["value"][..., None]}, r"value of shape \[None, None\], got \[{}, {}, 1\]"),
])
def test_wrong_heads_are_named_in_the_graph_and_in_numpy(change, message):
    policy = heads(change)
    with pytest.raises(ValueError, match="make_network: .* returns " + message.format(None, None)):
        mps.RL2(policy, meta_batch_size=M)
    with pytest.raises(ValueError, match="make_network: .* returns " + message.format(M, P)):
        policy.get_actions(np.zeros((M, P, 3)))


def test_missing_head_is_named():
    with pytest.raises(ValueError, match="Wrong.make_network: .* a dict with mean and log_std and value, got {"):
        mps.RL2(heads(lambda info: {name: info[name] for name in ("mean", "log_std")}), meta_batch_size=M)


class CutInTheGraph(mps.MetaGaussianMLPPolicy):
    def distribution_info_sym(self, obs_var, params=None):
        info = super().distribution_info_sym(obs_var, params)
        return {**info, "mean": info["mean"][..., :1]}


def test_wrong_outputs_of_a_policy_that_acts_through_the_graph_are_named():
    with pytest.raises(ValueError, match=r"mean of shape \[None, None, 2\], got \[2, 4, 1\]"):
        CutInTheGraph(2, 3, 2, hidden_sizes=()).get_actions(np.zeros((2, 4, 3)))


def test_scalar_parameter_is_refused():
    """Stacked over tasks, it would have shape [M]; with M = A, this would be taken for one value per action."""
    class Wrong(NormalizedPolicy):
        def make_params(self, rng):
            return {**super().make_params(rng), "scale": np.array(0.0)}

    with pytest.raises(ValueError, match="Wrong.make_params: scale: expected an array with at least one axis, got a"):
        Wrong(2, 3, 2)


def test_parameters_that_are_no_numbers_are_refused():
    wrong = type("Wrong", (NormalizedPolicy,), {"make_params": lambda self, rng: {"scale": ["a", "b"]}})
    with pytest.raises(ValueError, match=r"Wrong.make_params: scale: expected an array of real numbers, got \['a"):
        wrong(2, 3, 2)


@pytest.mark.parametrize("name, part, message", [
    ("make_params", lambda self, rng: None, "Wrong.make_params: expected a dict of parameters, got None"),
    ("make_params", lambda self: {}, r"Wrong.make_params: expected the arguments \(rng\), got \(\)"),
    ("make_network", lambda self: 5, r"network of Wrong.make_network: .* \(xp, params, observations\), got 5"),
    ("make_network", lambda self: lambda xp, params: None,
     r"network of Wrong.make_network: .* \(xp, params, observations\), got \(xp, params\)"),
    ("distribution_cls", mps.DiagonalGaussian(2), "Wrong.distribution_cls: expected a class of distributions, got "),
])
def test_wrong_parts_of_a_policy_are_named(name, part, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        type("Wrong", (NormalizedPolicy,), {name: part})(2, 3, 2)
