"""Mutation tests: each breaks the math in one place and requires the named test to fail.

A mutation replaces one function of the library by a modified version, such as one that omits a term. The named tests
also run unmodified in their own files, where they pass.
"""
import copy
from functools import partial
from typing import Any, Callable, NamedTuple

import numpy as np
import pytest

from meta_policy_search.actors.actor import NetworkActor
from meta_policy_search.baselines import GaussianMLPBaseline, gaussian_mlp_baseline
from meta_policy_search.baselines.linear_baseline import LinearBaseline
from meta_policy_search.meta_algos import DICEMAML, VPG_DICEMAML, VPGMAML, MAMLAlgo, ProMP, inner_losses, rl2
from meta_policy_search.meta_algos import base as meta_algos_base
from meta_policy_search.ops import adaptation, losses, networks, tensorflow_ops
from meta_policy_search.ops.networks import CONTEXT
from meta_policy_search.optimizers import ConjugateGradientOptimizer, FiniteDifferenceHvp, MAMLFirstOrderOptimizer
from meta_policy_search.optimizers import conjugate_gradient_optimizer as cg
from meta_policy_search.policies import CategoricalRecurrentPolicy, DiagonalGaussian, MetaGaussianMLPPolicy
from meta_policy_search.samplers import meta_sample_processor
from meta_policy_search.samplers.dice_sample_processor import DiceSampleProcessor
from meta_policy_search.tf_compat import tf
from tests.baselines import test_gaussian_mlp_baseline as of_baseline
from tests.meta_algos import test_adapt_params as of_partial_adaptation
from tests.meta_algos import test_enumeration as of_expectations
from tests.meta_algos import test_meta_gradients as of_gradients
from tests.meta_algos import test_rl2 as of_trials
from tests.optimizers import test_conjugate_gradient_optimizer as of_steps
from tests.policies import test_distributions as of_distributions
from tests.samplers import test_dice_sample_processor as of_dice_samples
from tests.samplers import test_sample_processor as of_samples

pytestmark = pytest.mark.gradients


class Mutation(NamedTuple):
    what: str
    owner: Any  # module or class
    name: str  # name of the replaced function
    mutate: Callable[[Callable], Callable]  # builds the broken function from the correct one
    test: Callable[[], None]


def gradient(case_id):
    """Returns the test that compares a meta-gradient with central differences, for a case that is not slow."""
    (case,) = (case for case in of_gradients.CASES if case.id == case_id)
    return partial(of_gradients.test_objective_and_meta_gradient, *case.values)


PRO_MP, PRO_MP_2 = gradient("ProMP, 1 steps"), gradient("ProMP, 2 steps, trained step sizes")
PRO_MP_FIRST_ORDER = gradient("ProMP, 2 steps, first order")
TRPO_LOG = gradient("TRPOMAML, 1 steps, log_likelihood")
VPG_RATIO = gradient("VPGMAML, 1 steps, likelihood_ratio")
VPG_DICE = gradient("VPGMAML, 1 steps, dice, trained step sizes")
E_MAML = gradient("VPGMAML, 2 steps, log_likelihood, exploration, first order")
DICE, VPG_OF_DICE = gradient("DICEMAML, 1 steps"), gradient("VPG_DICEMAML, 2 steps")
TAYPO = gradient("TRPOMAML, 2 steps, taypo")
HEAD_ADAPTS = gradient("ProMP, 2 steps, adapts head")
CONTEXT_ADAPTS = gradient("TRPOMAML, 2 steps, likelihood_ratio, adapts context")


# Inner steps --------------------------------------------------------------------------------------------------------


def in_step(step):
    """Returns whether the graph of adaptation step `step` of the meta-objective is being built."""
    return f"/step{step}" in tf.get_default_graph().get_name_scope()


def always_from_theta(step):
    start = {}

    def mutant(params, *rest):
        if in_step(0):
            start.update(params)
        adapted = step(params, *rest)
        return {name: start[name] + adapted[name] - params[name] for name in params} if in_step(1) else adapted

    return mutant


