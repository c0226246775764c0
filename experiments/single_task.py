"""What the experiments share that learn a single task: settings, environments, running, and what came of it."""
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Optional, Sequence

from experiments import command
from experiments.settings import BASELINES, NONLINEARITY_NAMES, RunConfig, arguments_for, setting
from meta_policy_search import baselines
from meta_policy_search.envs import MetaEnv, available_envs, make_env
from meta_policy_search.envs.adapters import SingleTaskEnv
from meta_policy_search.envs.env_spec import EnvSpec
from meta_policy_search.envs.gym_compat import sample_tasks
from meta_policy_search.local_runner import LocalRunner
from meta_policy_search.np.policies import DeterministicMLPPolicy
from meta_policy_search.plotting import plot_returns
from meta_policy_search.utils import seeding
from meta_policy_search.utils.callbacks import Callback
from meta_policy_search.utils.checks import did_you_mean
from meta_policy_search.utils.snapshotter import load_snapshot
from meta_policy_search.utils.statistics import mean_interval
from meta_policy_search.utils.utils import set_seed

if TYPE_CHECKING:
    from meta_policy_search.np.algos import RLAlgorithm

NUM_FINAL_PATHS = 20


# Settings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(RunConfig):
    """The settings that experiments in a single task have; raises like `RunConfig`."""

    env: str = setting("CartPole-v1", "class of an environment of this library, in a task drawn for the seed, or name "
                       "of one of Gymnasium")
    n_itr: int = setting(30, "epochs, of which each is a row")
    snapshot_gap: int = setting(10, "epochs between those kept by the modes gap and last_gap")
    plot_gap: int = setting(10, "epochs between two drawings of the learning curve; 0 for one at the end")
    max_path_length: int = setting(500, "steps of a path, at most")
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    hidden_sizes: tuple[int, ...] = setting((), "units of each hidden layer of the policy, linear if none")
    hidden_nonlinearity: Optional[str] = setting("tanh", "of the hidden layers, or none", NONLINEARITY_NAMES)
    output_nonlinearity: Optional[str] = setting(None, "of the policy's output, or none", NONLINEARITY_NAMES)


@dataclass(frozen=True)
class SearchConfig(Config):
    """The settings that searches among policy parameters have."""

    n_samples: int = setting(40, "candidates per epoch")
    rollouts_per_candidate: int = setting(4, "paths of each candidate")
    candidates_at_once: Optional[int] = setting(None, "candidates that act at the same time; none for all")
    baseline: str = setting("LinearFeatureBaseline", "class of the baseline, of which the log says how well it "
                            "predicts discounted returns", BASELINES)


SEARCH_SMOKE = {"n_itr": 2, "n_samples": 20, "rollouts_per_candidate": 1, "max_path_length": 10, "hidden_sizes": ()}


# The parts of an experiment --------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """Everything but algorithm and runner."""

    env: MetaEnv
    env_spec: EnvSpec
    policy: DeterministicMLPPolicy


def build_parts(config: Config, wrap: Callable[[MetaEnv], MetaEnv] = lambda env: env) -> Parts:
    """Seeds all random numbers, then builds environment and policy.

    Args:
        config: the settings.
        wrap: is given the environment, and returns the one to use.
    """
    set_seed(config.seed)
    env = wrap(_make_env(config))
    spec = EnvSpec.of(env)
    policy = DeterministicMLPPolicy(**arguments_for(
        DeterministicMLPPolicy, config, obs_dim=spec.obs_dim, action_dim=spec.action_dim, is_discrete=spec.is_discrete))
    return Parts(env, spec, policy)


def _make_env(config: Config) -> MetaEnv:
    if config.env in available_envs():
        env = make_env(config.env, **config.env_kwargs)
        env.set_task(sample_tasks(env, 1, seeding.rng_for(seeding.Stream.TASKS, 0))[0])
        return env
    import gymnasium

    try:
        return SingleTaskEnv(gymnasium.make(config.env, disable_env_checker=True, **config.env_kwargs))
    except gymnasium.error.Error as error:
        raise ValueError(f"env: expected one of {', '.join(available_envs())}, or the name of one of Gymnasium, got "
                         f"{config.env!r}: {error}{did_you_mean(config.env, available_envs())}") from error


