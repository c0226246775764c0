"""Trains DDPG (arXiv:1509.02971): a deterministic policy, trained off-policy from a replay buffer.

    python experiments/ddpg.py                                                                    # pendulum swing-up
    python experiments/ddpg.py --env MetaPointEnvNavigation --max_path_length 20 --batch_size 80  # go to a goal

Expected result for the pendulum with each of the seeds 1 to 3: the policy swings up the pendulum within 5,000
environment steps and returns between -190 and -120 after 15,000 steps (random actions return about -1200). Training
takes about 20 seconds on one core.
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
    """The settings of DDPG."""

    smoke = {"n_itr": 2, "steps_per_epoch": 2, "batch_size": 10, "max_path_length": 10, "n_train_steps": 2,
             "min_buffer_size": 10, "hidden_sizes": (8,)}

    env: str = setting("Pendulum-v1", "environment with continuous actions: a class of this library (one task, sampled "
                       "with the seed) or a Gymnasium environment")
    n_itr: int = setting(15, "number of epochs, with one logged row each")
    max_path_length: int = setting(200, "maximum number of steps of a path")
    discount: float = setting(0.98, "discount factor per step, in [0, 1]")
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of policy and Q-function")
    hidden_nonlinearity: Optional[str] = setting("relu", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting("tanh", "activation of the policy's output; actions are in [-1, 1]",
                                               NONLINEARITY_NAMES)
    steps_per_epoch: int = setting(5, "cycles per epoch; each cycle samples and then performs updates")
    batch_size: int = setting(200, "environment steps per cycle, rounded up to complete paths")
    rollout_batch_size: int = setting(1, "environments that are stepped together")
    n_train_steps: int = setting(200, "updates per cycle")
    buffer_batch_size: int = setting(64, "transitions per update")
    buffer_size: int = setting(100_000, "capacity of the replay buffer in transitions")
    min_buffer_size: int = setting(1000, "transitions in the replay buffer before the first update")
    use_target: bool = setting(True, "use target networks")
    target_update_tau: float = setting(0.01, "interpolation factor of the target networks per update")
    policy_lr: float = setting(1e-3, "Adam learning rate of the policy")
    qf_lr: float = setting(1e-3, "Adam learning rate of the Q-function")
    reward_scale: float = setting(1.0, "factor of the rewards in updates")
    smooth_return: bool = setting(True, "average the logged exploration return over 100 paths, not over the epoch")
    noise: str = setting("OrnsteinUhlenbeckPolicy", "class of the exploration policy",
                         ["GaussianNoisePolicy", "OrnsteinUhlenbeckPolicy"])
    sigma: float = setting(0.2, "scale of the exploration noise; actions are in [-1, 1]")


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