GRADIENT_STEPS = [
    ("no second-order path", lambda step: lambda params, loss, sizes, *_: step(params, loss, sizes, True), PRO_MP),
    ("second order with first_order=True",
     lambda step: lambda params, loss, sizes, *_: step(params, loss, sizes, False), PRO_MP_FIRST_ORDER),
    ("the second adaptation step starts at theta", always_from_theta, PRO_MP_FIRST_ORDER),
    ("no gradient with respect to the step sizes", lambda step: lambda params, loss, sizes, *rest: step(
        params, loss, {name: tf.stop_gradient(size) for name, size in sizes.items()}, *rest), VPG_DICE),
    ("no second-order path in the second step",
     lambda step: lambda params, loss, sizes, *_: step(params, loss, sizes, in_step(1)), PRO_MP_2),
]
INNER_STEPS = [
    *(Mutation(what, adaptation, "gradient_step", mutate, test) for what, mutate, test in GRADIENT_STEPS),
    Mutation("meta-gradient of the first task only", adaptation, "stack_params",
             lambda stack: lambda params, num_tasks: {
                 name: tf.concat([p[:1], tf.stop_gradient(p[1:])], 0) for name, p in stack(params, num_tasks).items()},
             PRO_MP),
    Mutation("every adaptation starts at theta", MAMLAlgo, "adapt",
             lambda adapt: lambda algo, data: (algo.policy.switch_to_pre_update(), adapt(algo, data)),
             partial(of_gradients.test_adapt_is_a_policy_gradient_step_of_each_task, "likelihood_ratio")),
    Mutation("adaptation always uses the default inner loss", inner_losses, "inner_loss",
             lambda build: lambda step, inner_type, *args: build(step, "likelihood_ratio", *args),
             partial(of_gradients.test_adapt_is_a_policy_gradient_step_of_each_task, "log_likelihood")),
]


# Samples and weights ------------------------------------------------------------------------------------------------

MEANS = [
    Mutation("the outer loss uses the pre-update samples", MAMLAlgo, "meta_input_values",
             lambda values: lambda algo, data: values(algo, [*data[:-1], data[0]]), PRO_MP),
    Mutation("padding has weight", losses, "sample_weights",
             lambda weights: lambda mask: weights(tf.ones_like(mask)), PRO_MP),
    Mutation("mean over the samples of all tasks", losses, "sample_weights",
             lambda weights: lambda mask: mask / tf.reduce_mean(tf.reduce_sum(mask, axis=-1)), VPG_RATIO),
    Mutation("DiCE: means over samples", losses, "path_weights",
             lambda weights: lambda mask, starts, horizon: losses.sample_weights(mask), DICE),
    Mutation("all adaptation steps use the samples of the first", MAMLAlgo, "meta_input_values",
             lambda values: lambda algo, data: values(algo, [data[0]] * algo.num_inner_grad_steps + data[-1:]),
             PRO_MP_FIRST_ORDER),
    Mutation("DiCE: divided by the length of the longest path", losses, "path_weights",
             lambda weights: lambda mask, starts, horizon: weights(mask, starts, 1) / tf.reduce_max(
                 mask * tf.cast(tf.range(tf.shape(mask)[1]) - starts + 1, tf.float32)), DICE),
]


# Losses -------------------------------------------------------------------------------------------------------------


LOSSES = [
    Mutation("no clipping above", tf, "clip_by_value", lambda clip: lambda x, low, high: tf.maximum(x, low), PRO_MP),
    Mutation("no clipping below", tf, "clip_by_value", lambda clip: lambda x, low, high: tf.minimum(x, high), PRO_MP),
    Mutation("ratio instead of the log-likelihood", losses, "log_likelihood_loss",
             lambda loss: lambda new, *rest: losses.likelihood_ratio_loss(new, new, *rest), TRPO_LOG),
    Mutation("outer ratio to the current policy", losses, "clipped_surrogate",
             lambda loss: lambda new, old, *rest: loss(new, new, *rest), PRO_MP),
    Mutation("log-likelihood instead of the ratio", losses, "likelihood_ratio_loss",
             lambda loss: lambda new, old, *rest: losses.log_likelihood_loss(new, *rest), VPG_RATIO),
    Mutation("ratio to the current policy", losses, "likelihood_ratio_loss",
             lambda loss: lambda new, old, *rest: loss(new, new, *rest), VPG_RATIO),
    Mutation("clipping without the minimum", tf, "minimum", lambda minimum: lambda plain, clipped: clipped, PRO_MP),
]


