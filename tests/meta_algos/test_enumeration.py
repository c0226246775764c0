"""Tests the formulas with exact expectations over all data sets of environments small enough to enumerate.

`docs/algorithms` derives the results. The return of the adapted policy depends on `theta` in two ways: through the
gradient step, and through the distribution of the sampled data.
"""
import numpy as np
import pytest

from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.meta_algos.inputs import path_starts, stack_tasks
from meta_policy_search.ops import losses
from meta_policy_search.policies import MetaCategoricalMLPPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor
from meta_policy_search.samplers.paths import path_mask
from meta_policy_search.tf_compat import tf
from tests.helpers.paths import TimeTable
from tests.helpers.small_world import padded
from tests.helpers.tiny_worlds import (
    BANDIT,
    CLIFF,
    CROSSROADS,
    Adaptation,
    adapted_return,
    along,
    datasets,
    derivative,
    expectation,
    features,
    hessian_parts,
    initial_theta,
    log_policy,
    mean_reward,
    policy_gradient,
    probability,
    rewards_to_come,
    sampled_objective,
    scores,
)

INNER_LR = 1.0
TOLERANCE = 1e-6  # tolerance of float32 meta-gradients, whose largest entries are about 0.1
STATE_BASELINE = np.array([0.3, -0.8])


# Meta-gradients of the library with one task per data set -------------------------------------------------------------


def histories(world, adaptation, theta):
    """Returns all sequences of data sets `D_0, ..., D_K`: `(data sets, sampling parameters, probability)`."""
    found = [((), (), 1.0, theta)]
    for _ in range(adaptation.num_steps + 1):
        found = [
            ((*before, paths), (*chain, theta), p * probability(world, theta, paths),
             adaptation.adapt(world, theta, theta, paths))
            for before, chain, p, theta in found for paths in datasets(world, adaptation.num_paths)
        ]
    return [history[:3] for history in found]


def flat_samples(world, theta, paths, advantages=None):
    """Returns a data set as samples of a `MetaSampleProcessor`; by default, advantages are rewards to come."""
    states = np.concatenate([path.states for path in paths])
    return {
        "observations": world.observations[states],
        "actions": np.concatenate([path.actions for path in paths]),
        "agent_infos": {"log_prob": log_policy(world, theta)[states]},
        "path_lengths": np.array([len(path) for path in paths]),
        "advantages": np.concatenate([rewards_to_come(path) for path in paths] if advantages is None else advantages),
        "adj_avg_rewards": np.concatenate([path.rewards for path in paths]),
    }


def last_flat_samples(world, theta, paths, weight, baseline=0.0, reward_baseline=0.0):
    """Returns the samples of the outer loss, minus baselines and times `weight`.

    The weight also turns the mean over samples into a mean over paths and the horizon. Otherwise, an outer loss
    would be biased if paths end early.
    """
    samples = flat_samples(world, theta, paths)
    states = np.argmax(samples["observations"], axis=1)
    over_paths = len(states) / (len(paths) * world.horizon)
    advantages = samples["advantages"] - np.broadcast_to(baseline, len(world.rewards))[states]
    samples["advantages"] = weight * over_paths * advantages
    samples["adj_avg_rewards"] = weight * (over_paths * samples["adj_avg_rewards"] - reward_baseline)
    return samples


def padded_samples(world, theta, paths, weight=1.0):
    """Returns a data set like `DiceMetaSampleProcessor` without discount and baseline, its values times `weight`."""
    flat = flat_samples(world, theta, paths)
    return padded({**flat, "advantages": weight * flat["advantages"],
                   "adjusted_rewards": weight * flat["adj_avg_rewards"],
                   "adjusted_rewards_after_end": np.zeros(len(paths))}, world.horizon)


