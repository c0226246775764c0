"""Trains DDPG (arXiv:1509.02971): a deterministic policy, trained off-policy from a replay buffer.

    python experiments/ddpg.py                                                                    # pendulum swing-up
    python experiments/ddpg.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80  # go to a goal

docs/results/single_task.md contains the results. Training takes about 20 seconds on one core.
"""
import sys

from meta_policy_search.cli.train import make_main

ALGORITHM, PUBLISHED = "ddpg", {}

main = make_main(ALGORITHM, PUBLISHED, __file__, __doc__)

if __name__ == "__main__":
    sys.exit(main())
