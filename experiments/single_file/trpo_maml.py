"""MAML for reinforcement learning with TRPO (arXiv:1703.03400) in one file. Read it from top to bottom.

    python experiments/single_file/trpo_maml.py                  # 2D navigation
    python experiments/single_file/trpo_maml.py --env half_cheetah   # half cheetah, forward or backward

In 2D navigation, the return of iteration 10 is -18 after the gradient step (-44 before it). Training: 25 iterations.

The policy collects paths in a task, takes a gradient step on them, and collects paths again. MAML trains the
parameters before the step (theta) so that the policy is good after it (theta'). An iteration:

1. Draw M tasks. Sample P paths of each task with theta.
2. For each task, K times: take a gradient step on the last samples, and sample P paths. The result is theta'.
3. Take one step in theta, as far as a trust region of the adapted policies allows (TRPO, arXiv:1502.05477).

Numbered comments mark decisions that change results. docs/algorithms/trpo_maml.rst links them to the paper and to the
library. This file uses only the environments of the library. Any Gymnasium environment works that draws a task in
`reset()`, returns it as `info["task"]`, sets it by `reset(options={"task": task})`, and has a time limit and a box of
actions.

Axes: M tasks, P paths per task, T steps per path, N = P * T samples per task, O observation, A action.
"""
import argparse
import dataclasses
import os
import time

import gymnasium
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
IDS = "meta_policy_search.envs.gymnasium:meta_policy_search/"  # Gymnasium imports this module, which registers the ids


@dataclasses.dataclass
class Settings:
    """Settings, with the names of the library; the defaults are for 2D navigation."""

    env: str = IDS + "MetaPointNavigation-v0"
    seed: int = 1
    n_itr: int = 25  # iterations (meta-updates)
    meta_batch_size: int = 20  # M
    rollouts_per_meta_task: int = 10  # P
    normalization_scale: float = 1.0  # the policy's actions in [-scale, scale] are mapped linearly to the action box
    hidden_sizes: tuple = (64, 64)  # tanh units
    discount: float = 0.99
    gae_lambda: float = 0.95
    num_inner_grad_steps: int = 1  # K
    inner_lr: float = 0.5  # alpha
    step_size: float = 0.01  # delta, largest mean divergence of a meta-update, in nats
    cg_iters: int = 10  # iterations of conjugate gradients
    backtrack_ratio: float = 0.8  # of the lengths of successive trials of the line search
    max_backtracks: int = 15  # trials of the line search


HALF_CHEETAH = Settings(env=IDS + "HalfCheetahRandDirec-v0", n_itr=25, rollouts_per_meta_task=5,
                        normalization_scale=10.0, inner_lr=0.2)


def initial_params(obs_size, action_size, s):
    """Draws the parameters theta: kernels (Glorot-uniform) and biases (zero) in turn, then the log std (zero)."""
    rng, params = np.random.default_rng(s.seed), []
    for fan_in, fan_out in zip((obs_size, *s.hidden_sizes), (*s.hidden_sizes, action_size)):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        params += [rng.uniform(-limit, limit, (fan_in, fan_out)), np.zeros(fan_out)]
    return [np.asarray(value, np.float32) for value in [*params, np.zeros(action_size)]]


def policy(params, observations, tanh):
    """Returns mean and log std `[M, N, A]` for observations `[M, N, O]`; every task has its own parameters `[M, ...]`.

    The same lines run in NumPy, to act, and in TensorFlow, to differentiate.
    """
    *layers, log_std = params
    x = observations
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1][:, None]
        x = tanh(x) if i + 2 < len(layers) else x
    return x, log_std[:, None] + 0.0 * x  # [1] the standard deviation is a parameter, independent of the observation