# Densities and divergences ------------------------------------------------------------------------------------------


def counts_in_step(*steps):
    """Keeps the divergence of some steps."""
    return lambda build: lambda algo, step: float(any(
        name.startswith(f"step{k}/") for name in step.inputs.placeholders for k in steps)) * build(algo, step)


def under_theta(algo, step):
    """Computes a step of the chain as if the policy had not adapted."""
    return algo._build_step(step.inputs, algo._chain[0].params)


DENSITIES = [
    Mutation("no gradient of the KL penalty", MAMLAlgo, "mean_kl",
             lambda build: lambda *args: tf.stop_gradient(build(*args)), PRO_MP),
    Mutation("KL with exchanged arguments", DiagonalGaussian, "kl_sym",
             lambda kl: lambda distribution, old, new: kl(distribution, new, old), PRO_MP),
    Mutation("constraint on the pre-update policies", MAMLAlgo, "mean_kl",
             lambda build: lambda algo, step: build(algo, algo._chain[0]), TRPO_LOG),
    Mutation("no KL penalty of the first step", MAMLAlgo, "mean_kl", counts_in_step(1, 2), PRO_MP_FIRST_ORDER),
    Mutation("no KL penalty of the second step", MAMLAlgo, "mean_kl", counts_in_step(0, 2), PRO_MP_FIRST_ORDER),
    Mutation("KL penalty of all adaptation steps at theta", MAMLAlgo, "mean_kl",
             lambda build: lambda algo, step: build(algo, under_theta(algo, step)), PRO_MP_FIRST_ORDER),
    Mutation("KL with exchanged arguments in the constraint", DiagonalGaussian, "kl_sym",
             lambda kl: lambda distribution, old, new: kl(distribution, new, old), TRPO_LOG),
    Mutation("KL of the means only", DiagonalGaussian, "kl_sym", lambda kl: lambda gaussian, old, new:
             kl(gaussian, {**old, "log_std": new["log_std"]}, new), PRO_MP),
    Mutation("KL of the standard deviations only", DiagonalGaussian, "kl_sym", lambda kl: lambda gaussian, old, new:
             kl(gaussian, {**old, "mean": new["mean"]}, new), PRO_MP),
]


# Exploration term of E-MAML -----------------------------------------------------------------------------------------


def with_returns(change):
    """Changes the returns of the adapted policies in the exploration term."""
    def mutate(build):
        def mutant(chain, *args):
            last = copy.copy(chain[-1].inputs)
            last.entry = lambda key: change(chain[-1].inputs.entry(key))
            return build([*chain[:-1], chain[-1]._replace(inputs=last)], *args)
        return mutant
    return mutate


EXPLORATION = [
    Mutation("mean over samples instead of the sum", losses, "exploration_score",
             lambda score: lambda new, old, weights: score(new, old, losses.sample_weights(weights)), E_MAML),
    Mutation("log-likelihood instead of the ratio", losses, "exploration_score",
             lambda score: lambda new, old, weights: tf.reduce_sum(weights * (new - old), axis=-1), E_MAML),
    Mutation("score of the first adaptation step only", inner_losses, "exploration_loss",
             lambda build: lambda chain, *args: build([chain[0], chain[-1]], *args), E_MAML),
    Mutation("no gradient of the score", losses, "exploration_score",
             lambda score: lambda *args: tf.stop_gradient(score(*args)), E_MAML),
    Mutation("padding has weight", losses, "exploration_score",
             lambda score: lambda new, old, weights: score(new, old, tf.ones_like(weights) * weights[:, :1]), E_MAML),
    Mutation("score of the last adaptation step only", inner_losses, "exploration_loss",
             lambda build: lambda chain, *args: build(chain[-2:], *args), E_MAML),
    Mutation("score of all adaptation steps at theta", VPGMAML, "meta_objective",
             lambda build: lambda algo, chain: build(algo, [under_theta(algo, s) for s in chain[:-1]] + chain[-1:]),
             E_MAML),
    Mutation("score without the factor of the returns", inner_losses, "exploration_loss", with_returns(tf.ones_like),
             E_MAML),
]


