"""Tests behavior shared by all MAML algorithms: inputs, adaptation, step sizes, graph size, errors and state."""
import copy
from functools import partial

import numpy as np
import pytest

from meta_policy_search import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, MAMLAlgo, MetaAlgo, MetaObjective, ProMP
from meta_policy_search.optimizers import MAMLFirstOrderOptimizer
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from tests.helpers.numpy_reference import Objective, central_differences, gaussian, inner_gradient, kl_from_old
from tests.helpers.small_world import (
    A,
    M,
    O,
    T,
    collect,
    draw_data,
    flat_task_params,
    make_policy,
    padded,
    relative_error,
    set_theta,
    shapes_of,
)

ALGOS = [ProMP, TRPOMAML, VPGMAML]


class BuildsNothing(MAMLAlgo):
    """An algorithm with a trivial meta-objective that records its input values."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.optimizer = MAMLFirstOrderOptimizer()
        self.build_graph()

    def meta_objective(self, steps):
        return MetaObjective(tf.reduce_mean(self.inner_loss(steps[-1])))

    def optimize_policy(self, all_samples_data, log=True):
        self.values = self.meta_input_values(all_samples_data)


def build_nothing(**arguments):
    return BuildsNothing(make_policy(), **{"meta_batch_size": M, **arguments})


@pytest.fixture(scope="module")
def nothing():
    with tf.Graph().as_default():
        yield build_nothing(inner_lr=0.3)


@pytest.fixture(scope="module")
def nothing_trainable():
    with tf.Graph().as_default():
        yield build_nothing(inner_lr=0.3, trainable_inner_step_size=True)


@pytest.fixture(scope="module")
def finalized():
    """A complete algorithm with a finalized graph."""
    with tf.Graph().as_default() as graph:
        algo = TRPOMAML(make_policy(), step_size=0.05, meta_batch_size=M, trainable_inner_step_size=True,
                        exploration=True)
        graph.finalize()
        yield algo


# Custom meta-objectives


class FedTaskByTask(MAMLAlgo):
    """Maximizes the log-likelihood of the last samples through the documented placeholders per task."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, name="own", **kwargs)
        self.optimizer = MAMLFirstOrderOptimizer(tf.train.GradientDescentOptimizer, learning_rate=0.5)
        self.build_graph()

    def meta_objective(self, steps):
        observations, actions, advantages, _ = self.make_vars("last_")
        loss = []
        for m in range(M):
            params = {name: stacked[m] for name, stacked in steps[-1].params.items()}
            log_prob = self.policy.log_likelihood_sym(observations[m], actions[m], params)
            loss.append(-tf.reduce_mean(log_prob * advantages[m]))
        inputs = {"obs": observations, "act": actions, "adv": advantages}
        per_task = {f"{name}{m}": ph for name, phs in inputs.items() for m, ph in enumerate(phs)}
        return MetaObjective(tf.reduce_mean(loss), inputs=per_task, by_task=False)

    def optimize_policy(self, all_samples_data, log=True):
        for m, samples in enumerate(all_samples_data[1]):  # each input is fed with the attribute of the same name
            vars(self).update({f"obs{m}": samples["observations"], f"act{m}": samples["actions"],
                               f"adv{m}": samples["advantages"]})
        super().optimize_policy(all_samples_data, log)


class OneInputPerTask(MAMLAlgo):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.optimizer, self.scales = MAMLFirstOrderOptimizer(), np.arange(M)
        self.build_graph()

    def meta_objective(self, steps):
        scales = tf.placeholder(tf.float32, [None])
        loss = tf.reduce_mean(scales * self.inner_loss(steps[-1]))
        return MetaObjective(loss, inputs={"scales": scales}, by_task=True)


class WithoutGraph(MAMLAlgo):
    def meta_objective(self, steps):
        return steps[-1].log_prob


class WithTensor(WithoutGraph):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.build_graph()


class WithoutOptimizer(WithTensor):
    meta_objective = BuildsNothing.meta_objective


class WithRatio(WithTensor):
    inner_type = "ratio"


