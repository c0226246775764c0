"""Helpers shared by the tests of samplers: environments, policies that differ between tasks."""
import sys
import threading

import cloudpickle
import gymnasium
import numpy as np

from meta_policy_search import NOP, EnvSpec, MetaParallelEnvExecutor, MetaSampler, MetaTabularMDPEnv
from meta_policy_search.actors.actor import NetworkActor
from meta_policy_search.envs.interface import BatchableMetaEnv, BatchedEnv, BatchedWorld, MetaEnv
from meta_policy_search.ops.networks import gaussian, gaussian_action
from meta_policy_search.types import BatchedStep
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.gym_import import gym

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # keeps workers from importing this file

M, P, T = 3, 4, 6  # tasks, paths per task, maximum path length


def algo_of(policy, max_path_length):
    """Returns an algorithm whose policy a `SingleTaskSampler` samples."""
    algo = NOP()
    algo.policy, algo.max_path_length = policy, max_path_length
    return algo


class BatchedWanderer(BatchedEnv):
    """`x' = x + a + noise`; ends at each step with probability 0.2; its info holds the age of the path."""

    end_probability = 0.2

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)

    def sample_tasks(self, n_tasks, rng):
        return list(rng.normal(size=n_tasks))

    def set_tasks(self, tasks):
        self.goals = np.array(tasks, float)
        self.states, self.ages = np.zeros((self.num_envs, 2)), np.zeros(self.num_envs, int)
        self.rngs = [None] * self.num_envs

    def get_tasks(self):
        return list(self.goals)

    def reset(self, env_ids, rngs):
        for e, rng in zip(env_ids, rngs):
            self.rngs[e], self.states[e], self.ages[e] = rng, rng.normal(size=2), 0
        return self.states[env_ids]

    def step(self, actions, env_ids=None):
        actions, ids = self._rows(actions, env_ids)
        self.states[ids] += actions + [self.rngs[e].normal(size=2) for e in ids]
        self.ages[ids] += 1
        over = np.array([self.rngs[e].random() < self.end_probability for e in ids])
        rewards = -np.abs(self.states[ids, 0] - self.goals[ids])
        return BatchedStep(self.states[ids], rewards, over, np.zeros(len(ids), bool), {"age": self.ages[ids].copy()})


class Wanderer(BatchableMetaEnv):
    batched_class = BatchedWanderer


def flagged(function):
    """Returns a `Wanderer` whose flags at the end of a step are the values of a function of them."""
    class Batched(BatchedWanderer):
        def step(self, actions, env_ids=None):
            answer = super().step(actions, env_ids)
            return answer._replace(terminated=function(answer.terminated), truncated=function(answer.truncated))

    class Env(Wanderer):
        batched_class = Batched

    return Env()


