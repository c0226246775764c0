"""Compares diagnostics of the gradient estimates with NumPy and with their expectations; tests them in training."""
import numpy as np
import pytest

from meta_policy_search import TRPOMAML, VPGMAML, MetaGaussianMLPPolicy, ProMP
from meta_policy_search.meta_algos.diagnostics import compare_halves, mean_cosine
from meta_policy_search.tf_compat import tf
from tests.helpers.numpy_reference import Objective, central_differences, inner_gradient, inner_loss, ratio
from tests.helpers.small_world import M, draw_data, make_policy, set_theta, shapes_of
from tests.helpers.trainers import build_trainer

CLIP_EPS, KL_COEFF, INNER_LR = 0.3, 0.7, 0.2
COLUMNS = {"MetaGradNorm", "MetaGradVariance", "MetaGradRelativeStd", "MetaGradHalvesCosine", "PrePostGradCosine"}


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


def clipped_surrogate(theta, shapes, samples):
    r, adv = ratio(theta, shapes, samples), samples["advantages"]
    return -np.mean(np.minimum(r * adv, np.clip(r, 1 - CLIP_EPS, 1 + CLIP_EPS) * adv))


def likelihood_ratio(theta, shapes, samples):
    return inner_loss(theta, shapes, samples, "likelihood_ratio")


def log_likelihood(theta, shapes, samples):
    return inner_loss(theta, shapes, samples, "log_likelihood")


def case(algo_cls, arguments, inner_type, meta_objective, outer_loss):
    name = ", ".join([algo_cls.__name__, *(f"{key}={value}" for key, value in arguments.items())])
    return pytest.param(algo_cls, arguments, inner_type, meta_objective, outer_loss, id=name)


CASES = [
    case(ProMP, {"num_inner_grad_steps": 3, "clip_eps": CLIP_EPS, "init_inner_kl_penalty": KL_COEFF},
         "likelihood_ratio", lambda objective: objective.pro_mp(CLIP_EPS, KL_COEFF), clipped_surrogate),
    case(TRPOMAML, {"num_inner_grad_steps": 2, "exploration": True, "trainable_inner_step_size": True},
         "likelihood_ratio", lambda objective: objective.policy_gradient("likelihood_ratio", None), likelihood_ratio),
    case(VPGMAML, {"num_inner_grad_steps": 2, "inner_type": "log_likelihood", "first_order": True},
         "log_likelihood", lambda objective: objective.policy_gradient("log_likelihood"), log_likelihood),
    case(VPGMAML, {"trainable_inner_step_size": True},
         "likelihood_ratio", lambda objective: objective.policy_gradient("log_likelihood"), log_likelihood),
]


@pytest.mark.parametrize("algo_cls, arguments, inner_type, meta_objective, outer_loss", CASES)
@pytest.mark.thorough(but="VPGMAML, num_inner_grad_steps=2, inner_type=log_likelihood, first_order=True")
def test_every_diagnostic_equals_its_numpy_reference(algo_cls, arguments, inner_type, meta_objective, outer_loss):
    # given samples of policies outside the chain, so that the gradients of different losses differ
    policy = make_policy()
    algo = algo_cls(policy=policy, inner_lr=INNER_LR, meta_batch_size=M, **arguments)
    data, theta, shapes = draw_data(algo.num_inner_grad_steps), set_theta(policy), shapes_of(policy)

    figures = algo.compute_diagnostics(data)

    # the meta-gradients of one task and of the other two tasks
    def meta_gradient(tasks):
        half = [step[tasks] for step in data]
        f = meta_objective(Objective(shapes, half, inner_type, algo.first_order, theta, INNER_LR))
        gradient = central_differences(f, theta)
        if not algo.trainable_inner_step_size:
            return gradient
        log_steps = np.full(len(theta), np.log(INNER_LR))
        return np.append(gradient, central_differences(lambda logs: f(theta, np.exp(logs)), log_steps))

    one, two = meta_gradient(slice(0, 1)), meta_gradient(slice(1, 3))
    norm, variance = np.linalg.norm((one + 2 * two) / 3), np.sum((one - two) ** 2) * 2 / 9
    expected = {
        "MetaGradNorm": norm, "MetaGradVariance": variance, "MetaGradRelativeStd": np.sqrt(variance) / norm,
        "MetaGradHalvesCosine": cosine(one, two),
    }
    # the gradients of each task at both ends of its chain of adaptation steps
    objective = Objective(shapes, data, inner_type, algo.first_order, theta, INNER_LR)
    chains = [objective.chain(theta, task) for task in range(M)]
    expected["PrePostGradCosine"] = np.mean([
        cosine(inner_gradient(theta, shapes, data[0][task], inner_type),
               central_differences(lambda x, task=task: outer_loss(x, shapes, data[-1][task]), chains[task][-1]))
        for task in range(M)
    ])
    assert figures == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.thorough
