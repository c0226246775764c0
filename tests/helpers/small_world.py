"""Helpers shared by the tests of the algorithms: a small policy, and samples of tasks with different sizes."""
import numpy as np

from meta_policy_search.ops.tensorflow_ops import make_variables
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.sessions import VariableSet
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import logger
from tests.helpers.numpy_reference import gaussian

M, O, A = 3, 2, 2
LENGTHS = (5, 8, 3)
PATH_LENGTHS = {5: (2, 3), 8: (4, 1, 3), 3: (3,)}
T = 5  # maximum path length; all paths are shorter


class Target:
    """Holds optimized variables like a policy, created from their initial values by name."""

    def __init__(self, **values):
        self.values = VariableSet(make_variables(values))
        self.variables = self.values.variables

    def get_params(self):
        return self.variables


def make_policy(meta_batch_size=M, **arguments):
    return MetaGaussianMLPPolicy(meta_batch_size, O, A, **{"hidden_sizes": (3,), **arguments})


def shapes_of(policy):
    return [tuple(variable.shape.as_list()) for variable in policy.get_params().values()]


def draw_samples(rng, lengths=LENGTHS):
    """Draws samples of one step as float32, from a policy with moderate likelihood ratios to other policies."""

    def normal(scale, *shape):
        return (scale * rng.normal(size=shape)).astype("f").astype(float)

    samples = []
    for n in lengths:
        mean, log_std = normal(0.3, n, A), normal(0.1, n, A)
        actions = (mean + np.exp(log_std) * normal(0.8, n, A)).astype("f").astype(float)
        paths = PATH_LENGTHS.get(n, (n,))
        samples.append({
            "observations": normal(1.0, n, O), "actions": actions, "advantages": normal(1.0, n),
            "adj_avg_rewards": normal(1.0, n), "agent_infos": {"mean": mean, "log_std": log_std},
            "path_lengths": np.array(paths), "adjusted_rewards": normal(1.0, n),
            "adjusted_rewards_after_end": normal(1.0, len(paths)),
        })
    return samples


def padded(samples, num_steps=T):
    """Returns the samples of a task like `DiceMetaSampleProcessor`: `[P, num_steps, ...]`, zero on padding."""
    mask = np.arange(num_steps) < samples["path_lengths"][:, None]

    def pad(values):
        array = np.zeros((*mask.shape, *values.shape[1:]))
        array[mask] = values
        return array

    flat = {key: pad(samples[key]) for key in ("observations", "actions", "advantages", "adjusted_rewards")}
    return {**flat, "mask": mask.astype(float), "path_lengths": samples["path_lengths"],
            "adjusted_rewards_after_end": samples["adjusted_rewards_after_end"],
            "agent_infos": {key: pad(values) for key, values in samples["agent_infos"].items()}}


def draw_data(num_inner_grad_steps=1, seed=0, lengths=LENGTHS):
    """Returns samples `[K + 1][M]`; their lengths differ between steps."""
    rng = np.random.default_rng(seed)
    return [draw_samples(rng, lengths[step:] + lengths[:step]) for step in range(num_inner_grad_steps + 1)]


def flat_task_params(policy):
    """Returns the parameters of each task as one float64 vector per task."""
    return [np.concatenate([v.ravel() for v in values.values()]).astype(float)
            for values in policy.policies_params_vals]


def collect(algo, seed=0):
    """Returns samples `[K + 1][M]` as in an iteration: the policies of each step draw the samples of that step."""
    policy, rng = algo.policy, np.random.default_rng((seed, 2))
    policy.switch_to_pre_update()
    data = draw_data(algo.num_inner_grad_steps, seed)
    for step, samples in enumerate(data):
        for theta, task in zip(flat_task_params(policy), samples):
            mean, log_std = gaussian(theta, shapes_of(policy), task["observations"])
            task["agent_infos"] = {"mean": mean, "log_std": np.broadcast_to(log_std, mean.shape)}
            task["actions"] = mean + np.exp(log_std) * rng.normal(size=mean.shape)
        if step < algo.num_inner_grad_steps:
            algo.adapt(samples)
    policy.switch_to_pre_update()
    return data


def update(algo, data):
    """Performs a meta-update; returns the logged row."""
    algo.optimize_policy(data)
    return logger.dumpkvs()


def set_theta(policy, seed=0):
    """Sets random parameters and returns them as a float64 vector."""
    size = len(policy.get_flat_params())
    policy.set_flat_params(0.3 * np.random.default_rng((seed, 1)).normal(size=size))
    return policy.get_flat_params().astype(float)


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def run(tensors):
    """Evaluates tensors without variables."""
    with tf.Session() as session:
        return session.run(tensors)
