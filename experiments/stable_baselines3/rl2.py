"""RL^2 with RecurrentPPO of sb3-contrib: a recurrent policy that acts in trials of two episodes of one task.

    python experiments/stable_baselines3/rl2.py --env HalfCheetahRandDirec-v0 --steps 1000000
"""
import argparse

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env

from meta_policy_search.envs.gymnasium import TrialWrapper


def main(argv=None):
    """Trains and saves the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="HalfCheetahRandDirec-v0", help="id without the prefix (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="environment steps (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="data/sb3/rl2", help="file of the model (default: %(default)s)")
    arguments = parser.parse_args(argv)
    envs = make_vec_env(f"meta_policy_search/{arguments.env}", n_envs=8, seed=arguments.seed,
                        env_kwargs={"max_episode_steps": 100}, wrapper_class=TrialWrapper)
    model = RecurrentPPO("MlpLstmPolicy", envs, n_steps=800, batch_size=1600, seed=arguments.seed, device="cpu",
                         verbose=1, policy_kwargs={"lstm_hidden_size": 64})
    model.learn(arguments.steps).save(arguments.model)


if __name__ == "__main__":
    main()
