"""Compares CEM and CMA-ES with random search, at equal environment steps.

    python -m experiments.results.compare_searches

The script writes `search_comparison.csv` into the folder of this file: the mean return of the final policy in 100 new
paths, and the number of environment steps of the search. Random search samples candidates from the initial distribution
of CEM and CMA-ES. It stops when it has used as many environment steps as the longer of the two searches, and keeps the
candidate with the highest return. All searches use the same number of paths per candidate. If paths end early, random
search evaluates many more candidates than CEM and CMA-ES.
"""
import os
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple

import numpy as np

from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.envs import EnvSpec, MetaPointEnvMomentum
from meta_policy_search.envs.interface import Rngs, WorldMetaEnv
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.algos import CEM, CMAES
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.samplers import SingleTaskSampler
from meta_policy_search.types import Task
from meta_policy_search.utils import logger, seeding
from meta_policy_search.utils.files import write_csv
from meta_policy_search.utils.gym_import import gym
from meta_policy_search.utils.utils import set_seed

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN_SIZES = (8,)
CANDIDATES, PATHS = 40, 2  # candidates per epoch, paths per candidate
FINAL_PATHS = 100


class CartPole(WorldMetaEnv):
    """A pole on a cart with a continuous force of up to 10 N, and random initial states.

    The dynamics are as in Gymnasium's `CartPole-v1` (Barto, Sutton & Anderson 1983, "Neuronlike adaptive elements that
    can solve difficult learning control problems"): gravity 9.8 m/s^2, cart 1 kg, pole 0.1 kg and 1 m long, no
    friction, Euler steps of 0.02 s. The observation contains position (m), velocity (m/s), angle (rad) and angular
    velocity (rad/s). Initial position and angle are uniform in the inner half of their bounds; initial velocities are
    uniform in [-1, 1]. The reward is 1 per step. A path ends if the position exceeds 2.4 m or the angle 12 degrees. The
    only task is 0.
    """

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)  # in units of 10 N
    first_task = 0.0
    state_size = 4
    bounds = np.array([2.4, np.radians(12.0)])

    def _check_task(self, name: str, task: Task) -> np.ndarray:
        return np.asarray(task, np.float64)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        high = np.array([self.bounds[0] / 2.0, 1.0, self.bounds[1] / 2.0, 1.0])
        return rng.uniform(-high, high)

    def _move(self, states: np.ndarray, actions: np.ndarray, ids: np.ndarray, tasks: np.ndarray,
              rngs: Rngs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        _, velocity, angle, spin = states.T
        push = (10.0 * np.clip(actions[:, 0], -1.0, 1.0) + 0.05 * spin ** 2 * np.sin(angle)) / 1.1
        spin_up = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4.0 / 3.0 - 0.1 * np.cos(angle) ** 2 / 1.1))
        speed_up = push - 0.05 * spin_up * np.cos(angle) / 1.1
        after = states + 0.02 * np.stack([velocity, speed_up, spin, spin_up], axis=1)
        return after, np.ones(len(after)), (np.abs(after[:, [0, 2]]) > self.bounds).any(axis=1)


def make_momentum() -> MetaPointEnvMomentum:
    """Returns a point with inertia that has to brake at a goal two units away in each direction."""
    env = MetaPointEnvMomentum(reward_type="dense")
    env.set_task((-2.0, 2.0))
    return env


class Setting(NamedTuple):
    """The environment and the length of a search."""

    make_env: Callable[[], Any]
    max_path_length: int
    epochs: int


SETTINGS = {"momentum": Setting(make_momentum, 60, 20), "cart_pole": Setting(CartPole, 1000, 25)}
SEEDS = (1, 2, 3, 4, 5)


def main(path: str = os.path.join(HERE, "search_comparison.csv")) -> None:
    """Compares the searches and writes the CSV file."""
    logger.set_level(logger.DISABLED)
    rows: list[tuple] = [("setting", "seed", "algorithm", "return", "timesteps")]
    for name, setting in SETTINGS.items():
        for seed in SEEDS:
            for row in compare(setting, seed):
                rows.append((name, seed, *row))
                print(*rows[-1], flush=True)
    write_csv(path, rows)


def compare(setting: Setting, seed: int) -> list[tuple[str, float, int]]:
    """Returns for each algorithm: name, mean return of the final policy, and number of environment steps."""
    results: list[tuple[str, float, int]] = []
    for name in ("CEM", "CMA-ES", "random"):
        set_seed(seed)
        env = setting.make_env()
        spec = EnvSpec.of(env)
        policy = DeterministicMLPPolicy(spec.obs_dim, spec.action_dim, HIDDEN_SIZES,
                                        is_discrete=spec.is_discrete)
        common = (spec, policy, ZeroBaseline(), CANDIDATES)
        if name == "CEM":
            steps = _train(setting, env, CEM(*common, best_frac=0.2, max_path_length=setting.max_path_length,
                                             extra_decay_time=setting.epochs * CANDIDATES))
        elif name == "CMA-ES":
            steps = _train(setting, env, CMAES(*common, max_path_length=setting.max_path_length))
        else:
            steps = search_randomly(setting, env, policy, max(steps for _, _, steps in results))
        paths = _sampler(setting, env, policy).obtain_samples(10**6, FINAL_PATHS * setting.max_path_length)
        results.append((name, round(float(np.mean([path["rewards"].sum() for path in paths])), 2), steps))
    return results


def _train(setting: Setting, env: Any, algo: Any) -> int:
    runner = LocalRunner()
    runner.setup(algo, env)
    runner.train(setting.epochs, PATHS * setting.max_path_length)
    return runner.total_timesteps_sampled


def search_randomly(setting: Setting, env: Any, policy: DeterministicMLPPolicy, budget: int) -> int:
    """Sets the policy to the best random candidate; returns the number of environment steps (at least `budget`)."""
    sampler, rng = _sampler(setting, env, policy), seeding.next_rng(seeding.Stream.SEARCH)
    start, best, best_return, steps, itr = policy.get_flat_params(), None, -np.inf, 0, 0
    while steps < budget:
        candidates = start + rng.standard_normal((CANDIDATES, len(start)))
        population = sampler.obtain_population_samples(itr, PATHS * setting.max_path_length, candidates)
        itr += CANDIDATES
        for candidate, paths in zip(candidates, population, strict=True):
            steps += sum(len(path["rewards"]) for path in paths)
            mean_return = np.mean([path["rewards"].sum() for path in paths])
            if mean_return > best_return:
                best, best_return = candidate, mean_return
    policy.set_flat_params(best)
    return steps


def _sampler(setting: Setting, env: Any, policy: DeterministicMLPPolicy) -> SingleTaskSampler:
    return SingleTaskSampler(SimpleNamespace(policy=policy, max_path_length=setting.max_path_length), env)


if __name__ == "__main__":
    main()
