"""Tests meta-updates that are computed for one block of tasks at a time."""
import copy
import threading

import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, MetaObjective, ProMP
from meta_policy_search.optimizers import base
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils.threads import VARIABLE
from tests.helpers.gradients import case, input_values
from tests.helpers.small_world import M, collect, draw_data, flat_task_params, make_policy, relative_error, set_theta

CASES = [
    case(ProMP, 1),
    case(ProMP, 2, trainable=True, marks=pytest.mark.thorough),
    case(TRPOMAML, 2, "dice", exploration=True),
    case(VPGMAML, 1, "log_likelihood", marks=pytest.mark.thorough),
    case(DICEMAML, 1, marks=pytest.mark.thorough),
    case(VPG_DICEMAML, 2),
]


def set_block_size(monkeypatch, tasks):
    """Limits blocks to the given number of tasks of the small environment, each of which takes 96 bytes."""
    monkeypatch.setattr(base, "LAYER_BYTES", {1: 1.0, 2: 150.0, M: np.inf}[tasks])


def fed_tasks(policy, monkeypatch):
    """Records the number of tasks in each run of the session."""
    session, seen = VariableSet(policy.get_params()).session(), []
    original = session.run

    def run(fetches, feed=None, **options):
        sizes = {len(value) for ph, value in (feed or {}).items() if ph.shape.rank and ph.shape.as_list()[0] is None}
        seen.extend(sizes)
        return original(fetches, feed, **options)

    monkeypatch.setattr(session, "run", run)
    return seen


@pytest.mark.parametrize("algo_cls, arguments", CASES)
@pytest.mark.thorough(but=("ProMP, 1 steps", "VPG_DICEMAML, 2 steps"))
def test_sum_over_blocks_equals_the_result_for_all_tasks(algo_cls, arguments, monkeypatch):
    algo = algo_cls(policy=make_policy(), meta_batch_size=M, **arguments)
    set_theta(algo.policy)
    values, results = input_values(algo, draw_data(algo.num_inner_grad_steps)), {}
    for size in (M, 2, 1):
        set_block_size(monkeypatch, size)
        results[size] = [algo.optimizer.loss(values), algo.optimizer.gradient(values)]
        if algo_cls is TRPOMAML:
            product = algo.optimizer.hessian_product(values)
            results[size] += [algo.optimizer.constraint_val(values), product(np.cos(np.arange(len(results[size][1]))))]
    for size in (1, 2):
        for value, at_once in zip(results[size], results[M], strict=True):
            assert relative_error(np.asarray(value), np.asarray(at_once)) < 1e-5


class WorstTask(VPGMAML):
    """Minimizes the largest loss of a task, which is no mean over tasks."""

    def meta_objective(self, steps):
        losses = super().inner_loss(steps[-1])
        return MetaObjective(tf.reduce_max(losses), {"Losses": losses})


def test_a_custom_objective_is_computed_for_all_tasks_at_once(monkeypatch):
    """Also after data with equal losses of all tasks."""
    algo, data = WorstTask(make_policy(), meta_batch_size=M, inner_type="log_likelihood"), draw_data()
    set_block_size(monkeypatch, 1)
    equal = copy.deepcopy(data)
    for task in equal[1]:
        task["advantages"][:] = 0.0
    assert algo.optimizer.loss(algo.meta_input_values(equal)) == 0.0
    values = algo.meta_input_values(data)
    losses, = algo.optimizer.compute_means(list(algo._objective.stats.values()), values)
    assert losses.shape == (M,) and np.ptp(losses) > 0.0
    assert algo.optimizer.loss(values) == pytest.approx(losses.max())


def test_block_size_is_limited_by_the_size_of_a_layer(monkeypatch):
    algo = ProMP(make_policy(), meta_batch_size=M)
    values, seen = input_values(algo, draw_data()), fed_tasks(algo.policy, monkeypatch)
    for size, expected in ((1, [1, 1, 1]), (2, [1, 2]), (M, [M])):
        set_block_size(monkeypatch, size)
        seen.clear()
        algo.optimizer.loss(values)
        assert sorted(seen) == expected


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
@pytest.mark.thorough(but="ProMP")
def test_results_are_bit_identical_for_any_number_of_threads(algo_cls, monkeypatch):
    algo = algo_cls(make_policy(), meta_batch_size=M)
    data = collect(algo)
    state = algo.get_state(), algo.policy.get_param_values()
    set_block_size(monkeypatch, 1)
    updated = []
    for threads in (1, 2, 3):
        monkeypatch.setenv(VARIABLE, str(threads))
        algo.set_state(state[0])
        algo.policy.set_params(state[1])
        algo.policy.switch_to_pre_update()
        algo.adapt(data[0])
        adapted = flat_task_params(algo.policy)
        algo.optimize_policy(data, log=False)
        updated.append(np.concatenate([*adapted, algo.policy.get_flat_params()]))
    assert (updated[0][-5:] != np.concatenate([v.ravel() for v in state[1].values()])[-5:]).any()
    np.testing.assert_array_equal(updated[1], updated[0])
    np.testing.assert_array_equal(updated[2], updated[0])


@pytest.mark.thorough
def test_blocks_work_in_a_user_session(monkeypatch):
    set_block_size(monkeypatch, 1)
    algo = ProMP(make_policy(), meta_batch_size=M)
    values = input_values(algo, draw_data())
    with tf.Session() as session:
        theta = set_theta(algo.policy)
        inside = algo.optimizer.gradient(values)
        np.testing.assert_array_equal(
            np.concatenate([v.ravel() for v in session.run(list(algo.policy.get_params().values()))]), theta)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        set_theta(algo.policy)
        assert relative_error(algo.optimizer.gradient(values), inside) < 1e-5


def test_error_in_one_block_ends_all_blocks_and_leaves_no_thread(monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    set_block_size(monkeypatch, 1)
    algo = ProMP(make_policy(), meta_batch_size=M)
    theta = set_theta(algo.policy)
    values, threads = input_values(algo, draw_data()), threading.active_count()
    session = VariableSet(algo.policy.get_params()).session()
    original = session.run

    def run(fetches, feed=None):
        if feed and any(np.shares_memory(value, values["step0/mask"][1:2]) for value in feed.values()):
            raise KeyboardInterrupt
        return original(fetches, feed)

    with monkeypatch.context() as patch:
        patch.setattr(session, "run", run)
        with pytest.raises(KeyboardInterrupt):
            algo.optimizer.optimize(values)
    assert threading.active_count() == threads
    np.testing.assert_array_equal(algo.policy.get_flat_params(), theta)
    algo.optimizer.optimize(values)
