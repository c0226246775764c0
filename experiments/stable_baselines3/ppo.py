"""PPO of stable-baselines3: one policy for all tasks of an environment of this library.

    python experiments/stable_baselines3/ppo.py --env HalfCheetahRandDirec-v0 --steps 1000000
"""
import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import meta_policy_search.envs.gymnasium  # registers the environments  # noqa: F401


def main(argv=None):
    """Trains and saves the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="HalfCheetahRandDirec-v0", help="id without the prefix (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="environment steps (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="data/sb3/ppo", help="file of the model (default: %(default)s)")
    arguments = parser.parse_args(argv)
    envs = make_vec_env(f"meta_policy_search/{arguments.env}", n_envs=8, seed=arguments.seed,
                        env_kwargs={"max_episode_steps": 100})
    model = PPO("MlpPolicy", envs, seed=arguments.seed, device="cpu", verbose=1)
    model.learn(arguments.steps).save(arguments.model)


if __name__ == "__main__":
    main()
