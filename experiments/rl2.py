"""RL^2 (arXiv:1611.02779): trains a recurrent policy that adapts to a task within a trial of several episodes.

    python experiments/rl2.py                                                      # bandits: 10 pulls, 5 arms
    python experiments/rl2.py --episodes_per_trial 100 --n_itr 300                 # bandits: 100 pulls, 5 arms
    python experiments/rl2.py --env MetaTabularMDPEnv --episodes_per_trial 10 --max_path_length 10

`evaluate.py` prints the mean return of each episode of a trial, and of the whole trial.
"""
import sys
from dataclasses import dataclass

from meta_policy_search.cli.algorithms import RL2Config
from meta_policy_search.cli.training import make_main


@dataclass(frozen=True)
class Config(RL2Config):
    """Settings for bandits with 10 pulls and 5 arms."""

    env: str = "MetaBernoulliBanditEnv"
    n_itr: int = 100
    learning_rate: float = 3e-3
    episodes_per_trial: int = 10
    max_path_length: int = 1
    meta_batch_size: int = 250
    rollouts_per_meta_task: int = 10


main = make_main(Config, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
