"""RL^2 (arXiv:1611.02779): trains a recurrent policy that adapts to a task within a trial of several episodes.

    python experiments/rl2.py                                                      # bandits: 10 pulls, 5 arms
    python experiments/rl2.py --episodes_per_trial 100 --n_itr 300                 # bandits: 100 pulls, 5 arms
    python experiments/rl2.py --env MetaTabularMDPEnv --episodes_per_trial 10 --max_path_length 10

`meta-policy-search evaluate RUN_FOLDER` prints the mean return of each episode of a trial, and of the whole trial.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM = "rl2"
# Bandits with 10 pulls and 5 arms.
PUBLISHED = {"env": "MetaBernoulliBanditEnv", "n_itr": 100, "learning_rate": 3e-3, "episodes_per_trial": 10,
             "max_path_length": 1, "meta_batch_size": 250, "rollouts_per_meta_task": 10}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