# DiCE ---------------------------------------------------------------------------------------------------------------


def linear_boxes(boxes):
    """Replaces `exp(x)` by `1 + x`; the value of `x` is zero."""
    return lambda *args: tuple(tf.log1p(log_box) for log_box in boxes(*args))


BROKEN_BOXES = [
    ("boxes continue across path ends", "sums_along_paths",
     lambda sums: lambda values, starts: sums(values, tf.zeros_like(starts))),
    ("boxes of a single action", "sums_along_paths",
     lambda sums: lambda values, starts: (values, tf.zeros_like(values))),
    ("boxes without a denominator", "_log_boxes", lambda boxes: losses.sums_along_paths),
    ("boxes without second derivatives", "_log_boxes", linear_boxes),
]
AFTER_END = "adjusted_rewards_after_end"
DICES = [
    Mutation("advantages are counted repeatedly", losses, "loaded_dice_loss", lambda loss: losses.dice_loss, VPG_DICE),
    Mutation("nothing is subtracted after the end", DICEMAML, "input_values",
             lambda values: lambda algo, inputs, data: values(
                 algo, inputs, [{**task, AFTER_END: np.zeros_like(task[AFTER_END])} for task in data]), DICE),
    *(Mutation(f"{what}: {kind}", losses, name, mutate, test)
      for what, name, mutate in BROKEN_BOXES for kind, test in [("rewards", DICE), ("advantages", VPG_DICE)]),
    Mutation("boxes of the preceding actions only", losses, "sums_along_paths",
             lambda sums: lambda *args: sums(*args)[1:] * 2, DICE),
    Mutation("boxes weigh the advantages of the outer loss", VPG_DICEMAML, "outer_loss",
             lambda build: lambda algo, step: losses.dice_loss(
                 step.log_prob, step.inputs.advantages, step.inputs.path_weights(algo.max_path_length),
                 step.inputs.path_starts),
             VPG_OF_DICE),
]


# TayPO-2 and partial adaptation -------------------------------------------------------------------------------------


def no_context(fold):
    """Joins zeros to the observations in place of the context."""
    return lambda params, *args: fold({name: 0.0 * p if name == CONTEXT else p for name, p in params.items()}, *args)


def also_a_bias(build):
    """Takes the inner step in a parameter of the body as well."""
    def mutant(algo, step, state):
        params, state = build(algo, step, state)
        bias = step.params[BIAS]
        (gradient,) = tf.gradients(algo.inner_loss(step), bias)
        return {**params, BIAS: bias - 0.1 * gradient}, state
    return mutant


def selects_a_bias(select):
    return lambda *args: (BIAS, *select(*args))


BIAS = "mean_network/hidden_0/bias"


CLIPPED = partial(of_partial_adaptation.test_meta_gradient_is_scaled_to_its_maximum_norm, VPGMAML, {})
PARTIAL_ADAPTATION = [
    Mutation("TayPO-2: no second term", losses, "taypo_loss",
             lambda loss: lambda new, old, advantages, weights, *_: losses.likelihood_ratio_loss(
                 new, old, advantages, weights), TAYPO),
    Mutation("a parameter of the body adapts with the head", MAMLAlgo, "_build_update", also_a_bias, HEAD_ADAPTS),
    Mutation("the context is not joined to observations", networks, "fold_context", no_context,
             CONTEXT_ADAPTS),
    Mutation("gradients are not clipped", MAMLFirstOrderOptimizer, "_evaluate",
             lambda of: lambda self, *args: (setattr(self, "_max_grad_norm", None), of(self, *args))[1], CLIPPED),
    Mutation("a parameter of the body is selected", meta_algos_base, "select_params", selects_a_bias,
             partial(of_partial_adaptation.test_chosen_parameters_adapt, ProMP,
                     "head", of_partial_adaptation.HEAD)),
    Mutation("actors act without the context", networks, "fold_context", no_context,
             partial(of_partial_adaptation.test_context_acts_like_additional_observations,
                     MetaGaussianMLPPolicy, (5,))),
]


