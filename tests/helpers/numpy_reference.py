"""NumPy reference implementation of the meta-objectives in float64, computed task by task.

Policies are tanh MLPs that output the mean of a Gaussian. Their parameters form one vector in the order of
`policy.get_params()`. Inner gradients are exact up to rounding: for a real analytic `f`, `Im f(x + ih) / h` with a
tiny `h` is the derivative (Squire and Trapp, 1998). Meta-gradients are central differences of the whole chain.

Objectives are functions of `theta` and of `theta_0`, the point of the meta-gradient. Terms that the graph keeps
constant (the denominators of DiCE's boxes; with `first_order` the inner gradients) are computed at `theta_0`.
"""
import itertools
import math

import numpy as np

TINY = 1e-30


def split(theta, shapes):
    ends = itertools.accumulate(math.prod(shape) for shape in shapes)
    return [theta[end - math.prod(shape):end].reshape(shape) for shape, end in zip(shapes, ends)]


def gaussian(theta, shapes, observations):
    """Returns `mean [N, A]` and `log_std [A]`; parameters are kernel, bias, kernel, bias, ..., log_std."""
    *layers, log_std = split(theta, shapes)
    x = observations
    if len(layers) % 2:  # the last parameter is the context, which is concatenated to each observation
        context, log_std = log_std, layers.pop()
        x = np.hstack([x, np.broadcast_to(context, (len(x), len(context)))])
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1]
        if i + 2 < len(layers):
            x = np.tanh(x)
    return x, log_std


def log_density(actions, mean, log_std):
    z = (actions - mean) * np.exp(-log_std)
    return np.sum(-0.5 * z**2 - log_std - 0.5 * np.log(2 * np.pi), axis=1)


def log_prob(theta, shapes, samples):
    return log_density(samples["actions"], *gaussian(theta, shapes, samples["observations"]))


def old_log_prob(samples):
    return log_density(samples["actions"], samples["agent_infos"]["mean"], samples["agent_infos"]["log_std"])


def ratio(theta, shapes, samples):
    return np.exp(log_prob(theta, shapes, samples) - old_log_prob(samples))


def kl_from_old(theta, shapes, samples):
    """Mean over samples of `KL(pi_old || pi_theta)`."""
    mean, log_std = gaussian(theta, shapes, samples["observations"])
    old_mean, old_log_std = samples["agent_infos"]["mean"], samples["agent_infos"]["log_std"]
    variances = np.exp(2 * old_log_std) + (old_mean - mean) ** 2
    return np.mean(np.sum(log_std - old_log_std + variances / (2 * np.exp(2 * log_std)) - 0.5, axis=1))


def per_path(values, samples):
    lengths = samples["path_lengths"]
    return [values[end - length:end] for length, end in zip(lengths, np.cumsum(lengths))]


def boxes(theta, anchor, shapes, samples):
    """Returns DiCE's boxes of each path: `prod_{s <= t} pi_theta(a_s) / pi_anchor(a_s)`."""
    log_ratio = log_prob(theta, shapes, samples) - log_prob(anchor, shapes, samples)
    return [np.exp(np.cumsum(path)) for path in per_path(log_ratio, samples)]


def dice_loss(theta, anchor, shapes, samples):
    """Sums the paths' rewards times the box of the preceding actions; the term after the end uses the last box."""
    rewards = per_path(samples["adjusted_rewards"], samples)
    return -sum(np.sum(box * r) + box[-1] * after for box, r, after in zip(
        boxes(theta, anchor, shapes, samples), rewards, samples["adjusted_rewards_after_end"]))


def loaded_dice_loss(theta, anchor, shapes, samples):
    """Sums the paths' advantages, each times the contribution of its action to the box."""
    advantages = per_path(samples["advantages"], samples)
    return -sum(np.sum((box - np.append(1.0, box[:-1])) * a) for box, a in zip(
        boxes(theta, anchor, shapes, samples), advantages))


def taypo_loss(theta, shapes, samples):
    """Sums `r_t A_t` and, for all `s < t`, `(r_s - 1) (r_t - 1) A_t` over each path."""
    total = 0.0
    for ratios, advantages in zip(per_path(ratio(theta, shapes, samples), samples),
                                  per_path(samples["advantages"], samples)):
        for t, advantage in enumerate(advantages):
            total += ratios[t] * advantage
            for s in range(t):
                total += (ratios[s] - 1) * (ratios[t] - 1) * advantage
    return -total


def inner_loss(theta, shapes, samples, inner_type, anchor=None, horizon=None):
    """Computes the loss of an adaptation step.

    `anchor` are the parameters of the boxes' denominators, `horizon` is the maximum path length. Without it, DiCE and
    TayPO-2 are means over samples.
    """
    count = np.sum(samples["path_lengths"]) if horizon is None else len(samples["path_lengths"]) * horizon
    if inner_type == "likelihood_ratio":
        return -np.mean(ratio(theta, shapes, samples) * samples["advantages"])
    if inner_type == "log_likelihood":
        return -np.mean(log_prob(theta, shapes, samples) * samples["advantages"])
    if inner_type == "taypo":
        return taypo_loss(theta, shapes, samples) / count
    dice = {"dice": loaded_dice_loss, "dice of rewards": dice_loss}[inner_type]
    return dice(theta, anchor, shapes, samples) / count


