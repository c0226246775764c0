"""ProMP (Proximal Meta-Policy Search, arXiv:1810.06784) in one file. Read it from top to bottom.

    python experiments/single_file/promp.py                      # 2D navigation
    python experiments/single_file/promp.py --env half_cheetah   # half cheetah, forward or backward

2D navigation takes 40 iterations. With seed 1, the test return is -40 before the gradient step and -11 after it.
The half cheetah takes 50 iterations.

The policy collects paths in a task, takes a gradient step on them, and collects paths again. ProMP trains the
parameters before the step (theta) so that the policy is good after it (theta'). An iteration:

1. Draw M tasks. Sample D_0, P paths of each task, with theta_0 = theta.
2. For k = 0, ..., K-1 and each task: theta_{k+1} = theta_k - alpha * gradient of the inner loss on D_k. Sample D_{k+1}
   with theta_{k+1}. The last parameters, theta_K, are theta'.
3. Take several Adam steps in theta. The objective is computed on D_K. Its gradient in theta goes through the K gradient
   steps, which use D_0, ..., D_{K-1}.

Numbered comments mark the decisions that matter most. docs/algorithms/promp.rst links them to the paper and to the
library. This file uses only the environments of the library. Any Gymnasium environment works that draws a task in
`reset()`, returns it as `info["task"]`, sets it by `reset(options={"task": task})`, observes a vector, has a bounded
box of actions and a time limit, and whose vectorized version accepts `reset_mask`.

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
    n_itr: int = 40  # iterations (meta-updates)
    meta_batch_size: int = 20  # M
    rollouts_per_meta_task: int = 10  # P
    normalization_scale: float = 1.0  # the policy's actions in [-scale, scale] are mapped linearly to the action box
    hidden_sizes: tuple = (64, 64)  # tanh units
    discount: float = 0.99
    gae_lambda: float = 0.95
    num_inner_grad_steps: int = 1  # K
    inner_lr: float = 0.5  # alpha
    learning_rate: float = 2e-3  # of Adam
    num_ppo_steps: int = 5  # Adam steps per iteration
    clip_eps: float = 0.3  # epsilon
    inner_kl_penalty: float = 5e-4  # eta, a constant here; part of the meta-objective


HALF_CHEETAH = Settings(env=IDS + "HalfCheetahRandDirec-v0", n_itr=50, rollouts_per_meta_task=5,
                        normalization_scale=10.0, inner_lr=0.2)


def initial_params(obs_size, action_size, s):
    """Draws the parameters theta: kernels (Glorot-uniform) and biases (zero) in turn, then the log std (zero)."""
    rng, params = np.random.default_rng(s.seed), []
    for fan_in, fan_out in zip((obs_size, *s.hidden_sizes), (*s.hidden_sizes, action_size)):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        params += [rng.uniform(-limit, limit, (fan_in, fan_out)), np.zeros(fan_out)]
    return [np.asarray(value, np.float32) for value in [*params, np.zeros(action_size)]]


def policy(params, observations, tanh):
    """Returns mean and log std `[M, any, A]` for observations `[M, any, O]` and parameters `[M, ...]` of each task.

    The same lines run in NumPy, to act, and in TensorFlow, to differentiate.
    """
    *layers, log_std = params
    x = observations
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1][:, None]
        x = tanh(x) if i + 2 < len(layers) else x
    # [1] The standard deviation is a parameter, independent of the observation; 0.0 * x repeats it for each row.
    return x, log_std[:, None] + 0.0 * x


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
    for m in range(len(mask)):  # [3] The baseline is fitted to the same samples: of each task, and of each D_k.
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


class ProMP:
    """The graph of ProMP, its session and its parameters."""

    def __init__(self, obs_size, action_size, s):
        self.settings, self.session = s, tf.Session()
        # All gradients must be computed before Adam changes any parameter: resource variables guarantee this.
        self.theta = [tf.Variable(value, use_resource=True) for value in initial_params(obs_size, action_size, s)]
        vectors = {"observations": obs_size, "actions": action_size, "mean": action_size, "log_std": action_size}
        self.data = [{**{key: tf.placeholder(tf.float32, [None, None, size]) for key, size in vectors.items()},
                      **{key: tf.placeholder(tf.float32, [None, None]) for key in ("advantages", "mask")}}
                     for _ in range(s.num_inner_grad_steps + 1)]  # D_0, ..., D_K
        # Each task starts with its own copy of theta. The gradient in theta sums the gradients in the copies.
        theta_k = [tf.broadcast_to(value, [s.meta_batch_size, *value.shape]) for value in self.theta]
        self.adapted, penalties = [theta_k], []
        for data in self.data[:-1]:
            ratio, kl, mean_of = self.compare(theta_k, data)
            # [6] The penalty keeps theta_k, the policy before step k, close to the policy that sampled D_k. It is in
            # the meta-objective, not in the inner loss. In the first Adam step it is zero. D_K has no penalty.
            penalties.append(s.inner_kl_penalty * tf.reduce_mean(mean_of(kl)))
            # J^LR (section 5) with the opposite sign. In the first Adam step all ratios are 1, and the gradient is that
            # of log pi. But the second derivative of the ratio contains the product of two gradients of log pi: the
            # effect of theta on the samples, which is missing in the second derivative of log pi.
            inner_loss = -mean_of(ratio * data["advantages"])  # [M]
            # The gradient of the sum contains the gradients of all tasks, because row m of each array acts in task m.
            # [7] Nothing is stopped here: the meta-gradient also differentiates these gradients.
            gradients = tf.gradients(tf.reduce_sum(inner_loss), theta_k)
            theta_k = [value - s.inner_lr * gradient for value, gradient in zip(theta_k, gradients)]
            self.adapted.append(theta_k)
        # J^CLIP (arXiv:1707.06347, Eq. 7) of theta' on D_K, which theta' sampled before the first Adam step.
        ratio, _, mean_of = self.compare(theta_k, self.data[-1])
        advantages = self.data[-1]["advantages"]
        clipped = tf.clip_by_value(ratio, 1.0 - s.clip_eps, 1.0 + s.clip_eps)
        # [8] Only the ratio of the adapted policies is clipped, never the ratio of the inner loss.
        surrogate_loss = -mean_of(tf.minimum(ratio * advantages, clipped * advantages))  # [M]
        # J^ProMP (Eq. 10) with the opposite sign.
        # [9] The mean over tasks, and the mean, not the sum, over the K penalties.
        self.loss = tf.reduce_mean(surrogate_loss) + (tf.add_n(penalties) / len(penalties) if penalties else 0.0)
        self.gradient = tf.gradients(self.loss, self.theta)  # the meta-gradient, through all K steps
        # [10] Adam moves theta, not alpha, and keeps its moments from one iteration to the next.
        self.adam_step = tf.train.AdamOptimizer(s.learning_rate).apply_gradients(zip(self.gradient, self.theta))
        self.session.run(tf.global_variables_initializer())

    @staticmethod
    def compare(params, data):
        """Compares policies with those that collected the data.

        Returns likelihood ratio and KL divergence of each sample, `[M, N]`, and the function that averages over the
        samples of each task, from `[M, N]` to `[M]`.
        """
        mean, log_std = policy(params, data["observations"], tf.tanh)
        old_mean, old_log_std = data["mean"], data["log_std"]

        def log_density(mean, log_std):
            z = (data["actions"] - mean) * tf.exp(-log_std)
            return tf.reduce_sum(-0.5 * z**2 - log_std - 0.5 * np.log(2.0 * np.pi), axis=-1)

        # [11] The distribution that sampled is constant. With its parameters the ratio is 1, but its gradient is not 0.
        ratio = tf.exp(log_density(mean, log_std) - log_density(old_mean, old_log_std))
        kl = tf.reduce_sum(0.5 * ((old_mean - mean) * tf.exp(-log_std))**2 + log_std - old_log_std
                           + 0.5 * tf.math.expm1(2.0 * (old_log_std - log_std)), axis=-1)  # KL(old || new), in nats
        # [12] The mean over the samples of a task: each step counts equally, so a longer path counts more.
        weights = data["mask"] / tf.reduce_sum(data["mask"], axis=1, keepdims=True)
        return ratio, kl, lambda values: tf.reduce_sum(weights * values, axis=1)

    def feed(self, datasets):
        """Returns the values of the placeholders for D_0, D_1, ...: arrays `[M, P, T, ...]` become `[M, N, ...]`."""
        return {placeholder: samples[key].reshape(self.settings.meta_batch_size, -1, *samples[key].shape[3:])
                for samples, data in zip(datasets, self.data) for key, placeholder in data.items()}

    def adapt(self, datasets):
        """Returns the parameters `[M, ...]` after one gradient step on each dataset."""
        return self.session.run(self.adapted[len(datasets)], self.feed(datasets))

    def update(self, datasets):
        """Performs a meta-update."""
        # [13] All Adam steps use the same samples and advantages. Each one recomputes theta' from the new theta.
        for _ in range(self.settings.num_ppo_steps):
            self.session.run(self.adam_step, self.feed(datasets))


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
    algo = ProMP(envs.single_observation_space.shape[0], envs.single_action_space.shape[0], s)
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
    parser = argparse.ArgumentParser(description="Trains ProMP.")
    parser.add_argument("--env", choices=["point", "half_cheetah"], default="point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", default="SMOKE" in os.environ, help="two tiny iterations")
    arguments = parser.parse_args()
    s = Settings() if arguments.env == "point" else HALF_CHEETAH
    small = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2} if arguments.smoke else {}
    train(dataclasses.replace(s, seed=arguments.seed, **small))


if __name__ == "__main__":
    main()