def sample(envs, tasks, params, s, rng):
    """Samples P paths of each task with parameters `[M, ...]`; returns a dict of arrays `[M, P, T, ...]`.

    `mask` is True for the steps of the paths. Paths that have ended continue until all have ended, with weight 0.
    """
    num_tasks, num_paths, scale = len(tasks), s.rollouts_per_meta_task, s.normalization_scale
    low, high = envs.single_action_space.low, envs.single_action_space.high
    for m, task in enumerate(tasks):
        of_task = np.arange(num_tasks * num_paths) // num_paths == m
        observations, _ = envs.reset(options={"task": task, "reset_mask": of_task})  # returns those of all tasks
    steps, running = [], np.ones((num_tasks, num_paths), bool)
    while running.any():
        observations = observations.reshape(num_tasks, num_paths, -1)
        mean, log_std = policy(params, observations.astype(np.float32), np.tanh)
        actions = mean + np.exp(log_std) * rng.standard_normal(mean.shape, np.float32)
        # [2] The environment gets rescaled, clipped actions; the samples contain the actions that the policy drew.
        moves = np.clip(low + (actions + scale) * (high - low) / (2.0 * scale), low, high)
        step = {"observations": observations, "actions": actions, "mean": mean, "log_std": log_std, "mask": running}
        observations, rewards, terminated, truncated, _ = envs.step(moves.reshape(num_tasks * num_paths, -1))
        steps.append({**step, "rewards": rewards.reshape(num_tasks, num_paths)})
        running = running & ~(terminated | truncated).reshape(num_tasks, num_paths)
    return {key: np.stack([step[key] for step in steps], axis=2) for key in steps[0]}


def mean_return(samples):
    """Returns the mean over tasks and paths of the sum of rewards, not discounted."""
    return (samples["rewards"] * samples["mask"]).sum(axis=2).mean()


def discounted_sums(x, discount):
    """Returns y_t = x_t + discount * y_{t+1} along the last axis."""
    sums = np.array(x, np.float64)
    for t in range(sums.shape[-1] - 2, -1, -1):
        sums[..., t] += discount * sums[..., t + 1]
    return sums


def advantages_of(samples, s):
    """Returns the advantages `[M, P, T]`: GAE (arXiv:1506.02438) with a linear baseline."""
    mask, rewards = samples["mask"], samples["rewards"] * samples["mask"]
    returns = discounted_sums(rewards, s.discount)
    observations = np.clip(samples["observations"], -10.0, 10.0)
    t = np.broadcast_to(np.arange(mask.shape[2])[:, None] / 100.0, (*mask.shape, 1))
    features = np.concatenate([observations, observations**2, t, t**2, t**3, np.ones_like(t)], axis=-1)
    values, advantages = np.zeros_like(rewards), np.zeros_like(rewards)
    for m in range(len(mask)):  # [3] The baseline is fitted to each task, and anew to the samples of each step k.
        x, y = features[m][mask[m]], returns[m][mask[m]]
        weights = np.linalg.solve(x.T @ x + 1e-5 * np.eye(x.shape[1]), x.T @ y)
        values[m] = (features[m] @ weights) * mask[m]
    # [4] After the last step of a path, the value is zero, also if the time limit ended the path.
    deltas = rewards - values
    deltas[..., :-1] += s.discount * values[..., 1:]
    estimates = discounted_sums(deltas, s.discount * s.gae_lambda)
    for m in range(len(mask)):  # [5] Advantages have mean 0 and standard deviation 1 in each task, not over all tasks.
        valid = estimates[m][mask[m]]
        advantages[m] = (estimates[m] - valid.mean()) / (valid.std() + 1e-8)
    return advantages


def flat_gradient(loss, variables):
    """Returns the gradient of a scalar as one vector `[D]`."""
    return tf.concat([tf.reshape(gradient, [-1]) for gradient in tf.gradients(loss, variables)], axis=0)