class Enumeration:
    """Runs an algorithm with one task for each sequence of data sets.

    Its loss is a mean over tasks and linear in the advantages and rewards of the last step. Multiplying these by the
    probability of the sequence and the number of tasks turns its gradient into an expectation.
    """

    def __init__(self, algo_cls, world, adaptation, **arguments):
        self.world, self.adaptation, self.theta = world, adaptation, initial_theta(world)
        self.histories = histories(world, adaptation, self.theta)
        self.is_dice = issubclass(algo_cls, DICEMAML)
        if self.is_dice:
            arguments["max_path_length"] = world.horizon
        elif algo_cls is not ProMP:
            arguments["inner_type"] = adaptation.inner_type
        policy = MetaCategoricalMLPPolicy(
            len(self.histories), world.observations.shape[1], world.num_actions, hidden_sizes=())
        policy.set_flat_params(self.theta)
        self.algo = algo_cls(
            policy=policy, meta_batch_size=len(self.histories), inner_lr=adaptation.inner_lr,
            num_inner_grad_steps=adaptation.num_steps, **arguments)

    def expected_gradient(self, **last_step):
        """Returns the expected meta-gradient of the maximized objective.

        `last_step` are arguments of `last_flat_samples`.
        """
        data = [[] for _ in range(self.adaptation.num_steps + 1)]
        for sequence, chain, p in self.histories:
            *inner, last = [(self.world, theta, paths) for theta, paths in zip(chain, sequence)]
            for step, case in enumerate(inner):
                data[step].append(padded_samples(*case) if self.is_dice else flat_samples(
                    *case, advantages=self.adaptation.advantages(sequence[step])))
            last_samples = padded_samples if self.is_dice else last_flat_samples
            data[-1].append(last_samples(*last, weight=p * len(self.histories), **last_step))
        values = self.algo.meta_input_values(data)
        if isinstance(self.algo, ProMP):
            values.update(clip_eps=0.2, inner_kl_coeff=np.ones(self.algo.num_inner_grad_steps))
        return -self.algo.optimizer.gradient(values)


def maximum_error(actual, expected):
    return np.max(np.abs(actual - expected))


@pytest.mark.parametrize("algo_cls, world, num_steps, num_paths, normalized", [
    (VPGMAML, BANDIT, 1, 3, False), (TRPOMAML, BANDIT, 2, 2, False), (TRPOMAML, CROSSROADS, 2, 1, True),
    (VPGMAML, CLIFF, 1, 2, True)])
def test_e_maml_is_unbiased(algo_cls, world, num_steps, num_paths, normalized):
    # given E-MAML with the score of the whole data set, and the loss that adaptation steps descend, for any
    # advantages of the data sets
    adaptation = Adaptation(num_steps, num_paths, INNER_LR, "log_likelihood", normalized)
    enumeration = Enumeration(algo_cls, world, adaptation, exploration=True, exploration_coeff=1.0)
    theta = enumeration.theta
    exact = derivative(lambda x: adapted_return(world, adaptation, x), theta)
    # then the expected meta-gradient is the derivative of the exact adapted return
    assert maximum_error(enumeration.expected_gradient(), exact) < TOLERANCE
    # also with a constant baseline in the score term and a state baseline in the advantages of the adapted policy
    states = STATE_BASELINE[: len(world.rewards)]
    with_baselines = enumeration.expected_gradient(reward_baseline=0.7, baseline=states)
    assert maximum_error(with_baselines, exact) < TOLERANCE


@pytest.mark.parametrize("algo_cls, world, num_steps, num_paths", [
    (VPGMAML, BANDIT, 1, 2), (TRPOMAML, CROSSROADS, 2, 1)])
def test_maml_without_the_score_term_is_biased(algo_cls, world, num_steps, num_paths):
    # given MAML without the score term
    adaptation = Adaptation(num_steps, num_paths, INNER_LR, "log_likelihood")
    enumeration = Enumeration(algo_cls, world, adaptation)
    theta, actual = enumeration.theta, enumeration.expected_gradient()
    # then the effect of theta on the sampled data is missing
    expected = derivative(lambda x: sampled_objective(world, adaptation, x, theta, score=False), theta)
    assert maximum_error(actual, expected) < TOLERANCE
    exact = derivative(lambda x: adapted_return(world, adaptation, x), theta)
    assert maximum_error(actual, exact) > 1000 * TOLERANCE


