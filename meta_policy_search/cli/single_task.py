"""Algorithms that learn a single task: settings, environment, policy, runner and summary."""
from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional

import numpy as np

import meta_policy_search as mps
from meta_policy_search import baselines
from meta_policy_search.cli.settings import (
    NONLINEARITY_NAMES,
    RunConfig,
    arguments_for,
    check_count,
    check_from_0_to_1,
    setting,
)
from meta_policy_search.envs.compat import adapt_env
from meta_policy_search.np import exploration_policies
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_fraction, check_non_negative, check_positive, check_positive_int
from meta_policy_search.utils.statistics import mean_interval
from meta_policy_search.utils.utils import set_seed

NUM_FINAL_PATHS = 20


# Settings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(RunConfig):
    """The settings of all algorithms that learn a single task; raises the same errors as `RunConfig`."""

    env: str = setting("CartPole-v1", "a class of this library (one task, sampled with the seed) or a Gymnasium "
                       "environment")
    n_itr: int = setting(30, "number of epochs, with one logged row each", check=check_positive_int)
    snapshot_gap: int = setting(10, "epochs between snapshots in the modes gap and last_gap",
                                check=check_positive_int)
    plot_gap: int = setting(10, "epochs between updates of the learning curve; 0: only at the end",
                            check=check_count)
    max_path_length: int = setting(500, "maximum number of steps of a path", check=check_positive_int)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]", check=check_from_0_to_1)
    hidden_sizes: tuple[int, ...] = setting((), "units of each hidden layer of the policy; empty: linear policy",
                                            check=check_positive_int)
    hidden_nonlinearity: Optional[str] = setting("tanh", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "activation of the policy's output, or none", NONLINEARITY_NAMES)

    def find_env(self) -> str:
        """Returns the registered name of the environment, or the name of a Gymnasium environment unchanged."""
        if _is_of_gymnasium(self.env):
            return self.env
        try:
            return super().find_env()
        except ValueError as error:
            raise ValueError(f"{error}. Gymnasium has no environment of this name either") from error

    def build(self) -> "mps.LocalRunner":
        """Builds the algorithm and its runner."""
        raise NotImplementedError