class Scripted(MetaEnv):
    """Observes `(task, step)` and behaves differently at the step whose number equals the task."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, fault=None, tasks=(9, 2, 9)):
        self.fault, self.tasks = fault, tasks

    def sample_tasks(self, n_tasks):
        return list(self.tasks[:n_tasks])

    def set_task(self, task):
        self.task = task

    def get_task(self):
        return self.task

    def observation(self):
        return np.array([self.task, self.step_number], float)

    def reset(self, *, seed=None, options=None):
        self.step_number = 0
        return (np.array([np.nan, 0.0]) if self.fault == "reset" and self.task == 2 else self.observation()), {}

    def step(self, action):
        observation, reward, info = self.observation(), 1.0, {}
        if self.step_number == self.task:
            if self.fault == "observation":
                observation = np.array([np.inf, 0.0])
            elif self.fault == "reward":
                reward = np.nan
            elif self.fault == "exception":
                raise OSError("no such place")
            elif self.fault == "shape":
                return np.zeros(3), reward, False, False, info
            elif self.fault == "info that cannot be sent":
                info = {"lock": threading.Lock()}
            elif self.fault == "info":
                info = {"late": self.step_number, "name": "found"}
        self.step_number += 1
        observation[1] += 1
        return observation, reward, False, False, info


class Drift(gymnasium.Env):
    """A plain Gymnasium environment with tasks and a position, but neither a scenery nor images."""

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    goal = np.zeros(2)

    def sample_tasks(self, n_tasks):
        return list(self.np_random.normal(size=(n_tasks, 2)))

    def set_task(self, task):
        self.goal = task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-0.1, 0.1, size=2)
        return self.position.copy(), {}

    def step(self, action):
        self.position = np.clip(self.position + 0.1 * action, -10.0, 10.0)
        return self.position.copy(), -float(np.sum((self.position - self.goal) ** 2)), False, False, {}


class BatchedEnding(BatchedWorld):
    max_threads = 2


class Ending(MetaTabularMDPEnv):
    """A process whose paths end in the last state and which supports several threads."""

    batched_class = BatchedEnding

    def _move(self, states, actions, ids, tasks, rngs):
        after, rewards, _ = super()._move(states, actions, ids, tasks, rngs)
        return after, rewards, after[:, 0] == self.num_states - 1


def make_policy(env, meta_batch_size=M, scale=0.3, **arguments):
    """Returns a policy that acts differently in each task."""
    from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy  # imports TensorFlow

    spec = EnvSpec.of(env)
    policy_class = MetaCategoricalMLPPolicy if spec.is_discrete else MetaGaussianMLPPolicy
    policy = policy_class(meta_batch_size, spec.obs_dim, spec.action_dim, **{"hidden_sizes": (4,), **arguments})
    rng = np.random.default_rng(0)
    policy.load_params(scale * rng.normal(size=(meta_batch_size, len(policy.get_flat_params()))))
    return policy


def sampler_of(env, policy=None, executor=None, **arguments):
    """Returns a sampler; `executor(env, meta_batch_size, envs_per_task, max_path_length)` creates its executor."""

    class Sampler(MetaSampler):
        def _make_executor(self):
            return executor(self.sampled_env, self.meta_batch_size, self.envs_per_task, self.max_path_length)

    policy = make_policy(env) if policy is None else policy
    cls = MetaSampler if executor is None else Sampler
    return cls(env, policy, **{"rollouts_per_meta_task": P, "meta_batch_size": M, "max_path_length": T, **arguments})


def paths_of(sampler):
    """Returns the paths of each task."""
    return list(sampler.obtain_samples().values())


def flat_paths(batch):
    return [path for paths in batch.values() for path in paths]


def two_iterations(sampler):
    """Returns the paths of two iterations with two adaptation steps each."""
    with sampler:
        return [sampler.obtain_samples() for _ in range(2) if sampler.update_tasks() is None for _ in range(2)]


def parallel(num_processes):
    return lambda *args: MetaParallelEnvExecutor(*args, num_processes=num_processes)


class EnvWithRareInfos(MetaEnv):
    """Paths of 1 to 5 steps: odd steps report a count, late steps a vector, and the last step an outcome."""

    observation_space = action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def sample_tasks(self, n_tasks):
        return [None] * n_tasks

    def set_task(self, task):
        pass

    def reset(self, *, seed=None, options=None):
        self.length, self.t = int(self.np_random.integers(1, 6)), 0
        return np.zeros(1), {}

    def step(self, action):
        self.t += 1
        is_last = self.t == self.length
        info = {"t": self.t}
        info.update({"odd": self.t} if self.t % 2 else {})
        info.update({"late": np.arange(2)} if self.t > 2 else {})
        info.update({"outcome": "done", "success": True} if is_last else {})
        return np.full(1, float(self.t)), 0.0, is_last, False, info


def standard_normal(xp, params, observations):
    return gaussian(xp, 0.0 * observations, params["log_std"])


class FixedPolicy:
    """A policy without TensorFlow that ignores the observation; `size` is the size of observations and actions."""

    def __init__(self, meta_batch_size=2, size=1):
        self.meta_batch_size, self.obs_dim, self.action_dim = meta_batch_size, size, size

    @replaces()
    def make_actor(self):
        log_std, size = np.zeros((self.meta_batch_size, self.obs_dim), np.float32), (self.obs_dim,)
        return NetworkActor(standard_normal, {"log_std": log_std}, gaussian_action, (("mean", size), ("log_std", size)),
                            noise_dim=1)