class BuildsTwice(VPGMAML):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.build_graph()


class SetsTooLate(VPGMAML):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bonus = 0.1

    def inner_loss(self, step):
        return self.bonus * super().inner_loss(step)


def with_objective(**fields):
    """Returns an algorithm whose objective has other fields than a loss."""
    class Own(BuildsNothing):
        def meta_objective(self, steps):
            return super().meta_objective(steps)._replace(**fields)

    return Own


@pytest.mark.parametrize("algo_cls, error, message", [
    (with_objective(stats=3.0), TypeError, "meta_objective: stats: expected a dict, got 3.0"),
    (with_objective(stats={"Bonus": 3.0}), TypeError, "meta_objective: Bonus: expected a tensor, got 3.0"),
    (with_objective(loss=0.0), TypeError, "meta_objective: loss: expected a tensor, got 0.0"),
    (with_objective(inputs={"scale": tf.zeros([])}), AttributeError,
     "Own.meta_objective: expected inputs named like attributes of the algorithm, .*: 'Own' object has no attribute"),
    (with_objective(inputs=["scale"]), TypeError, r"meta_objective: inputs: expected a dict, got \['scale'\]"),
    (WithoutOptimizer, TypeError, "WithoutOptimizer.optimizer: expected an Optimizer, such as .*, got None"),
    (WithoutGraph, TypeError, r"WithoutGraph: the constructor has to call self.build_graph\(\)"),
    (BuildsTwice, TypeError, "BuildsTwice: build_graph was called twice; all constructors of the library except"),
    (SetsTooLate, AttributeError, r"no attribute 'bonus'. .*: set the attribute before super\(\).__init__"),
    (WithTensor, TypeError, "meta_objective: expected a MetaObjective, such as MetaObjective"),
    (WithRatio, ValueError, "inner_type: expected one of 'likelihood_ratio', "),
    (OneInputPerTask, ValueError, r"OneInputPerTask.meta_objective: .* got scales of shape \((None|\?),\)"),
])
def test_mistakes_in_custom_algorithms_are_named(algo_cls, error, message):
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        algo_cls(make_policy(), meta_batch_size=M).get_state()


def test_variables_can_be_logged():
    class Own(VPGMAML):
        def meta_objective(self, steps):
            log_std = self.policy.get_params()["log_std_network/log_std_var"]
            return super().meta_objective(steps)._replace(stats={"LogStd": log_std})

    with tf.Graph().as_default():
        algo = Own(make_policy(), meta_batch_size=M)
        algo.optimize_policy(draw_data())
        np.testing.assert_allclose(logger.getkvs()["LogStd"], np.mean(algo.policy.get_param_values()[
            "log_std_network/log_std_var"]), rtol=1e-6)


@pytest.mark.parametrize("name", ["LossBefore", "Step_1-AverageReturn"])
def test_stats_do_not_replace_columns_of_the_library(name):
    class Own(VPGMAML):
        def meta_objective(self, steps):
            objective = super().meta_objective(steps)
            return objective._replace(stats={**objective.stats, name: objective.loss})

    later = type("Later", (VPGMAML,), {"after_update": lambda self, stats: {name: 1.0}})
    for cls, method in ((Own, "meta_objective"), (later, "after_update")):
        logger.logkv("Step_1-AverageReturn", 1.0)
        message = f"{method}: expected other names than .*, got {name}"
        with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
            cls(make_policy(), meta_batch_size=M).optimize_policy(draw_data())


def test_custom_algorithm_with_placeholders_per_task():
    algo = FedTaskByTask(make_policy(), meta_batch_size=M)
    assert isinstance(algo, MetaAlgo)
    theta, data = set_theta(algo.policy), draw_data()
    algo.optimize_policy(data)
    # it moved along the meta-gradient of the log-likelihood objective
    objective = Objective(shapes_of(algo.policy), data).policy_gradient("log_likelihood")
    step = -0.5 * central_differences(objective, theta)
    assert relative_error(algo.policy.get_flat_params() - theta, step) < 1e-3
    algo.set_state(algo.get_state())  # arrays of any number of samples


