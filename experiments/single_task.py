"""Shared code of the single-task scripts: settings, environment, policy, runner and summary."""
from dataclasses import dataclass
from typing import Any, Optional

import meta_policy_search as mps
from experiments import command
from experiments.settings import BASELINES, NONLINEARITY_NAMES, RunConfig, arguments_for, setting
from meta_policy_search.envs.gym_compat import sample_tasks
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.plotting import plot_returns
from meta_policy_search.utils import seeding
from meta_policy_search.utils.snapshotter import load_snapshot
from meta_policy_search.utils.statistics import mean_interval
from meta_policy_search.utils.utils import set_seed

NUM_FINAL_PATHS = 20


# Settings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(RunConfig):
    """The settings of all single-task scripts; raises the same errors as `RunConfig`."""

    env: str = setting("CartPole-v1", "a class of this library (one task, sampled with the seed) or a Gymnasium "
                       "environment")
    n_itr: int = setting(30, "number of epochs, with one logged row each")
    snapshot_gap: int = setting(10, "epochs between snapshots in the modes gap and last_gap")
    plot_gap: int = setting(10, "epochs between updates of the learning curve; 0: only at the end")
    max_path_length: int = setting(500, "maximum number of steps of a path")
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    hidden_sizes: tuple[int, ...] = setting((), "units of each hidden layer of the policy; empty: linear policy")
    hidden_nonlinearity: Optional[str] = setting("tanh", "activation of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "activation of the policy's output, or none", NONLINEARITY_NAMES)


@dataclass(frozen=True)
class SearchConfig(Config):
    """The settings of gradient-free searches over policy parameters."""

    smoke = {"n_itr": 2, "n_samples": 20, "rollouts_per_candidate": 1, "max_path_length": 10, "hidden_sizes": ()}

    n_samples: int = setting(40, "candidates per epoch")
    rollouts_per_candidate: int = setting(4, "paths per candidate")
    baseline: str = setting("LinearFeatureBaseline", "class of the baseline; only its explained variance of the "
                            "discounted returns is logged", BASELINES)

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


def _make_env(config: Config) -> mps.MetaEnv:
    if config.env in mps.available_envs():
        env = mps.make_env(config.env, **config.env_kwargs)
        env.set_task(sample_tasks(env, 1, seeding.rng_for(seeding.Stream.TASKS, 0))[0])
        return env
    import gymnasium

    try:
        return mps.SingleTaskEnv(gymnasium.make(config.env, disable_env_checker=True, **config.env_kwargs))
    except gymnasium.error.Error as error:
        raise ValueError(f"env: expected one of {', '.join(mps.available_envs())}, or a Gymnasium environment, "
                         f"got {config.env!r}: {error}") from error


def build_runner(config: Config, env: mps.MetaEnv, algo: mps.RLAlgorithm) -> mps.LocalRunner:
    """Builds a runner and sets it up with algorithm and environment."""
    runner = mps.LocalRunner(progress_bar=config.progress_bar)
    runner.setup(algo, env, sampler_args={"parallel": config.parallel_option()})
    return runner


def build_search(config: SearchConfig, algo_class: type[mps.RLAlgorithm]) -> mps.LocalRunner:
    """Builds a search algorithm from settings with the names of its arguments, and its runner."""
    env, spec, policy = build_parts(config)
    algo = algo_class(**arguments_for(algo_class, config, env_spec=spec, policy=policy,
                                      baseline=getattr(mps, config.baseline)()))
    return build_runner(config, env, algo)


# The command -----------------------------------------------------------------------------------------------------


class SingleTask(command.Experiment):
    """A single-task script, which trains with a `LocalRunner`."""

    def load(self, folder: str) -> dict[str, Any]:
        """Loads the last snapshot of a run folder."""
        return load_snapshot(folder)

    def restore(self, trainer: mps.LocalRunner, snapshot: dict[str, Any], config: Config) -> None:
        """Restores a snapshot; parallel sampling follows `config`, not the snapshot."""
        state = snapshot["state"]
        state = {**state, "sampler_args": {**state["sampler_args"], "parallel": config.parallel_option()}}
        trainer.restore_snapshot({**snapshot, "state": state})

    def train(self, trainer: mps.LocalRunner, config: Config) -> None:
        """Trains until the final iteration; resumes a restored run."""
        if trainer.epoch:
            trainer.resume(config.n_itr)
        else:
            trainer.train(config.n_itr, config.batch_size)

    def draw(self, folder: str, config: Config) -> None:
        """Plots the returns into the run folder."""
        plot_returns(folder)

    def summarize(self, trainer: mps.LocalRunner, config: Config) -> str:
        """Evaluates the final policy with new paths; returns a sentence about its undiscounted return."""
        if isinstance(trainer.algo, mps.OffPolicyRLAlgorithm):  # other algorithms have no separate exploration policy
            paths = trainer.obtain_evaluation_samples(trainer.step_itr, NUM_FINAL_PATHS)
        else:
            paths = trainer.obtain_samples(trainer.step_itr, NUM_FINAL_PATHS * config.max_path_length)
        trainer.sampler.close()
        mean, half_width = mean_interval([float(path["rewards"].sum()) for path in paths])
        return (f"Mean return of the final policy: {mean:.2f}, 95% interval {mean - half_width:.2f} to "
                f"{mean + half_width:.2f} ({NUM_FINAL_PATHS} new paths)")