def inner_gradient(theta, shapes, samples, inner_type, anchor=None, horizon=None):
    """Returns the gradient with respect to `theta`; `anchor` defaults to `theta`."""
    anchor = theta if anchor is None else anchor
    return np.array([inner_loss(theta + 1j * d, shapes, samples, inner_type, anchor, horizon).imag / TINY
                     for d in TINY * np.eye(len(theta))])


def central_differences(f, x, h=1e-5):
    return np.array([(f(x + d) - f(x - d)) / (2 * h) for d in h * np.eye(len(x))])


class Objective:
    """Computes the chain of adaptation steps and the losses after it as functions of `theta`.

    Args:
        shapes: shapes of the parameters.
        data: `[K + 1][M]` samples.
        inner_type: loss of the adaptation steps.
        first_order: whether the inner gradients are constants computed at `theta_0`.
        theta_0: point of the meta-gradient.
        step_size: step size of the adaptation steps.
        horizon: maximum path length.
        adapts: `[D]`, one for parameters that adaptation steps change, zero for the others; by default all change.
    """

    def __init__(self, shapes, data, inner_type="likelihood_ratio", first_order=False, theta_0=None, step_size=0.1,
                 horizon=None, adapts=1.0):
        self.adapts = adapts
        self.shapes, self.data, self.inner_type, self.step_size = shapes, data, inner_type, step_size
        self.horizon = horizon
        tasks = range(len(data[0]))
        self.frozen = self.anchors = None
        if theta_0 is not None:
            self.anchors = [self.chain(theta_0, task) for task in tasks]
        if first_order:
            self.frozen = [self.inner_gradients(theta_0, task) for task in tasks]

    def inner_gradients(self, theta, task, step_sizes=None):
        """Returns the gradient of each adaptation step of a task."""
        gradients = []
        for k, samples in enumerate(self.data[:-1]):
            anchor = None if self.anchors is None else self.anchors[task][k]
            gradients.append(self.adapts * inner_gradient(
                theta, self.shapes, samples[task], self.inner_type, anchor, self.horizon))
            theta = theta - (self.step_size if step_sizes is None else step_sizes) * gradients[-1]
        return gradients

    def chain(self, theta, task, step_sizes=None):
        """Returns the parameters `theta_0`, ..., `theta_K` of a task."""
        gradients = self.inner_gradients(theta, task, step_sizes) if self.frozen is None else self.frozen[task]
        chain = [theta]
        for gradient in gradients:
            chain.append(chain[-1] - (self.step_size if step_sizes is None else step_sizes) * gradient)
        return chain

    def mean_over_tasks(self, theta, task_loss, step_sizes=None):
        chains = [self.chain(theta, task, step_sizes) for task in range(len(self.data[0]))]
        losses = [task_loss(chain, [samples[task] for samples in self.data]) for task, chain in enumerate(chains)]
        return np.mean(losses)

    def dice(self, outer_type):
        """DICEMAML with DiCE as outer loss (`"dice of rewards"`), and VPG_DICEMAML (`"log_likelihood"`)."""

        def task_loss(chain, samples, anchor):
            last, horizon = samples[-1], self.horizon
            if outer_type == "log_likelihood":
                summed = np.sum(log_prob(chain[-1], self.shapes, last) * last["advantages"])
                return -summed / (len(last["path_lengths"]) * horizon)
            return inner_loss(chain[-1], self.shapes, last, outer_type, anchor, horizon)

        def loss(theta, step_sizes=None):
            tasks = range(len(self.data[0]))
            return np.mean([task_loss(self.chain(theta, task, step_sizes), [step[task] for step in self.data],
                                      self.anchors[task][-1]) for task in tasks])

        return loss

    def pro_mp(self, clip_eps, kl_coeff):
        """`-mean min(r A, clip(r) A) + mean_k eta_k KL_k`."""

        def task_loss(chain, samples):
            r, adv = ratio(chain[-1], self.shapes, samples[-1]), samples[-1]["advantages"]
            surrogate = np.mean(np.minimum(r * adv, np.clip(r, 1 - clip_eps, 1 + clip_eps) * adv))
            kls = [kl_from_old(theta, self.shapes, s) for theta, s in zip(chain[:-1], samples[:-1])]
            return -surrogate + (np.mean(kl_coeff * np.array(kls)) if kls else 0.0)

        return lambda theta, step_sizes=None: self.mean_over_tasks(theta, task_loss, step_sizes)

    def policy_gradient(self, outer_type, exploration_coeff=0.0):
        """`-mean r A` (TRPO-MAML) or `-mean log pi A` (VPG-MAML), minus the exploration term of E-MAML.

        The term is `mean(adj_avg_rewards) * sum_k c sum_n (r_kn - 1)`; `c = 1 / N` if it is None.
        """

        def coefficient(samples):
            return 1.0 / len(samples["advantages"]) if exploration_coeff is None else exploration_coeff

        def task_loss(chain, samples):
            score = sum(coefficient(s) * np.sum(ratio(theta, self.shapes, s) - 1)
                        for theta, s in zip(chain[:-1], samples[:-1]))
            outer = inner_loss(chain[-1], self.shapes, samples[-1], outer_type)
            return outer - np.mean(samples[-1]["adj_avg_rewards"]) * score

        return lambda theta, step_sizes=None: self.mean_over_tasks(theta, task_loss, step_sizes)

    def mean_kl(self, theta, step_sizes=None):
        """Mean over tasks of `KL(pi_old || pi_theta_K)`."""
        return self.mean_over_tasks(theta, lambda chain, s: kl_from_old(chain[-1], self.shapes, s[-1]), step_sizes)