def test_copies_of_an_algorithm_with_another_number_of_tasks_have_this_number():
    algo = VPGMAML(make_policy(), meta_batch_size=M).with_meta_batch_size(5)
    with tf.Graph().as_default():
        other = copy.deepcopy(algo)
    assert other.meta_batch_size == other.policy.meta_batch_size == 5


def test_make_vars_creates_placeholders_for_each_task(nothing):
    with nothing.policy.policies_params_phs["mean_network/output/bias"].graph.as_default():
        observations, actions, advantages, agent_infos = nothing.make_vars(prefix="some_prefix_")
        assert len(nothing.make_vars()) == 4
    for phs, shape in ((observations, [None, O]), (actions, [None, A]), (advantages, [None])):
        assert len(phs) == M
        for ph in phs:
            assert ph.op.type == "Placeholder" and ph.dtype == tf.float32 and ph.shape.as_list() == shape
            assert ph.name.startswith("some_prefix_")
    assert len(agent_infos) == M
    for info in agent_infos:
        assert set(info) == {"mean", "log_std"}
        assert all(ph.op.type == "Placeholder" and ph.shape.as_list() == [None, A] for ph in info.values())
        assert all(ph.name.startswith("some_prefix_") for ph in info.values())


# Meta-updates


def test_update_of_vpg_maml_is_one_adam_step_on_the_log_likelihood_objective():
    algo = VPGMAML(make_policy(), meta_batch_size=M, learning_rate=0.004)
    data, before = draw_data(), set_theta(algo.policy)
    loss = Objective(shapes_of(algo.policy), data).policy_gradient("log_likelihood")

    algo.optimize_policy(data)
    after = algo.policy.get_flat_params().astype(float)
    # the first step of Adam has the length of the learning rate in every direction
    np.testing.assert_allclose(after, before - 0.004 * np.sign(central_differences(loss, before)), atol=1e-5)
    logged = logger.getkvs()
    assert logged["LossBefore"] == pytest.approx(loss(before), rel=1e-4)
    assert logged["LossAfter"] == pytest.approx(loss(after), rel=1e-4)
    assert logged["LossAfter"] < logged["LossBefore"]

    logger.dumpkvs()
    algo.optimize_policy(data, log=False)
    assert logger.getkvs() == {}


# Adaptation steps


@pytest.mark.parametrize("algo_cls, arguments", [
    (ProMP, {}), (TRPOMAML, {}), (TRPOMAML, {"exploration": True}),
    (VPGMAML, {"inner_type": "dice", "max_path_length": T}),
    (DICEMAML, {"max_path_length": T}), (VPG_DICEMAML, {"max_path_length": T}),
])
@pytest.mark.thorough(but="VPG_DICEMAML-arguments5", ci=("TRPOMAML-arguments2", "VPGMAML-arguments3"))
def test_adaptation_logs_the_divergence_of_each_task(algo_cls, arguments):
    algo = algo_cls(policy=make_policy(), inner_lr=0.3, meta_batch_size=M, **arguments)
    assert algo.adaptation_kl is None
    set_theta(algo.policy)
    shapes = shapes_of(algo.policy)
    for of_tasks in draw_data():  # the second step starts at the result of the first
        before = flat_task_params(algo.policy)
        algo.adapt([padded(samples) for samples in of_tasks] if issubclass(algo_cls, DICEMAML) else of_tasks)
        expected = []
        for theta, adapted, samples in zip(before, flat_task_params(algo.policy), of_tasks):
            mean, log_std = gaussian(theta, shapes, samples["observations"])
            acted = {**samples, "agent_infos": {"mean": mean, "log_std": log_std}}
            expected.append(kl_from_old(adapted, shapes, acted))
        np.testing.assert_allclose(algo.adaptation_kl, expected, rtol=1e-3, atol=1e-6)
        assert min(expected) > 1e-4