def build_search(config: SearchConfig, algo_class: type["RLAlgorithm"]) -> "Training":
    """Builds a search and everything that it is run with; settings are passed to its class by name."""
    parts = build_parts(config)
    algo = algo_class(**arguments_for(algo_class, config, env_spec=parts.env_spec, policy=parts.policy,
                                      baseline=getattr(baselines, config.baseline)()))
    return Training(config, parts, algo, batch_size=config.rollouts_per_candidate * config.max_path_length,
                    candidates_at_once=config.candidates_at_once)


class Training:
    """A `LocalRunner` in the role of the trainer that `command.run` drives.

    Args:
        config: the settings.
        parts: environment and policy.
        algo: the algorithm.
        batch_size: environment steps per iteration.
        **sampler_args: arguments of the sampler, beside `parallel`.
    """

    def __init__(self, config: Config, parts: Parts, algo: "RLAlgorithm", batch_size: int, **sampler_args: Any) -> None:
        self._config, self._batch_size = config, batch_size
        self.runner = LocalRunner(progress_bar=config.progress_bar)
        self.runner.setup(algo, parts.env, sampler_args={"parallel": config.parallel_option(), **sampler_args})

    @property
    def callbacks(self) -> list[Callback]:
        """What is called after every epoch."""
        return self.runner.callbacks

    @property
    def itr(self) -> int:
        """Number of the next epoch."""
        return self.runner.epoch

    @property
    def stopped(self) -> bool:
        """Whether a callback has ended training."""
        return self.runner.stopped

    @property
    def sampler(self) -> Any:
        """What collects the paths."""
        return self.runner.sampler

    def train(self) -> None:
        """Trains to the end, from the beginning or from where the run was restored to."""
        if self.itr:
            self.runner.resume(self._config.n_itr)
        else:
            self.runner.train(self._config.n_itr, self._batch_size)

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a snapshot; environments are stepped as the settings say."""
        state = snapshot["state"]
        state = {**state, "sampler_args": {**state["sampler_args"], "parallel": self._config.parallel_option()}}
        self.runner.restore_snapshot({**snapshot, "state": state})

    def final_returns(self) -> list[float]:
        """Returns the undiscounted returns of new paths of the policy."""
        if hasattr(self.sampler, "obtain_evaluation_samples"):
            paths = self.sampler.obtain_evaluation_samples(self.runner.step_itr, NUM_FINAL_PATHS)
        else:
            num_steps = NUM_FINAL_PATHS * self._config.max_path_length
            paths = self.runner.obtain_samples(self.runner.step_itr, num_steps)
        self.sampler.close()
        return [float(path["rewards"].sum()) for path in paths]


# The command -----------------------------------------------------------------------------------------------------


def run(
    config_class: type[Config],
    build: Callable[[Any], Training],
    smoke: Mapping[str, Any],
    argv: Optional[Sequence[str]] = None,
) -> int:
    """Runs an experiment as its command line says.

    Args:
        config_class: its settings; the module that defines them is the script.
        build: puts everything together from the settings.
        smoke: settings of a run that takes seconds and learns nothing.
        argv: flags; by default those that the process was started with.

    Returns:
        The exit status; see `command.run`, also for errors.
    """
    run_type = command.RunType(Config, smoke, load_snapshot, lambda folder, config: plot_returns(folder), _describe,
                               _summarize)
    return command.run(config_class, build, argv, run_type)


def _describe(training: Training, config: Config) -> str:
    return f"{type(training.runner.algo).__name__} with paths of at most {config.max_path_length} steps"


def _summarize(training: Training, config: Config) -> str:
    mean, half_width = mean_interval(training.final_returns())
    return (f"In the end the policy returns {mean:.2f} on average, 95% interval {mean - half_width:.2f} to "
            f"{mean + half_width:.2f} ({NUM_FINAL_PATHS} new paths)")
