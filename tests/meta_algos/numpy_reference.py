"""A plain NumPy form of the meta-objectives, float64, one task after the other: what the graphs are held against.

Policies are tanh MLPs with the mean of a Gaussian as output, their parameters one vector, in the order of
`policy.get_params()`. Inner gradients are exact up to rounding: for a real analytic `f`, `Im f(x + ih) / h` with a
tiny `h` is the derivative (Squire and Trapp, 1998). Meta-gradients are central differences of the whole chain.
"""
import numpy as np

TINY = 1e-30


def split(theta, shapes):
    parts = np.split(theta, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes)]


def gaussian(theta, shapes, observations):
    """Returns `mean [N, A]` and `log_std [A]`; parameters are kernel, bias, kernel, bias, ..., log_std."""
    *layers, log_std = split(theta, shapes)
    x = observations
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


def inner_loss(theta, shapes, samples, inner_type):
    if inner_type == "log_likelihood":
        return -np.mean(log_prob(theta, shapes, samples) * samples["advantages"])
    return -np.mean(ratio(theta, shapes, samples) * samples["advantages"])


def inner_gradient(theta, shapes, samples, inner_type):
    directions = TINY * np.eye(len(theta))
    return np.array([inner_loss(theta + 1j * d, shapes, samples, inner_type).imag / TINY for d in directions])


def central_differences(f, x, h=1e-5):
    return np.array([(f(x + d) - f(x - d)) / (2 * h) for d in h * np.eye(len(x))])


class Objective:
    """The chain of inner steps, and the losses at its end, as functions of `theta`.

    Args:
        shapes: of the parameters.
        data: `[K + 1][M]` samples.
        inner_type: loss of the inner steps.
        first_order: whether the inner gradients are constants: those at `theta_0`.
        theta_0: where the meta-gradient is taken.
        step_size: of the inner steps.
    """

    def __init__(self, shapes, data, inner_type="likelihood_ratio", first_order=False, theta_0=None, step_size=0.1):
        self.shapes, self.data, self.inner_type, self.step_size = shapes, data, inner_type, step_size
        self.frozen = None
        if first_order:
            self.frozen = [self.inner_gradients(theta_0, task) for task in range(len(data[0]))]

    def inner_gradients(self, theta, task, step_sizes=None):
        """Gradient of each inner step of a task."""
        gradients = []
        for samples in self.data[:-1]:
            gradients.append(inner_gradient(theta, self.shapes, samples[task], self.inner_type))
            theta = theta - (self.step_size if step_sizes is None else step_sizes) * gradients[-1]
        return gradients

    def chain(self, theta, task, step_sizes=None):
        """Parameters `theta_0`, ..., `theta_K` of a task."""
        gradients = self.inner_gradients(theta, task, step_sizes) if self.frozen is None else self.frozen[task]
        chain = [theta]
        for gradient in gradients:
            chain.append(chain[-1] - (self.step_size if step_sizes is None else step_sizes) * gradient)
        return chain

    def mean_over_tasks(self, theta, task_loss, step_sizes=None):
        chains = [self.chain(theta, task, step_sizes) for task in range(len(self.data[0]))]
        losses = [task_loss(chain, [samples[task] for samples in self.data]) for task, chain in enumerate(chains)]
        return np.mean(losses)

    def pro_mp(self, clip_eps, kl_coeff):
        """`-mean min(r A, clip(r) A) + mean_k eta_k KL_k`."""

        def task_loss(chain, samples):
            r, adv = ratio(chain[-1], self.shapes, samples[-1]), samples[-1]["advantages"]
            surrogate = np.mean(np.minimum(r * adv, np.clip(r, 1 - clip_eps, 1 + clip_eps) * adv))
            kls = [kl_from_old(theta, self.shapes, s) for theta, s in zip(chain[:-1], samples[:-1])]
            return -surrogate + np.mean(kl_coeff * np.array(kls))

        return lambda theta, step_sizes=None: self.mean_over_tasks(theta, task_loss, step_sizes)

    def policy_gradient(self, outer_type, exploration_coeff=0.0):
        """`-mean r A` (TRPO-MAML) or `-mean log pi A` (VPG-MAML), less E-MAML's term.

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