def test_fixed_step_sizes_are_scalars_and_not_optimized(nothing):
    assert set(nothing.get_step_sizes().values()) == {np.float32(0.3)}
    assert list(nothing.get_params()) == list(nothing.policy.get_params())


def test_trainable_step_sizes_are_one_per_parameter_entry_and_used_in_adaptation(nothing_trainable):
    # given step sizes initialized to inner_lr
    algo = nothing_trainable
    sizes = algo.get_step_sizes()
    assert list(sizes) == list(algo.policy.get_params())
    assert [size.shape for size in sizes.values()] == shapes_of(algo.policy)
    np.testing.assert_allclose(np.concatenate([size.ravel() for size in sizes.values()]), 0.3, rtol=1e-6)
    # they are optimized and are not parameters of the policy
    assert len(algo.get_params()) == 2 * len(sizes)
    # when they change, each parameter entry uses its step size
    (samples, _), theta, shapes = draw_data(), set_theta(algo.policy), shapes_of(algo.policy)
    log_sizes = [np.random.default_rng(i).normal(size=shape).astype("f") for i, shape in enumerate(shapes)]
    variables = algo._log_step_sizes
    variables.write(dict(zip(variables.variables, log_sizes)))
    algo.adapt(samples)
    alphas = np.concatenate([np.exp(size).ravel() for size in log_sizes])
    for m, actual in enumerate(flat_task_params(algo.policy)):
        step = -alphas * inner_gradient(theta, shapes, samples[m], "likelihood_ratio")
        assert relative_error(actual - theta, step) < 1e-4


@pytest.mark.thorough
def test_trained_step_sizes_change_and_stay_positive_and_bounded(finalized):
    # given natural-gradient steps with a curvature that is singular in most step sizes
    def flat():
        return np.concatenate([size.ravel() for size in finalized.get_step_sizes().values()])

    start = flat()
    for itr in range(10):
        finalized.optimize_policy(collect(finalized, seed=itr))
    assert (flat() != start).mean() > 0.9
    assert 0.05 < flat().min() and flat().max() < 0.2  # initial value 0.1


# Graph


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML, VPGMAML])
@pytest.mark.thorough(but="VPGMAML")
def test_graph_size_is_independent_of_the_number_of_tasks(algo_cls):
    sizes = []
    for meta_batch_size in (2, 7):
        with tf.Graph().as_default() as graph:
            algo_cls(make_policy(meta_batch_size), meta_batch_size=meta_batch_size)
            sizes.append(len(graph.get_operations()))
    assert sizes[0] == sizes[1] < 4000


def test_name_is_the_scope_of_the_operations():
    build_nothing(name="some_algo")
    assert {op.name.split("/")[0] for op in tf.get_default_graph().get_operations()} == {"policy", "some_algo"}


# Padding


def test_padding_values_have_no_effect(finalized):
    values = finalized.meta_input_values(draw_data())
    # given equal samples with different and longer padding
    padded = {}
    for key in values:
        mask = values[key.split("/")[0] + "/mask"]
        padded[key] = np.concatenate([values[key], np.ones_like(values[key])], axis=1)
        padded[key][:, : mask.shape[1]][mask == 0] = 0.7
        if key.endswith("mask"):
            padded[key] = np.concatenate([mask, np.zeros_like(mask)], axis=1)
            assert (mask == 0).any()
    # then loss, gradient and divergence are equal
    optimizer = finalized.optimizer
    assert optimizer.loss(padded) == pytest.approx(optimizer.loss(values), rel=1e-5)
    assert optimizer.constraint_val(padded) == pytest.approx(optimizer.constraint_val(values), rel=1e-5)
    assert relative_error(optimizer.gradient(padded), optimizer.gradient(values)) < 1e-5


# Invalid arguments