@pytest.mark.parametrize("algo_cls, world, num_steps, num_paths, inner_type, exploration", [
    (TRPOMAML, CROSSROADS, 1, 2, "likelihood_ratio", True),
    (VPGMAML, CROSSROADS, 1, 2, "dice", True),
    (TRPOMAML, CLIFF, 1, 2, "dice", False),
    (TRPOMAML, CLIFF, 2, 1, "taypo", False),
    (VPGMAML, CLIFF, 1, 2, "taypo", True),
    (ProMP, CROSSROADS, 2, 1, "likelihood_ratio", False),
    (DICEMAML, CLIFF, 1, 2, "dice of rewards", False),
    (VPG_DICEMAML, CLIFF, 2, 1, "dice of rewards", False),
])
@pytest.mark.thorough(but=("ProMP-world5-2-1-likelihood_ratio-False", "DICEMAML-world6-1-2-dice of rewards-False"))
def test_expected_meta_gradients(algo_cls, world, num_steps, num_paths, inner_type, exploration):
    # other meta-gradients are the derivatives of `sampled_objective`; `test_example_of_the_documentation`
    # relates it to the objective that is maximized
    adaptation = Adaptation(num_steps, num_paths, INNER_LR, inner_type)
    arguments = {"exploration": True, "exploration_coeff": 1.0} if exploration else {}
    if inner_type in ("dice", "taypo"):
        arguments["max_path_length"] = world.horizon
    enumeration = Enumeration(algo_cls, world, adaptation, **arguments)
    theta = enumeration.theta
    expected = derivative(lambda x: sampled_objective(world, adaptation, x, theta, exploration), theta)
    actual = enumeration.expected_gradient()
    assert maximum_error(actual, expected) < TOLERANCE
    # they differ from the derivative of the exact adapted return
    exact = derivative(lambda x: adapted_return(world, adaptation, x), theta)
    assert maximum_error(actual, exact) > 1000 * TOLERANCE


def test_default_score_term_is_divided_by_the_number_of_samples():
    adaptation = Adaptation(1, 2, INNER_LR, "log_likelihood")
    enumeration = Enumeration(VPGMAML, CROSSROADS, adaptation, exploration=True)
    theta, num_samples = enumeration.theta, 2 * CROSSROADS.horizon
    without, with_score = (
        derivative(lambda x: sampled_objective(CROSSROADS, adaptation, x, theta, score), theta)  # noqa: B023
        for score in (False, True))
    expected = without + (with_score - without) / num_samples
    assert maximum_error(enumeration.expected_gradient(), expected) < TOLERANCE


@pytest.mark.parametrize("inner_type, percentages", [
    ("log_likelihood", [26.0, 24.6, 24.4, 0.0]),
    ("likelihood_ratio", [13.2, 11.4, 11.2, 14.7]),
    ("dice", [3.8, 2.7, 2.0, 26.6]),
])
def test_example_of_the_documentation(inner_type, percentages):
    theta, actual = initial_theta(CROSSROADS), []
    for num_paths, score in [(1, False), (2, False), (3, False), (2, True)]:
        adaptation = Adaptation(1, num_paths, 0.5, inner_type)
        exact = derivative(lambda x: adapted_return(CROSSROADS, adaptation, x), theta)  # noqa: B023
        estimate = derivative(
            lambda x: sampled_objective(CROSSROADS, adaptation, x, theta, score), theta)  # noqa: B023
        actual.append(100 * np.linalg.norm(estimate - exact) / np.linalg.norm(exact))
    np.testing.assert_allclose(actual, percentages, atol=0.05)


# The library's losses in float64: first and second derivatives --------------------------------------------------------