# Expectations -------------------------------------------------------------------------------------------------------

BANDIT, CLIFF = of_expectations.BANDIT, of_expectations.CLIFF
UNBIASED = of_expectations.test_e_maml_is_unbiased
DERIVATIVES = of_expectations.test_gradient_and_hessian_of_dice_losses

EXPECTATIONS = [
    Mutation("no score", losses, "exploration_score", lambda score: lambda *args: 0.0 * score(*args),
             partial(UNBIASED, VPGMAML, BANDIT, 1, 3, False)),
    *(Mutation(f"{what}: {loss.__name__}", losses, name, mutate, partial(DERIVATIVES, CLIFF, loss, values, True))
      # boxes that continue across path ends add variance but no bias, because paths are independent
      for what, name, mutate in BROKEN_BOXES[1:] for loss, values in [
          (losses.dice_loss, of_expectations.discounted), (losses.loaded_dice_loss, of_expectations.advantages)]),
]


# Distributions ------------------------------------------------------------------------------------------------------

DISTRIBUTION = partial(of_distributions.test_graph_and_numpy_agree_and_broadcast, of_distributions.GAUSSIAN, (5,), (5,),
                       np.float64)

DISTRIBUTIONS = [
    Mutation("KL with exchanged arguments", DiagonalGaussian, "kl_sym",
             lambda kl: lambda gaussian, old, new: kl(gaussian, new, old), DISTRIBUTION),
    Mutation("entropy without its constant", DiagonalGaussian, "entropy_sym",
             lambda entropy: lambda gaussian, info: tf.reduce_sum(info["log_std"], -1), DISTRIBUTION),
]


# Returns and advantages ---------------------------------------------------------------------------------------------


def with_attribute(name, value):
    """Sets an attribute of the object before its method runs."""
    return lambda method: lambda self, *args: (vars(self).update({name: value}), method(self, *args))[1]


SAMPLES = [
    Mutation("rewards are standardized within a task", meta_sample_processor, "standardized_rewards",
             lambda standardize: lambda tasks: [standardize([task])[0] for task in tasks],
             of_samples.test_adj_avg_rewards_are_standardized_over_all_tasks),
    Mutation("DiCE: nothing is subtracted after the end", DiceSampleProcessor, "process_samples",
             lambda process: lambda *args: {**process(*args), "adjusted_rewards_after_end": np.zeros(4)},
             partial(of_dice_samples.test_expected_gradient_is_exact_for_paths_that_end_early, False, False)),
]


# Constrained steps --------------------------------------------------------------------------------------------------


def not_scaled(at):
    """Uses a fraction `base_eps` of the vector as step, regardless of its length."""
    def mutant(hvp, *args):
        product, base_eps = at(hvp, *args), hvp.base_eps

        def mutated_product(x):
            vars(hvp).update(base_eps=base_eps * np.linalg.norm(x))
            return product(x)

        return mutated_product

    return mutant


FINITE_DIFFERENCE = partial(of_steps.test_products_equal_the_dense_hessian_for_vectors_of_any_length,
                            "finite_difference", 1e-3)
STEP = partial(of_steps.test_linear_loss_is_optimized_to_the_border_of_the_trust_region, "exact")

STEPS = [
    Mutation("step does not depend on the length of the vector", FiniteDifferenceHvp, "at", not_scaled,
             partial(FINITE_DIFFERENCE, 1e3)),
    Mutation("one-sided difference", FiniteDifferenceHvp, "at", with_attribute("symmetric", False),
             partial(FINITE_DIFFERENCE, 1.0)),
    Mutation("gradient instead of the natural gradient", cg, "conjugate_gradients",
             lambda solve: lambda product, b, *_: (b, product(b)), STEP),
    Mutation("no damping", ConjugateGradientOptimizer, "_full_step", with_attribute("_damping", 0.0),
             of_steps.test_damping_is_added_to_the_curvature_of_the_named_variables),
    Mutation("the line search ignores the constraint", ConjugateGradientOptimizer, "_search",
             with_attribute("_step_size", np.inf), of_steps.test_step_that_violates_the_constraint_is_shortened),
]