@pytest.mark.parametrize("arguments", [
    {"inner_lr": -0.1}, {"inner_lr": "fast"}, {"inner_lr": 0, "trainable_inner_step_size": True},
    {"meta_batch_size": 0}, {"meta_batch_size": M + 1}, {"num_inner_grad_steps": -1}, {"num_inner_grad_steps": 1.0},
    {"first_order": None}, {"trainable_inner_step_size": True, "num_inner_grad_steps": 0},
    {"trainable_inner_step_size": 1}, {"policy": "policy"},
], ids=str)
def test_arguments_are_checked_by_every_algorithm(arguments):
    policy, name = make_policy(), next(iter(arguments))
    for algo_cls in (*ALGOS, partial(DICEMAML, max_path_length=T), partial(VPG_DICEMAML, max_path_length=T)):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
            algo_cls(**{"policy": policy, "meta_batch_size": M, **arguments})


@pytest.mark.parametrize("algo_cls", [TRPOMAML, VPGMAML])
@pytest.mark.parametrize("arguments", [
    {"inner_type": "ratio"}, {"max_path_length": 0, "inner_type": "dice"},
    {"exploration": "yes"},
    {"exploration_coeff": -1.0, "exploration": True}, {"exploration_coeff": 0.5},
    {"exploration": True, "num_inner_grad_steps": 0},
], ids=str)
def test_arguments_of_exploration_terms_are_checked(algo_cls, arguments):
    with pytest.raises((TypeError, ValueError), match=f"^{next(iter(arguments))}: expected "):
        algo_cls(make_policy(), meta_batch_size=M, **arguments)


def with_entry(key, value):
    """Returns a function that replaces an entry of the second task, or deletes it if the value is None."""
    def change(samples):
        samples[1].update({key: value}) if value is not None else samples[1].pop(key)
        return samples

    return change


@pytest.mark.parametrize("change, message", [
    (lambda samples: samples[:-1], "expected samples of 3 tasks, got 2"),
    (with_entry("advantages", None), "task 1: expected samples with an entry 'advantages'"),
    (with_entry("agent_infos", None), "task 1: expected samples with an entry 'agent_infos'"),
    (with_entry("agent_infos", {"mean": np.zeros((8, A))}),
     "task 1: expected samples with an entry 'agent_infos/log_std'"),
    (lambda samples: [{**each, "advantages": each["advantages"][:, None]} for each in samples],
     r"advantages: expected shape \(\) after the sample axis, got \(1,\)"),
    (with_entry("actions", np.zeros((7, A))), "task 1: expected the same number of samples"),
    (lambda samples: [{**samples[0], **{key: samples[0][key][:0] for key in ("observations", "actions",
                      "advantages")}, "agent_infos": {"mean": np.zeros((0, A)), "log_std": np.zeros((0, A))}},
                      *samples[1:]], "task 0: expected the same number of samples, at least 1"),
])
def test_samples_are_validated(nothing, change, message):
    with pytest.raises(ValueError, match=f"^adaptation: .*{message}"):
        nothing.adapt(change(draw_data()[0]))
    data = draw_data()
    with pytest.raises(ValueError, match=f"^step0: .*{message}"):
        nothing.optimize_policy([change(data[0]), data[1]])


@pytest.mark.parametrize("wrong", [None, {0: []}, [[]]])
def test_paths_and_samples_of_one_task_are_refused(nothing, wrong):
    with pytest.raises(TypeError, match="adaptation: expected a list of samples, one dict per task as process_samples"):
        nothing.adapt(wrong)
    with pytest.raises(TypeError, match="step0: expected a list of samples, .*a list of such lists, one per step"):
        nothing.optimize_policy([wrong, wrong])


@pytest.mark.parametrize("steps", [1, 3])
def test_number_of_steps_is_validated(nothing, steps):
    with pytest.raises(ValueError, match=f"all_samples_data: expected the samples of 2 steps .*got {steps}"):
        nothing.optimize_policy((2 * draw_data())[:steps])


def test_exploration_term_requires_its_samples():
    algo = VPGMAML(make_policy(), meta_batch_size=M, exploration=True)
    data = draw_data()
    del data[1][2]["adj_avg_rewards"]
    with pytest.raises(ValueError, match="^step1: task 2: expected samples with an entry 'adj_avg_rewards'"):
        algo.optimize_policy(data)
