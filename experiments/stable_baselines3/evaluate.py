"""Evaluates models of stable-baselines3 and a run of this library in the same tasks, and prints one table.

    python experiments/stable_baselines3/evaluate.py RUN_FOLDER --ppo data/sb3/ppo.zip --rl2 data/sb3/rl2.zip
"""
import argparse

import gymnasium
import numpy as np
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO

import meta_policy_search as mps
import meta_policy_search.envs.gymnasium  # registers the environments
from meta_policy_search.utils.fast_paths import replaces


class ModelActor(mps.Actor):
    """Acts with a model, which samples its actions; a recurrent model remembers the path."""

    def __init__(self, model):
        self._model, self._state = model, None

    def start_paths(self, is_starting):
        """Resets the recurrent state at the start of a path."""
        self._is_starting = is_starting.ravel()

    def act(self, observations, noise):
        """Returns actions `[M, R, A]` and no infos, for observations `[M, R, O]`."""
        rows = observations.reshape(-1, observations.shape[-1])
        actions, self._state = self._model.predict(rows, self._state, self._is_starting)
        self._is_starting = np.zeros(len(rows), bool)
        return actions.reshape(*observations.shape[:2], *actions.shape[1:]), {}


class Model(mps.MetaRLAlgorithm):
    """A model as a policy, and as an algorithm that does not change it in its adaptation steps."""

    def __init__(self, model):
        self.model, self.policy = model, self
        (self.obs_dim,), (self.action_dim,) = model.observation_space.shape, model.action_space.shape

    @replaces()
    def make_actor(self):
        """Returns an actor for one task."""
        return ModelActor(self.model)

    def with_meta_batch_size(self, meta_batch_size):
        """Returns the policies of several tasks."""
        return [self] * meta_batch_size

    def get_exploration_policy(self):
        """Returns the policy."""
        return self

    def adapt_policy(self, exploration_policy, exploration_trajectories):
        """Returns the same policy."""
        return self


def main(argv=None):
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", help="folder of a run in the same environment")
    parser.add_argument("--env", default="HalfCheetahRandDirec-v0", help="id without the prefix (default: %(default)s)")
    parser.add_argument("--ppo", metavar="FILE", help="model of ppo.py")
    parser.add_argument("--rl2", metavar="FILE", help="model of rl2.py")
    parser.add_argument("--num_tasks", type=int, default=40, help="number of tasks (default: %(default)s)")
    arguments = parser.parse_args(argv)
    # The models are loaded first: some builds of PyTorch end the process if TensorFlow is loaded before.
    ppo, rl2 = (path and cls.load(path, device="cpu", seed=1) for cls, path in (
        (PPO, arguments.ppo), (RecurrentPPO, arguments.rl2)))
    run, others = mps.load_evaluator(arguments.run_folder), []
    env = gymnasium.make(f"meta_policy_search/{arguments.env}").unwrapped.meta_env
    if ppo:
        others.append(mps.MetaEvaluator(Model(ppo), env, max_path_length=run.max_path_length, name="PPO"))
    if rl2:
        trials = mps.TrialEnv(env, max_path_length=run.max_path_length)
        others.append(mps.TrialEvaluator(Model(rl2), trials, name="RL2"))
    print(run.evaluate(arguments.num_tasks).table(*(other.evaluate(arguments.num_tasks) for other in others)))


if __name__ == "__main__":
    main()