RL2_GRADIENT = partial(of_trials.test_loss_and_gradient, CategoricalRecurrentPolicy)

TRIALS = [
    Mutation("no gradient by the recurrent kernel", tensorflow_ops, "_gru_states",
             lambda states: lambda of_inputs, kernel: states(of_inputs, tf.stop_gradient(kernel)), RL2_GRADIENT),
    Mutation("the mean return stays in the targets of the value head", rl2, "return_statistics",
             lambda statistics: lambda *args: (0.0, statistics(*args)[1]), RL2_GRADIENT),
    Mutation("hidden states last from one trial to the next", NetworkActor, "start_paths",
             lambda start: lambda actor, rows: start(actor, rows) if actor.states is None else None,
             partial(of_trials.test_all_executors_collect_the_same_trials, of_trials.DISCRETE, {"envs_per_task": 2})),
]


# Learned baseline -----------------------------------------------------------------------------------------------------


def only_the_output_layer(loss):
    """Leaves out the gradient by hidden layers."""
    def mutant(*args):
        value, gradients = loss(*args)
        return value, {name: g if "/output/" in name else np.zeros_like(g) for name, g in gradients.items()}
    return mutant


VALUE_GRADIENT = partial(of_baseline.test_the_gradient_is_that_of_central_differences, (4, 3))
BASELINES = [
    Mutation("gradient of another nonlinearity", gaussian_mlp_baseline, "_layers",
             lambda layers: lambda params, inputs: [np.arctanh(0.9 * h) if i else h for i, h in enumerate(
                 layers(params, inputs))], VALUE_GRADIENT),
    Mutation("hidden layers do not learn", gaussian_mlp_baseline, "value_loss", only_the_output_layer,
             of_baseline.test_it_learns_a_value_function_that_is_not_linear),
    Mutation("the fit to a task forgets the shared output layer", GaussianMLPBaseline, "_solve",
             lambda solve: LinearBaseline._solve, of_baseline.test_fit_changes_the_output_layer_to_that_of_the_task),
    Mutation("steps of Adam are too short", gaussian_mlp_baseline, "_step_adam",
             lambda step: lambda state, gradients, rate: step(state, gradients, 0.1 * rate),
             of_baseline.test_the_first_step_of_adam_has_the_learning_rate_as_length),
]


THOROUGH = 2  # mutations of each group, most important first; the default run includes one of some groups

# Each of these rebuilds the graph of an algorithm, as those of "expectations" do.
OF_GRADIENTS = {"adaptation step": INNER_STEPS, "means": MEANS, "losses": LOSSES, "densities": DENSITIES,
                "exploration": EXPLORATION, "DiCE": DICES, "partial adaptation": PARTIAL_ADAPTATION}
OF_OTHERS = {"expectations": EXPECTATIONS, "distributions": DISTRIBUTIONS, "samples": SAMPLES,
             "constrained step": STEPS, "baseline": BASELINES, "trials": TRIALS}


def marks_of(group, rank):
    if group in ("distributions", "samples", "constrained step", "baseline", "trials"):
        return []
    if rank == 0 and group in ("adaptation step", "losses", "DiCE", "expectations"):
        return []
    return [pytest.mark.slow] if rank >= THOROUGH else [pytest.mark.thorough]


@pytest.mark.parametrize("mutation", [
    pytest.param(mutation, id=f"{group}: {mutation.what}", marks=marks_of(group, rank))
    for group, mutations in {**OF_GRADIENTS, **OF_OTHERS}.items() for rank, mutation in enumerate(mutations)
])
def test_mutation_is_detected(mutation, monkeypatch):
    monkeypatch.setattr(mutation.owner, mutation.name, mutation.mutate(getattr(mutation.owner, mutation.name)))
    with pytest.raises(AssertionError):
        mutation.test()