class TRPOMAML:
    """The graph of TRPO-MAML, its session and its parameters."""

    def __init__(self, obs_size, action_size, s):
        self.settings, self.session = s, tf.Session()
        self.theta = [tf.Variable(value, use_resource=True) for value in initial_params(obs_size, action_size, s)]
        vectors = {"observations": obs_size, "actions": action_size, "mean": action_size, "log_std": action_size}
        self.data = [{**{key: tf.placeholder(tf.float32, [None, None, size]) for key, size in vectors.items()},
                      **{key: tf.placeholder(tf.float32, [None, None]) for key in ("advantages", "mask")}}
                     for _ in range(s.num_inner_grad_steps + 1)]  # D_0, ..., D_K
        # Each task starts with its own copy of theta. The gradient in theta is the sum over the copies.
        theta_k = [tf.broadcast_to(value, [s.meta_batch_size, *value.shape]) for value in self.theta]
        self.adapted = [theta_k]
        for data in self.data[:-1]:
            log_prob, _, _, mean_of = self.compare(theta_k, data)
            # [6] The inner loss has the log-density (Eq. 4). Its gradient is unbiased, its Hessian lacks terms.
            inner_loss = -mean_of(log_prob * data["advantages"])  # [M]
            # The gradient of the sum contains the gradients of all tasks, because row m of each array acts in task m.
            # [7] Nothing is stopped here: the meta-gradient also differentiates these gradients.
            gradients = tf.gradients(tf.reduce_sum(inner_loss), theta_k)
            theta_k = [value - s.inner_lr * gradient for value, gradient in zip(theta_k, gradients)]  # Eq. 1
            self.adapted.append(theta_k)
        _, ratio, kl, mean_of = self.compare(theta_k, self.data[-1])
        # [8] The outer loss has the likelihood ratio, not clipped: the line search compares its values.
        self.loss = tf.reduce_mean(-mean_of(ratio * self.data[-1]["advantages"]))  # mean over tasks
        # [9] The constraint is on the adapted policies: KL(pi_old, theta' || pi_theta'), mean over samples and tasks.
        self.kl = tf.reduce_mean(mean_of(kl))
        self.gradient = flat_gradient(self.loss, self.theta)  # the meta-gradient, through all K steps
        self.vector, self.flat = (tf.placeholder(tf.float32, self.gradient.shape) for _ in range(2))
        # F v, with F the Hessian of the divergence in theta: the gradient of (gradient of the divergence) . v
        self.product = flat_gradient(tf.reduce_sum(flat_gradient(self.kl, self.theta) * self.vector), self.theta)
        parts = tf.split(self.flat, [int(np.prod(value.shape)) for value in self.theta])
        self.assign = [value.assign(tf.reshape(part, value.shape)) for value, part in zip(self.theta, parts)]
        self.session.run(tf.global_variables_initializer())

    @staticmethod
    def compare(params, data):
        """Compares policies with those that collected the data.

        Returns log-density, likelihood ratio and KL divergence of each sample, `[M, N]`, and the mean over samples.
        """
        mean, log_std = policy(params, data["observations"], tf.tanh)
        old_mean, old_log_std = data["mean"], data["log_std"]

        def log_density(mean, log_std):
            z = (data["actions"] - mean) * tf.exp(-log_std)
            return tf.reduce_sum(-0.5 * z**2 - log_std - 0.5 * np.log(2.0 * np.pi), axis=-1)

        # [10] The sampling policy is data. At the sampling parameters the ratio is 1, with a gradient that is not 0.
        ratio = tf.exp(log_density(mean, log_std) - log_density(old_mean, old_log_std))
        kl = tf.reduce_sum(0.5 * ((old_mean - mean) * tf.exp(-log_std))**2 + log_std - old_log_std
                           + 0.5 * tf.math.expm1(2.0 * (old_log_std - log_std)), axis=-1)  # KL(old || new), in nats
        # [11] The mean over the samples of a task: each step counts equally, so a longer path counts more.
        weights = data["mask"] / tf.reduce_sum(data["mask"], axis=1, keepdims=True)
        return log_density(mean, log_std), ratio, kl, lambda values: tf.reduce_sum(weights * values, axis=1)

    def feed(self, datasets):
        """Returns the values of the placeholders for D_0, D_1, ...: arrays `[M, P, T, ...]` become `[M, N, ...]`."""
        return {placeholder: samples[key].reshape(self.settings.meta_batch_size, -1, *samples[key].shape[3:])
                for samples, data in zip(datasets, self.data) for key, placeholder in data.items()}

    def adapt(self, datasets):
        """Returns the parameters `[M, ...]` after one gradient step on each dataset."""
        return self.session.run(self.adapted[len(datasets)], self.feed(datasets))

    def update(self, datasets):
        """Performs a meta-update; returns the fraction of the full step that the line search accepted."""
        s, feed = self.settings, self.feed(datasets)
        theta = np.concatenate([value.ravel() for value in self.session.run(self.theta)])
        loss_before, gradient = self.session.run([self.loss, self.gradient], feed)

        def product(v):
            return self.session.run(self.product, {**feed, self.vector: v}).astype(np.float64)

        x, image = conjugate_gradients(product, gradient.astype(np.float64), s.cg_iters)  # x = F^-1 gradient, F x
        step = x * np.sqrt(2.0 * s.step_size / (x @ image))  # 1/2 step' F step = delta
        for trial in range(s.max_backtracks):  # [12] The first step that lowers the loss within the trust region
            fraction = s.backtrack_ratio**trial
            self.session.run(self.assign, {self.flat: theta - fraction * step})
            loss, kl = self.session.run([self.loss, self.kl], feed)
            if loss < loss_before and kl <= s.step_size:
                return fraction
        self.session.run(self.assign, {self.flat: theta})
        return 0.0


