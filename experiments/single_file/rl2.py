"""RL^2 (arXiv:1611.02779) in one file, with PPO (arXiv:1707.06347). Read it from top to bottom.

    python experiments/single_file/rl2.py                      # 2D navigation
    python experiments/single_file/rl2.py --env half_cheetah   # half cheetah, forward or backward

Training takes 40 iterations in 2D navigation and 30 iterations on the half cheetah.

A trial consists of several episodes of one task. A recurrent policy observes its last action and reward and keeps its
state over the episodes of a trial. It is trained for the return of the whole trial. So it learns to find out the task
and to act accordingly; there are no gradient steps at test time. An iteration:

1. Draw M tasks. Sample P trials of E episodes in each task.
2. Estimate advantages along whole trials, with the value head of the policy as baseline.
3. Take Adam steps along the gradient of the PPO loss, through all steps of a trial.

Numbered comments mark decisions that change results. docs/algorithms/rl2.rst links them to the paper and to the
library. This file uses only the environments of the library. Any Gymnasium environment works that draws a task in
`reset()`, returns it as `info["task"]`, sets it by `reset(options={"task": task})`, and has a time limit and a box of
actions.

Axes: B = M * P trials, T steps per trial, I input of the policy, H recurrent state, A action.
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
    episodes_per_trial: int = 2  # E
    normalization_scale: float = 1.0  # the policy's actions in [-scale, scale] are mapped linearly to the action box
    hidden_size: int = 64  # H
    discount: float = 0.99
    gae_lambda: float = 0.95
    learning_rate: float = 3e-3  # of Adam
    num_ppo_steps: int = 4  # passes over the trials per iteration
    num_minibatches: int = 4  # Adam steps per pass
    clip_eps: float = 0.2
    value_coef: float = 0.5


HALF_CHEETAH = Settings(env=IDS + "HalfCheetahRandDirec-v0", n_itr=30, rollouts_per_meta_task=5,
                        normalization_scale=10.0)


def initial_params(input_size, action_size, s):
    """Draws the parameters of the recurrent layer, of the action head and of the value head, and the log std."""
    rng, size = np.random.default_rng(s.seed), s.hidden_size

    def glorot(fan_in, fan_out):
        limit = np.sqrt(6.0 / (fan_in + fan_out))
        return rng.uniform(-limit, limit, (fan_in, fan_out))

    input_kernel = np.concatenate([glorot(input_size, size) for _ in range(3)], axis=1)
    state_kernel = np.concatenate([np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(3)], axis=1)
    bias = np.repeat([0.0, 1.0, 0.0], size)  # [1] The bias of the update gate is 1: at first, states change slowly.
    heads = [0.01 * glorot(size, action_size), np.zeros(action_size), 0.01 * glorot(size, 1), np.zeros(1)]
    return [np.asarray(x, np.float32) for x in (input_kernel, state_kernel, bias, *heads, np.zeros(action_size))]


def gru(params, inputs, state, tanh):
    """Returns the next state `[B, H]` of a gated recurrent unit; runs in NumPy, to act, and in TensorFlow, to train."""
    input_kernel, state_kernel, bias = params[:3]
    size = int(state_kernel.shape[0])
    of_inputs, of_state = inputs @ input_kernel + bias, state @ state_kernel
    gates = 0.5 * tanh(0.5 * (of_inputs[:, :2 * size] + of_state[:, :2 * size])) + 0.5  # logistic function
    reset, update = gates[:, :size], gates[:, size:]
    candidate = tanh(of_inputs[:, 2 * size:] + reset * of_state[:, 2 * size:])  # [2] reset after the matrix product
    return update * state + (1.0 - update) * candidate


def heads(params, states):
    """Returns mean and log std of the action, each `[..., A]`, and the value `[...]`, for states `[..., H]`."""
    action_kernel, action_bias, value_kernel, value_bias, log_std = params[3:]
    mean = states @ action_kernel + action_bias  # [3] Policy and value function share the recurrent layer.
    return mean, log_std + 0.0 * mean, (states @ value_kernel + value_bias)[..., 0]


def sample(envs, tasks, params, s, rng):
    """Samples P trials of each task; returns a dict of arrays `[B, T, ...]`.

    `mask` is True for the steps of the trials. The steps after the end of a trial exist, but are never used.
    """
    low, high, scale = envs.single_action_space.low, envs.single_action_space.high, s.normalization_scale
    task_of = np.arange(envs.num_envs) // s.rollouts_per_meta_task

    def restart(ended):
        for m in np.unique(task_of[ended]):
            observations, _ = envs.reset(options={"task": tasks[m], "reset_mask": ended & (task_of == m)})
        return observations

    running, episode, steps = np.ones(envs.num_envs, bool), np.zeros(envs.num_envs, int), []
    observations, state = restart(running), np.zeros((envs.num_envs, s.hidden_size), np.float32)
    added = np.zeros((envs.num_envs, len(low) + 2))  # [4] At the first step of a trial, the added inputs are zero.
    while running.any():
        inputs = np.concatenate([observations, added], axis=1)
        state = gru(params, inputs.astype(np.float32), state, np.tanh)  # [5] kept when an episode of the trial ends
        mean, log_std, value = heads(params, state)
        actions = mean + np.exp(log_std) * rng.standard_normal(mean.shape, np.float32)
        # The environment gets rescaled, clipped actions; the samples contain the actions that the policy drew.
        moves = np.clip(low + (actions + scale) * (high - low) / (2.0 * scale), low, high)
        observations, rewards, terminated, truncated, _ = envs.step(moves)
        steps.append({"inputs": inputs, "actions": actions, "mean": mean, "log_std": log_std, "value": value,
                      "rewards": rewards, "episode": episode, "mask": running})
        ended = terminated | truncated  # [6] A time limit ends an episode, too. The policy observes the end.
        added = np.concatenate([actions, rewards[:, None], ended[:, None]], axis=1)
        episode = episode + ended
        running = running & (episode < s.episodes_per_trial)
        if ended.any():
            observations = restart(ended)  # the next episode, in the same task
    return {key: np.stack([step[key] for step in steps], axis=1) for key in steps[0]}


def episode_returns(samples, s):
    """Returns the mean return of each episode of a trial, not discounted."""
    rewards = samples["rewards"] * samples["mask"]
    return [(rewards * (samples["episode"] == e)).sum(axis=1).mean() for e in range(s.episodes_per_trial)]


def discounted_sums(x, discount):
    """Returns y_t = x_t + discount * y_{t+1} along the last axis."""
    sums = np.array(x, np.float64)
    for t in range(sums.shape[-1] - 2, -1, -1):
        sums[..., t] += discount * sums[..., t + 1]
    return sums


def process(samples, s):
    """Adds advantages, value targets and weights, `[B, T]`, to samples."""
    mask, rewards = samples["mask"], samples["rewards"] * samples["mask"]
    returns = discounted_sums(rewards, s.discount)  # [7] of the whole trial, also across the ends of episodes
    # [8] The value head predicts standardized returns: minus the mean at this step over all trials of all tasks,
    # divided by one standard deviation for all steps. Its targets are returns, not estimates with the value head.
    mean = (returns * mask).sum(axis=0) / mask.sum(axis=0)
    std = np.sqrt(np.mean((returns - mean)[mask]**2))
    values = (mean + std * samples["value"].astype(np.float64)) * mask
    deltas = rewards - values
    deltas[:, :-1] += s.discount * values[:, 1:]
    estimates = discounted_sums(deltas, s.discount * s.gae_lambda)  # GAE (arXiv:1506.02438)
    valid = estimates[mask]
    # [9] Advantages have mean 0 and standard deviation 1 over all tasks: the policy does not know the task.
    advantages = (estimates - valid.mean()) / (valid.std() + 1e-8)
    # [10] All steps of all trials have the same weight, so longer trials count more. The mean over trials is 1.
    weights = mask * (len(mask) / mask.sum())
    return {**samples, "advantages": advantages, "targets": (returns - mean) / std, "weights": weights}


class RL2:
    """The graph of RL^2, its session and its parameters."""

    def __init__(self, input_size, action_size, s):
        self.settings, self.session = s, tf.Session()
        # An Adam step reads all of a resource variable before it changes it; other variables would be a race.
        self.theta = [tf.Variable(value, use_resource=True) for value in initial_params(input_size, action_size, s)]
        vectors = {"inputs": input_size, "actions": action_size, "mean": action_size, "log_std": action_size}
        data = {**{key: tf.placeholder(tf.float32, [None, None, size]) for key, size in vectors.items()},
                **{key: tf.placeholder(tf.float32, [None, None]) for key in ("advantages", "targets", "weights")}}
        self.data = data
        # [11] The states are recomputed from the start of the trial. The gradient passes through all its steps.
        start = tf.zeros([tf.shape(data["inputs"])[0], s.hidden_size])
        states = tf.scan(lambda state, inputs: gru(self.theta, inputs, state, tf.tanh),
                         tf.transpose(data["inputs"], [1, 0, 2]), start)
        mean, log_std, value = heads(self.theta, tf.transpose(states, [1, 0, 2]))

        def log_density(mean, log_std):
            z = (data["actions"] - mean) * tf.exp(-log_std)
            return tf.reduce_sum(-0.5 * z**2 - log_std - 0.5 * np.log(2.0 * np.pi), axis=-1)

        # [12] The ratio of one action, given the trial so far; not the ratio of the whole trial.
        ratio = tf.exp(log_density(mean, log_std) - log_density(data["mean"], data["log_std"]))
        clipped = tf.clip_by_value(ratio, 1.0 - s.clip_eps, 1.0 + s.clip_eps)
        surrogate = -tf.minimum(ratio * data["advantages"], clipped * data["advantages"])  # PPO, Eq. 7
        value_loss = 0.5 * (value - data["targets"])**2  # [13] not clipped
        losses = surrogate + s.value_coef * value_loss
        self.loss = tf.reduce_mean(tf.reduce_sum(data["weights"] * losses, axis=1))  # mean over trials
        self.gradient = tf.gradients(self.loss, self.theta)
        self.adam_step = tf.train.AdamOptimizer(s.learning_rate).apply_gradients(zip(self.gradient, self.theta))
        self.session.run(tf.global_variables_initializer())

    def feed(self, samples, trials):
        """Returns the values of the placeholders for some of the trials."""
        return {ph: samples[key][trials] for key, ph in self.data.items()}

    def update(self, samples, rng):
        """Performs a meta-update: several passes over the trials, with Adam steps on minibatches of whole trials."""
        for _ in range(self.settings.num_ppo_steps):
            for trials in np.array_split(rng.permutation(len(samples["mask"])), self.settings.num_minibatches):
                self.session.run(self.adam_step, self.feed(samples, trials))


def sample_trials(algo, envs, task_env, rng):
    """Draws M tasks; returns the samples of P trials in each."""
    tasks = [task_env.reset()[1]["task"] for _ in range(algo.settings.meta_batch_size)]
    return sample(envs, tasks, algo.session.run(algo.theta), algo.settings, rng)


def plot(curve, height=12):
    """Prints the returns `[n_itr, E]`: `.` in the first episode of a trial, `*` in the last."""
    low, high = np.min(curve), np.max(curve) + 1e-8
    rows = np.round((np.asarray(curve) - low) / (high - low) * (height - 1))[:, [0, -1]]
    for row in reversed(range(height)):
        marks = ("*" if last == row else "." if first == row else " " for first, last in rows)
        print(f"{low + row * (high - low) / (height - 1):9.1f} |{''.join(marks)}")


def train(s):
    """Trains a policy and tests it in new tasks; returns the test returns of the episodes, and the training curve."""
    rng, started, curve = np.random.default_rng(s.seed), time.time(), []
    task_env, envs = gymnasium.make(s.env), gymnasium.make_vec(s.env, s.meta_batch_size * s.rollouts_per_meta_task)
    task_env.reset(seed=s.seed)
    envs.reset(seed=s.seed)
    num_actions = envs.single_action_space.shape[0]
    algo = RL2(envs.single_observation_space.shape[0] + num_actions + 2, num_actions, s)
    for itr in range(s.n_itr):
        samples = sample_trials(algo, envs, task_env, rng)
        algo.update(process(samples, s), rng)
        curve.append(episode_returns(samples, s))
        print(f"{itr:4d}   returns " + "  ".join(f"{value:8.1f}" for value in curve[-1])
              + f"   {time.time() - started:5.0f} s", flush=True)
    plot(curve)
    tests = [episode_returns(sample_trials(algo, envs, task_env, rng), s) for _ in range(2)]
    result = np.mean(tests, axis=0)
    print(f"{2 * s.meta_batch_size} test tasks: returns of the episodes of a trial: "
          + ", ".join(f"{value:.1f}" for value in result))
    return result, curve


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Trains RL^2.")
    parser.add_argument("--env", choices=["point", "half_cheetah"], default="point")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", default="SMOKE" in os.environ, help="two tiny iterations")
    arguments = parser.parse_args()
    s = Settings() if arguments.env == "point" else HALF_CHEETAH
    small = {"n_itr": 2, "meta_batch_size": 2, "rollouts_per_meta_task": 2} if arguments.smoke else {}
    train(dataclasses.replace(s, seed=arguments.seed, **small))


if __name__ == "__main__":
    main()
