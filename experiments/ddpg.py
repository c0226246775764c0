"""DDPG (arXiv:1509.02971): deterministic policy gradients, learnt from a memory of all transitions.

    python experiments/ddpg.py                                                        # swing up a pendulum
    python experiments/ddpg.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80  # to a goal

With each of the seeds 1 to 3, the pendulum is swung up within 5,000 steps and returns between -190 and -120 after
15,000, where random actions return about -1200. That takes 20 seconds on one core.
"""
import sys
from dataclasses import dataclass
from typing import Optional

import meta_policy_search as mps
from experiments import single_task
from experiments.command import make_main
from experiments.settings import NONLINEARITY_NAMES, arguments_for, setting


@dataclass(frozen=True)
class Config(single_task.Config):
    """The settings."""

    smoke = {"n_itr": 2, "steps_per_epoch": 2, "batch_size": 10, "max_path_length": 10, "n_train_steps": 2,
             "min_buffer_size": 10, "hidden_sizes": (8,)}

    env: str = setting("Pendulum-v1", "class of an environment of this library, in a task drawn for the seed, or name "
                       "of one of Gymnasium; of continuous actions")
    n_itr: int = setting(15, "epochs, of which each is a row")
    max_path_length: int = setting(200, "steps of a path, at most")
    discount: float = setting(0.98, "discount factor per step, in [0, 1]")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of policy and values")
    hidden_nonlinearity: Optional[str] = setting("relu", "of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting("tanh", "of the policy's output, as actions are in [-1, 1]",
                                               NONLINEARITY_NAMES)
    steps_per_epoch: int = setting(5, "cycles of an epoch, each of which samples and then learns")
    batch_size: int = setting(200, "environment steps per cycle, rounded up to whole paths")
    rollout_batch_size: int = setting(1, "environments that step together")
    n_train_steps: int = setting(200, "updates per cycle")
    buffer_batch_size: int = setting(64, "transitions of an update")
    buffer_size: int = setting(100_000, "transitions that are kept")
    min_buffer_size: int = setting(1000, "transitions before updates begin")
    use_target: bool = setting(True, "learn from the values of target networks")
    target_update_tau: float = setting(0.01, "share of the way that the targets go with each update")
    policy_lr: float = setting(1e-3, "step size of Adam for the policy")
    qf_lr: float = setting(1e-3, "step size of Adam for the values")
    reward_scale: float = setting(1.0, "factor of the rewards that are learnt from")
    smooth_return: bool = setting(True, "log the return while exploring over 100 paths, not over the epoch's")
    noise: str = setting("OrnsteinUhlenbeckPolicy", "class of the policy that explores",
                         ["GaussianNoisePolicy", "OrnsteinUhlenbeckPolicy"])
    sigma: float = setting(0.2, "size of its noise; actions are in [-1, 1]")


def build(config: Config) -> "mps.LocalRunner":
    """Builds DDPG and its runner."""
    from meta_policy_search.np.q_functions import MLPQFunction

    env, spec, policy = single_task.build_parts(config, scaled=True)
    algo = mps.DDPG(
        env_spec=spec,
        policy=policy,
        qf=MLPQFunction(spec.obs_dim, spec.action_dim, config.hidden_sizes, config.hidden_nonlinearity),
        replay_buffer=mps.ReplayBuffer(spec, config.buffer_size),
        exploration_policy=getattr(mps, config.noise)(spec, policy, sigma=config.sigma),
        **arguments_for(mps.DDPG, config),
    )
    return single_task.build_runner(config, env, algo)


main = make_main(Config, single_task.SingleTask)

if __name__ == "__main__":
    sys.exit(main())