def conjugate_gradients(product, b, iterations):
    """Solves H x = b approximately, given the function v -> H v; returns x and H x."""
    x, residual, direction, squared = np.zeros_like(b), b.copy(), b.copy(), b @ b
    tolerance = 1e-10 * squared
    for _ in range(iterations):
        if squared <= tolerance:
            break
        image = product(direction)
        alpha = squared / (direction @ image)
        x, residual = x + alpha * direction, residual - alpha * image
        last, squared = squared, residual @ residual
        direction = residual + squared / last * direction
    return x, b - residual


def sample_and_adapt(algo, envs, task_env, rng):
    """Draws M tasks with `task_env`; returns D_0, ..., D_K."""
    s = algo.settings
    tasks, datasets = [task_env.reset()[1]["task"] for _ in range(s.meta_batch_size)], []
    for _ in range(s.num_inner_grad_steps + 1):
        samples = sample(envs, tasks, algo.adapt(datasets), s, rng)
        datasets.append({**samples, "advantages": advantages_of(samples, s)})
    return datasets


def plot(curve, height=12):
    """Prints the returns `[n_itr, K + 1]`: `.` before adaptation, `*` after the last gradient step."""
    low, high = np.min(curve), np.max(curve) + 1e-8
    rows = np.round((np.asarray(curve) - low) / (high - low) * (height - 1))[:, [0, -1]]
    for row in reversed(range(height)):
        marks = ("*" if last == row else "." if first == row else " " for first, last in rows)
        print(f"{low + row * (high - low) / (height - 1):9.1f} |{''.join(marks)}")


def train(s):
    """Trains a policy and tests it in newly drawn tasks; returns the returns of the test and of each iteration."""
    rng, started, curve = np.random.default_rng(s.seed), time.time(), []
    task_env, envs = gymnasium.make(s.env), gymnasium.make_vec(s.env, s.meta_batch_size * s.rollouts_per_meta_task)
    task_env.reset(seed=s.seed)
    envs.reset(seed=s.seed)
    algo = TRPOMAML(envs.single_observation_space.shape[0], envs.single_action_space.shape[0], s)
    for itr in range(s.n_itr):
        datasets = sample_and_adapt(algo, envs, task_env, rng)
        algo.update(datasets)
        curve.append([mean_return(samples) for samples in datasets])
        print(f"{itr:4d}   returns " + "  ".join(f"{value:8.1f}" for value in curve[-1])
              + f"   {time.time() - started:5.0f} s", flush=True)
    plot(curve)
    tests = [sample_and_adapt(algo, envs, task_env, rng) for _ in range(2)]
    result = [np.mean([mean_return(datasets[k]) for datasets in tests]) for k in range(s.num_inner_grad_steps + 1)]
    print(f"{2 * s.meta_batch_size} test tasks: returns after 0, 1, ... gradient steps: "
          + ", ".join(f"{value:.1f}" for value in result))
    return result, curve


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Trains TRPO-MAML.")
    parser.add_argument("--env", choices=["point", "half_cheetah"], default="point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", default="SMOKE" in os.environ, help="two tiny iterations")
    arguments = parser.parse_args()
    s = Settings() if arguments.env == "point" else HALF_CHEETAH
    small = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2} if arguments.smoke else {}
    train(dataclasses.replace(s, seed=arguments.seed, **small))


if __name__ == "__main__":
    main()