def test_task_without_a_gradient_is_omitted_from_mean_cosines():
    # given a task without advantages, then the mean covers the other two
    algo = TRPOMAML(policy=make_policy(), inner_lr=INNER_LR, meta_batch_size=M)
    data, theta, shapes = draw_data(), set_theta(algo.policy), shapes_of(algo.policy)
    data[1][1]["advantages"][:] = 0.0
    objective = Objective(shapes, data, step_size=INNER_LR)
    cosines = [cosine(inner_gradient(theta, shapes, data[0][task], "likelihood_ratio"),
                      inner_gradient(objective.chain(theta, task)[-1], shapes, data[1][task], "likelihood_ratio"))
               for task in (0, 2)]
    assert algo.compute_diagnostics(data)["PrePostGradCosine"] == pytest.approx(np.mean(cosines), rel=1e-3)


def test_undefined_direction_gives_nan():
    zero, x = np.zeros(2), np.array([3.0, 4.0])
    figures = compare_halves(zero, x, 1, 1)
    assert (figures["MetaGradNorm"], figures["MetaGradVariance"], figures["MetaGradRelativeStd"]) == (2.5, 6.25, 1.0)
    assert np.isnan(figures["MetaGradHalvesCosine"])
    assert np.isnan(compare_halves(x, -x, 1, 1)["MetaGradRelativeStd"])
    assert np.isnan(mean_cosine(np.array([zero, x]), np.array([x, zero])))


def build(algo_cls=VPGMAML, meta_batch_size=3, diagnostics=True, **arguments):
    policy = MetaGaussianMLPPolicy(meta_batch_size, 2, 2, hidden_sizes=(4,))
    return build_trainer(algo_cls, (meta_batch_size, 4, 6), 3, policy=policy, diagnostics=diagnostics, **arguments)


def train(**arguments):
    """Returns the rows of three iterations without times, and the final parameters."""
    from meta_policy_search.utils.utils import set_seed

    with tf.Graph().as_default() as graph:
        set_seed(1)
        trainer, rows = build(**arguments), []
        graph.finalize()
        trainer.callbacks.append(lambda trainer, row: rows.append({k: v for k, v in row.items() if "Time" not in k}))
        trainer.train()
        return rows, trainer.policy.get_flat_params()


@pytest.mark.parametrize("algo_cls", [ProMP, TRPOMAML])
@pytest.mark.thorough
def test_diagnostics_do_not_change_training_bit_for_bit(algo_cls):
    plain, params = train(algo_cls=algo_cls, diagnostics=False)
    diagnosed, diagnosed_params = train(algo_cls=algo_cls)
    np.testing.assert_array_equal(params, diagnosed_params)
    for plain_row, row in zip(plain, diagnosed, strict=True):
        assert set(row) - set(plain_row) == COLUMNS
        assert {key: row[key] for key in plain_row} == plain_row
        assert all(np.isfinite(row[key]) for key in COLUMNS)


def test_diagnostics_use_the_parameters_before_the_meta_update(monkeypatch):
    # given the inputs of the meta-update from the trainer
    trainer, handed = build(num_inner_grad_steps=2), []
    optimize, params = trainer.algo.optimize_policy, trainer.policy.get_param_values()
    monkeypatch.setattr(trainer.algo, "optimize_policy", lambda samples: (handed.append(samples), optimize(samples)))
    row = trainer.train_itr()
    # then equal samples and parameters give equal diagnostics
    after = trainer.algo.compute_diagnostics(handed[0])
    trainer.policy.set_params(params)
    figures = trainer.algo.compute_diagnostics(handed[0])
    assert {key: row[key] for key in figures} == figures != after
    # and their time is not included in the time of the meta-update
    times = ("Time-TotalInner", "Time-Diagnostics", "Time-OuterStep")
    assert row["ItrTime"] == pytest.approx(sum(row[key] for key in times))
    assert row["Time-MAMLSteps"] == pytest.approx(row["Time-InnerStep"] + row["Time-OuterStep"])


@pytest.mark.thorough
def test_invalid_use_is_refused():
    with pytest.raises(ValueError, match="meta_batch_size of at least 2.*got 1"):
        build(meta_batch_size=1)
    with pytest.raises(TypeError, match="diagnostics"):
        build(diagnostics="yes")