def expected_derivatives(world, loss, values, weights_of=None):
    """Returns gradient and Hessian of the expected negated loss over data sets of two paths.

    Args:
        world: the environment.
        loss: builds a loss `[M]` from log-probabilities, entries, weights and path starts, each `[M, N]`.
        values: the entries of a data set, `[N]`.
        weights_of: returns the weights for the mask `[M, N]`; by default, those of the mean over paths and steps.
    """
    theta, data, columns = initial_theta(world), datasets(world, 2), []
    for paths in data:
        states, actions = (np.concatenate([getattr(path, key) for path in paths]) for key in ("states", "actions"))
        columns.append((states, actions, path_starts([len(path) for path in paths]), values(paths)))
    states, actions, starts, entries = zip(*columns)
    mask = path_mask(np.array([len(task) for task in states])).astype(float)
    weights = mask / (2 * world.horizon) if weights_of is None else weights_of(mask)
    indices = np.stack([stack_tasks(states, int), stack_tasks(actions, int)], axis=-1)
    with tf.Session() as session:
        x = tf.constant(theta)
        table = tf.nn.log_softmax(tf.matmul(features(world), tf.reshape(x, [-1, world.num_actions])))
        losses_of_tasks = loss(tf.gather_nd(table, indices), tf.constant(stack_tasks(entries, float)),
                               tf.constant(weights), tf.constant(stack_tasks(starts, np.int32)))
        expected = tf.reduce_sum([probability(world, theta, paths) for paths in data] * -losses_of_tasks)
        return session.run([tf.gradients(expected, x)[0], tf.hessians(expected, x)[0]])


def exact_derivatives(world, credit):
    """Returns gradient and Hessian of the expectation of `credit(path)`, divided by the maximum path length."""
    def gradient(theta):
        score = scores(world, theta)
        return expectation(world, theta, lambda path: credit(path) * along(path, score).sum(axis=0)) / world.horizon

    theta = initial_theta(world)
    return [gradient(theta), derivative(gradient, theta)]


def are_equal(actual, expected):
    """Returns whether two sequences of arrays are equal up to rounding; differences must exceed a clear margin."""
    error = max(maximum_error(*pair) for pair in zip(actual, expected))
    assert error < 1e-12 or error > 1e-2
    return error < 1e-12


@pytest.mark.parametrize("world", [BANDIT, CROSSROADS, CLIFF])
def test_hessian_is_the_sum_of_its_parts(world):
    theta = initial_theta(world)
    assert maximum_error(policy_gradient(world, theta), derivative(lambda x: mean_reward(world, x), theta)) < 1e-14
    exact = derivative(lambda x: policy_gradient(world, x), theta)
    assert maximum_error(sum(hessian_parts(world, theta)), exact) < 1e-14


DISCOUNT = 0.8
TIME_BASELINE = np.array([0.6, -0.4, 1.1])


def discounted(path):
    return np.array(path.rewards) * DISCOUNT ** np.arange(len(path))


def rewards_less_a_baseline_of_time(path):
    return discounted(path) - TIME_BASELINE[: len(path)]


def rewards_less_a_baseline_of_time_until_the_horizon(path):
    adjusted = rewards_less_a_baseline_of_time(path)
    adjusted[-1] -= TIME_BASELINE[len(path): CLIFF.horizon].sum()  # with the box of the whole path
    return adjusted


def rewards_less_a_baseline_of_state(path):
    return discounted(path) - STATE_BASELINE[list(path.states)]


def advantages(path):
    """Returns rewards minus a state baseline, discounted from the start of the path."""
    values = rewards_to_come(path, DISCOUNT) - STATE_BASELINE[list(path.states)]
    return values * DISCOUNT ** np.arange(len(path))


def taypo_loss(log_prob, advantages, weights, path_starts):
    return losses.taypo_loss(log_prob, log_prob, advantages, weights, path_starts)


def ratio_loss(log_prob, advantages, weights, path_starts):
    return losses.likelihood_ratio_loss(log_prob, log_prob, advantages, weights)


def log_loss(log_prob, advantages, weights, path_starts):
    return losses.log_likelihood_loss(log_prob, advantages, weights)


@pytest.mark.parametrize("world, is_unbiased", [(BANDIT, True), (CLIFF, False)])
def test_taypo_adds_only_the_missing_hessian_part_to_the_likelihood_ratio(world, is_unbiased):
    values = lambda paths: np.concatenate([advantages(path) for path in paths])  # noqa: E731
    (taypo, taypo_hessian), (ratio, ratio_hessian) = (
        expected_derivatives(world, loss, values) for loss in (taypo_loss, ratio_loss))
    assert maximum_error(taypo, ratio) < 1e-12
    assert are_equal([taypo_hessian], [ratio_hessian]) == is_unbiased