@dataclass(frozen=True)
class SearchConfig(Config):
    """The settings of gradient-free searches over policy parameters."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "n_itr": 2, "n_samples": 20, "rollouts_per_candidate": 1, "max_path_length": 10, "hidden_sizes": ()}

    n_samples: int = setting(40, "candidates per epoch", check=check_positive_int)
    rollouts_per_candidate: int = setting(4, "paths per candidate", check=check_positive_int)
    baseline: str = setting("LinearFeatureBaseline", "class of the baseline; only its explained variance of the "
                            "discounted returns is logged", baselines.BASELINES)

    @property
    def batch_size(self) -> int:
        """Number of environment steps per candidate."""
        return self.rollouts_per_candidate * self.max_path_length


# Parts -----------------------------------------------------------------------------------------------------------


def build_parts(config: Config, scaled: bool = False) -> tuple[mps.MetaEnv, mps.EnvSpec, DeterministicMLPPolicy]:
    """Sets the seed, then builds environment and policy.

    Args:
        config: the settings.
        scaled: whether to normalize the action space to [-1, 1].

    Returns:
        The environment, its `EnvSpec` and the policy.

    Raises:
        ValueError: the environment is unknown.
    """
    set_seed(config.seed)
    env = mps.normalize(_make_env(config), normalization_scale=1.0) if scaled else _make_env(config)
    spec = mps.EnvSpec.of(env)
    policy = DeterministicMLPPolicy(**arguments_for(
        DeterministicMLPPolicy, config, obs_dim=spec.obs_dim, action_dim=spec.action_dim, is_discrete=spec.is_discrete))
    return env, spec, policy


def _is_of_gymnasium(name: str) -> bool:
    if name in mps.available_envs():
        return False
    import gymnasium  # only if needed

    return name in gymnasium.registry or "/" in name


def _make_env(config: Config) -> mps.MetaEnv:
    if not _is_of_gymnasium(config.env):
        env = mps.make_env(config.env, **config.env_kwargs)
        env.set_task(adapt_env(env).sample_tasks(1, seeding.rng_for(seeding.Stream.TASKS, 0))[0])
        return env
    import gymnasium

    try:
        return mps.SingleTaskEnv(gymnasium.make(config.env, disable_env_checker=True, **config.env_kwargs))
    except gymnasium.error.Error as error:
        raise ValueError(f"env: expected an environment that Gymnasium can create, got {config.env!r}: {error}"
                         ) from error


def build_runner(config: Config, env: mps.MetaEnv, algo: mps.RLAlgorithm) -> mps.LocalRunner:
    """Builds a runner and sets it up with algorithm and environment."""
    runner = mps.LocalRunner(progress_bar=config.progress_bar)
    runner.setup(algo, env, sampler_args={"parallel": config.parallel_option()})
    return runner


def build_search(config: SearchConfig, algo_class: type[mps.RLAlgorithm]) -> mps.LocalRunner:
    """Builds a search algorithm from settings with the names of its arguments, and its runner."""
    env, spec, policy = build_parts(config)
    algo = algo_class(**arguments_for(algo_class, config, env_spec=spec, policy=policy,
                                      baseline=vars(baselines)[config.baseline]()))
    return build_runner(config, env, algo)


def summarize_final_policy(runner: mps.LocalRunner, max_path_length: int) -> str:
    """Evaluates the final policy with new paths; returns a sentence about its undiscounted return."""
    if isinstance(runner.algo, mps.OffPolicyRLAlgorithm):  # other algorithms have no separate exploration policy
        paths = runner.obtain_evaluation_samples(runner.step_itr, NUM_FINAL_PATHS)
    else:
        paths = runner.obtain_samples(runner.step_itr, NUM_FINAL_PATHS * max_path_length)
    runner.sampler.close()
    mean, half_width = mean_interval(np.array([path["rewards"].sum() for path in paths]))
    return (f"Mean return of the final policy: {mean:.2f}, 95% interval {mean - half_width:.2f} to "
            f"{mean + half_width:.2f} ({NUM_FINAL_PATHS} new paths)")


@dataclass(frozen=True)
class CEMConfig(SearchConfig):
    """The cross-entropy method (CEM), a gradient-free search over policy parameters."""

    algorithm: ClassVar[str] = "cem"

    init_std: float = setting(1.0, "initial standard deviation of each parameter, around the policy's weights",
                              check=check_positive)
    best_frac: float = setting(0.2, "fraction of the candidates (the best) that the distribution is fitted to",
                               check=check_fraction)
    extra_std: float = setting(0.5, "initial additional standard deviation (added as variance), decays to 0",
                               check=check_non_negative)
    extra_decay_time: float = setting(400.0, "iterations (one per candidate) until extra_std has decayed to 0",
                                      check=check_positive)

    def build(self) -> "mps.LocalRunner":
        """Builds CEM and its runner."""
        return build_search(self, mps.CEM)


@dataclass(frozen=True)
class CMAESConfig(SearchConfig):
    """CMA-ES (arXiv:1604.00772), a gradient-free search that adapts a full covariance matrix."""

    algorithm: ClassVar[str] = "cma_es"

    sigma0: float = setting(1.0, "initial standard deviation of each parameter, around the policy's weights",
                            check=check_positive)

    def build(self) -> "mps.LocalRunner":
        """Builds CMA-ES and its runner."""
        return build_search(self, mps.CMAES)


@dataclass(frozen=True)
class DDPGConfig(Config):
    """DDPG (arXiv:1509.02971): a deterministic policy, trained off-policy from a replay buffer."""

    algorithm: ClassVar[str] = "ddpg"

    smoke: ClassVar[Mapping[str, Any]] = {
        "n_itr": 2, "steps_per_epoch": 2, "batch_size": 10, "max_path_length": 10, "n_train_steps": 2,
        "min_buffer_size": 10, "hidden_sizes": (8,)}

    env: str = setting("Pendulum-v1", "environment with continuous actions: a class of this library (one task, sampled "
                       "with the seed) or a Gymnasium environment")
    n_itr: int = setting(15, "number of epochs, with one logged row each", check=check_positive_int)
    max_path_length: int = setting(200, "maximum number of steps of a path", check=check_positive_int)
    discount: float = setting(0.98, "discount factor per step, in [0, 1]", check=check_from_0_to_1)
    hidden_sizes: tuple[int, ...] = setting((64, 64), "units of each hidden layer of policy and Q-function",
                                            check=check_positive_int)
    hidden_nonlinearity: Optional[str] = setting("relu", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting("tanh", "activation of the policy's output; actions are in [-1, 1]",
                                               NONLINEARITY_NAMES)
    steps_per_epoch: int = setting(5, "cycles per epoch; each cycle samples and then performs updates",
                                   check=check_positive_int)
    batch_size: int = setting(200, "environment steps per cycle, rounded up to complete paths",
                              check=check_positive_int)
    rollout_batch_size: int = setting(1, "environments that are stepped together", check=check_positive_int)
    n_train_steps: int = setting(200, "updates per cycle", check=check_positive_int)
    buffer_batch_size: int = setting(64, "transitions per update", check=check_positive_int)
    buffer_size: int = setting(100_000, "capacity of the replay buffer in transitions", check=check_positive_int)
    min_buffer_size: int = setting(1000, "transitions in the replay buffer before the first update",
                                   check=check_positive_int)
    use_target: bool = setting(True, "use target networks")
    target_update_tau: float = setting(0.01, "interpolation factor of the target networks per update",
                                       check=check_fraction)
    policy_lr: float = setting(1e-3, "Adam learning rate of the policy", check=check_positive)
    qf_lr: float = setting(1e-3, "Adam learning rate of the Q-function", check=check_positive)
    reward_scale: float = setting(1.0, "factor of the rewards in updates")
    smooth_return: bool = setting(True, "average the logged exploration return over 100 paths, not over the epoch")
    noise: str = setting("OrnsteinUhlenbeckPolicy", "class of the exploration policy",
                         ["GaussianNoisePolicy", "OrnsteinUhlenbeckPolicy"])
    sigma: float = setting(0.2, "scale of the exploration noise; actions are in [-1, 1]", check=check_non_negative)

    def build(self) -> "mps.LocalRunner":
        """Builds DDPG and its runner."""
        from meta_policy_search.np.q_functions import MLPQFunction

        env, spec, policy = build_parts(self, scaled=True)
        algo = mps.DDPG(
            env_spec=spec,
            policy=policy,
            qf=MLPQFunction(spec.obs_dim, spec.action_dim, self.hidden_sizes, self.hidden_nonlinearity),
            replay_buffer=mps.ReplayBuffer(spec, self.buffer_size),
            exploration_policy=vars(exploration_policies)[self.noise](spec, policy, sigma=self.sigma),
            **arguments_for(mps.DDPG, self),
        )
        return build_runner(self, env, algo)