@pytest.mark.parametrize("world, loss, values, is_right", [
    (CLIFF, losses.dice_loss, discounted, True),
    (CLIFF, losses.dice_loss, rewards_less_a_baseline_of_time_until_the_horizon, True),
    (CLIFF, losses.dice_loss, rewards_less_a_baseline_of_time, False),
    (CROSSROADS, losses.dice_loss, rewards_less_a_baseline_of_time, True),
    (CROSSROADS, losses.dice_loss, rewards_less_a_baseline_of_state, False),
    (CLIFF, losses.loaded_dice_loss, advantages, True),
    (CROSSROADS, losses.loaded_dice_loss, advantages, True),
    (BANDIT, taypo_loss, advantages, True),
    (CLIFF, taypo_loss, advantages, True),
])
def test_gradient_and_hessian_of_dice_losses(world, loss, values, is_right):
    actual = expected_derivatives(world, loss, lambda paths: np.concatenate([values(path) for path in paths]))
    # in expectation, the derivatives of a DiCE loss are those of the quantity that is summed along a path,
    if loss is losses.dice_loss:
        assert are_equal(actual, exact_derivatives(world, lambda path: values(path).sum()))
    # which is correct if these are the derivatives of the discounted return
    expected = exact_derivatives(world, lambda path: discounted(path).sum())
    assert are_equal(actual, expected) == is_right


def test_mean_over_samples_is_biased_if_paths_end_early():
    def over_samples(mask):
        return mask / mask.sum(axis=1, keepdims=True)

    def values(paths):
        return np.concatenate([path.rewards for path in paths])

    by_samples = expected_derivatives(CLIFF, losses.dice_loss, values, over_samples)
    by_paths = expected_derivatives(CLIFF, losses.dice_loss, values)
    exact = exact_derivatives(CLIFF, lambda path: np.sum(path.rewards))
    assert are_equal(by_paths, exact) and not are_equal(by_samples, exact)
    # the direction differs too
    cosine = by_samples[0] @ exact[0] / np.linalg.norm(by_samples[0]) / np.linalg.norm(exact[0])
    assert cosine < 0.99


@pytest.mark.parametrize("loss", [log_loss, ratio_loss])
def test_gradient_and_hessian_of_the_other_losses(loss):
    theta = initial_theta(CROSSROADS)
    actual = expected_derivatives(CROSSROADS, loss, lambda paths: np.concatenate(
        [rewards_to_come(path) for path in paths]))
    parts = hessian_parts(CROSSROADS, theta)
    hessian = parts.curvature + (parts.outer if loss is ratio_loss else 0.0)
    assert are_equal(actual, [policy_gradient(CROSSROADS, theta), hessian])
    # the Hessian differs from that of the return
    assert maximum_error(actual[1], sum(parts)) > 0.01


def test_processor_subtracts_the_baseline_after_the_end_up_to_the_longest_path():
    processor = DiceMetaSampleProcessor(TimeTable(TIME_BASELINE), CLIFF.horizon, discount=DISCOUNT, normalize_adv=False)

    def values(paths):
        (samples,) = processor.process_samples({0: [
            {"observations": CLIFF.observations[list(path.states)], "actions": np.array(path.actions),
             "rewards": np.array(path.rewards)} for path in paths]})
        adjusted = samples["adjusted_rewards"][samples["mask"] > 0]
        adjusted[np.cumsum(samples["path_lengths"]) - 1] += samples["adjusted_rewards_after_end"]
        return adjusted

    # then an ended path omits only the baseline of steps that the other path did not reach either
    has_ended = [expectation(CLIFF, initial_theta(CLIFF), lambda path: len(path) <= t)  # noqa: B023
                 for t in range(CLIFF.horizon)]

    def credit(path):
        return discounted(path).sum() + (TIME_BASELINE * has_ended)[len(path):].sum()

    assert are_equal(expected_derivatives(CLIFF, losses.dice_loss, values), exact_derivatives(CLIFF, credit))
