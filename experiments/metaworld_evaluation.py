"""Meta-World's own evaluation of a run: how often its policy succeeds on goals that training has not seen.

    python experiments/metaworld_evaluation.py RUN_FOLDER
    python experiments/metaworld_evaluation.py RUN_FOLDER --split train --num_goals 10 --adaptation_steps 0 1 2

The package's `metaworld.evaluation` counts: it gives the policy a goal, lets it adapt to ten episodes there, and counts
successes in three more, which end at the first success. This prints the share of episodes that succeed, on average over
kinds of tasks and for each kind, and the mean return, before adaptation and after as many steps as in training. It also
writes them into RUN_FOLDER/metaworld_evaluation.json.

In a notebook:

    import meta_policy_search as mps
    from experiments.metaworld_evaluation import evaluate_on_metaworld
    print(evaluate_on_metaworld(mps.load_evaluator("RUN_FOLDER")).success_rate)

Loading a snapshot runs code that it contains: evaluate runs that you trust.
"""
import argparse
import importlib.metadata
import json
import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence

import numpy as np

import meta_policy_search as mps
from experiments import evaluate
from experiments.command import run_tool
from experiments.flags import Parser, add_output_flags, check_is_new, text_table
from meta_policy_search.envs import (
    EnvSpec,
    MetaWorldML1,
    MetaWorldML10,
    MetaWorldML25,
    MetaWorldML45,
    NormalizedEnv,
    normalize,
)
from meta_policy_search.envs.meta_world import NUM_VARIATIONS, SPLITS, import_metaworld, package_task, scene_class
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_bool, check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.serializable import present_arguments

if TYPE_CHECKING:
    from meta_policy_search.evaluation import MetaEvaluator

BENCHMARKS = (MetaWorldML1, MetaWorldML10, MetaWorldML25, MetaWorldML45)
FILE = "metaworld_evaluation.json"
NUM_GOALS = 40  # of each kind of task, which the package's evaluation takes for granted
ADAPTATION_EPISODES, EVALUATION_EPISODES = 10, 3  # the package's defaults


class Successes(NamedTuple):
    """What the package's evaluation says of a policy."""

    success_rate: float  # share of episodes that succeed, the mean over kinds of tasks
    mean_return: float  # of episodes, which end at the first success
    success_rates: dict[str, float]  # of each kind of task
    adaptation_steps: int
    rounds: list[float]  # share of episodes that succeed with each goal; or with each few that come at a time


class MetaWorldAgent:
    """A policy that adapts, in the form that `metaworld.evaluation` asks for (its `MetaLearningAgent`).

    Each environment of those that step together is a task of its own. While the policy explores, its actions are drawn;
    actions and observations are normalized as in the run.

    Args:
        evaluator: that of the policy, in an environment of Meta-World, normalized or not.
        deterministic: whether the adapted policy acts with the mean of its distribution, as the agents of
            Meta-World's authors do; default True.

    Raises:
        TypeError: the environment is another one.
    """

    def __init__(self, evaluator: "MetaEvaluator", deterministic: bool = True) -> None:
        self._env = _normalized(evaluator.env)
        self._deterministic = check_bool("deterministic", deterministic)
        self._algo = evaluator.algo
        if not isinstance(self._algo, MetaRLAlgorithm):
            from meta_policy_search.algos import GradientAdaptation  # loads TensorFlow

            self._algo = GradientAdaptation(evaluator.algo, evaluator.sample_processor)
        self.init()

    def init(self) -> None:
        """Forgets the tasks: others come."""
        self._policies: list[Any] = []
        self._is_exploring = False

    def adapt_action(self, observations: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Explores; returns the actions `[M, A]`, and what `step` needs to know of them."""
        if not self._is_exploring:
            exploring = [self._algo.next_exploration_policy(policy) for policy in self._policies]
            self._begin(exploring or [self._algo.get_exploration_policy() for _ in observations])
            self._is_exploring = True
        seen, actions, infos = self._act(observations)
        return self._normalizer.actions(actions), {"observations": seen, "actions": actions, **infos}

    def step(self, timestep: Any) -> None:
        """Remembers a step of the exploration, a `metaworld.evaluation.Timestep`."""
        ended = np.logical_or(timestep.terminated, timestep.truncated)
        rewards = self._normalizer.rewards(np.asarray(timestep.reward, float), slice(None))
        self._steps.append({**timestep.aux_policy_outputs, "rewards": rewards, "terminated": timestep.terminated,
                            "ended": ended})
        self.reset(ended)

    def adapt(self) -> None:
        """Takes an adaptation step in each task, on the episodes that the policy explored it in."""
        columns = {key: np.stack([step[key] for step in self._steps], axis=1) for key in self._steps[0]}
        spec = EnvSpec.of(self._env)
        self._begin([
            self._algo.adapt_policy(policy, TrajectoryBatch.from_paths(
                spec, _paths({key: column[m] for key, column in columns.items()})))
            for m, policy in enumerate(self._policies)])
        self._is_exploring = False

    def reset(self, env_mask: np.ndarray) -> None:
        """Is told in which environments, bool `[M]`, an episode begins."""
        if not self._policies:  # there was no exploration
            self._begin([self._algo.get_initial_policy() for _ in env_mask])
        begun = np.flatnonzero(env_mask)
        self._normalizer.reset(begun)
        for m in begun:
            self._policies[m].reset()

    def eval_action(self, observations: np.ndarray) -> np.ndarray:
        """Acts with what adaptation led to; returns the actions `[M, A]`."""
        _, actions, infos = self._act(observations)
        return self._normalizer.actions(infos.get("mean", actions) if self._deterministic else actions)

    def _begin(self, policies: list[Any]) -> None:
        """Has these policies act, each in its task, on episodes that begin now."""
        self._policies, self._steps = policies, []
        self._normalizer = self._env.make_normalizer(len(policies))
        for policy in policies:
            policy.reset()

    def _act(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Returns what the policies saw, their actions and agent infos, each `[M, ...]`."""
        seen = self._normalizer.observations(np.asarray(observations, float), slice(None))
        actions, infos = zip(*(policy.get_action(row) for policy, row in zip(self._policies, seen, strict=True)))
        return seen, np.stack(actions), {key: np.stack([info[key] for info in infos]) for key in infos[0]}


def _normalized(env: Any) -> NormalizedEnv:
    """Returns the environment of a run, normalized in any case; raises `TypeError` unless it is of Meta-World."""
    env = env if type(env) is NormalizedEnv else normalize(env, normalization_scale=1.0)
    if not isinstance(env.wrapped_env, BENCHMARKS):
        raise TypeError("evaluator: expected one in an environment of Meta-World, such as MetaWorldML1, normalized or "
                        f"not, got one in {env.wrapped_env!r}")
    return env


def _paths(columns: dict[str, np.ndarray]) -> list[Any]:
    """Returns the paths that have ended among the steps of a task, each `[T, ...]`."""
    ends = np.flatnonzero(columns["ended"]) + 1
    of_path = ("observations", "actions", "rewards")
    infos = [key for key in columns if key not in (*of_path, "terminated", "ended")]
    return [{
        **{key: columns[key][start:end] for key in of_path},
        "agent_infos": {key: columns[key][start:end] for key in infos},
        # The package does not tell the observation after the last action; no algorithm here looks at it.
        "last_observation": columns["observations"][end - 1],
        "terminated": bool(columns["terminated"][end - 1]),
    } for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def make_test_envs(
    env: Any, num_goals: int = NUM_GOALS, envs_per_kind: int = 1, max_path_length: Optional[int] = None, seed: int = 1
) -> Any:
    """Returns the environments that the package makes for its evaluation, stepped together.

    They are those of `metaworld.make_ml_envs_test`, but start with every MuJoCo.

    Args:
        env: an environment of Meta-World; says the benchmark and the goals.
        num_goals: how many goals of each kind of task, the first ones.
        envs_per_kind: environments of each kind, which share its goals.
        max_path_length: steps of an episode; default None, 500.
        seed: of the order of goals.

    Returns:
        A `gymnasium.vector.SyncVectorEnv`.
    """
    if check_positive_int("num_goals", num_goals) > NUM_VARIATIONS:
        raise ValueError(f"num_goals: expected at most {NUM_VARIATIONS}, as many as there are, got {num_goals}")
    if num_goals % check_positive_int("envs_per_kind", envs_per_kind):
        raise ValueError(f"envs_per_kind: expected a divisor of num_goals={num_goals}, got {envs_per_kind}")
    if max_path_length is not None:
        check_positive_int("max_path_length", max_path_length)

    def maker(kind: str) -> Callable[..., Any]:
        return lambda **arguments: scene_class(kind)(object(), **arguments)  # with a model of its own

    benchmark = SimpleNamespace(test_classes={kind: maker(kind) for kind in env.env_names},
                                test_tasks=list(map(package_task, env.tasks)))
    return import_metaworld()._make_ml_envs_inner(
        benchmark, envs_per_kind * len(env.env_names), seed, num_goals, "test", terminate_on_success=True,
        task_select="pseudorandom", max_episode_steps=max_path_length,
        reward_function_version=present_arguments(env)["reward_function_version"])


def evaluate_on_metaworld(
    evaluator: "MetaEvaluator", split: str = "test", num_goals: int = NUM_GOALS,
    adaptation_steps: Optional[int] = None, adaptation_episodes: int = ADAPTATION_EPISODES,
    evaluation_episodes: int = EVALUATION_EPISODES, envs_per_kind: int = 1, max_path_length: Optional[int] = None,
    deterministic: bool = True, seed: int = 1,
) -> Successes:
    """Has `metaworld.evaluation.metalearning_evaluation` evaluate a policy; each goal is met once.

    Args:
        evaluator: that of the policy, see `MetaWorldAgent`.
        split: whose goals: `"test"` or `"train"`, of the benchmark and seed of the evaluator's environment.
        num_goals: of each kind of task, at most 50.
        adaptation_steps: default None, as many as in training (one, where the algorithm does not say).
        adaptation_episodes: of each adaptation step.
        evaluation_episodes: that are counted, see `envs_per_kind`.
        envs_per_kind: environments of each kind of task, each with another goal at a time. The package counts the first
            `evaluation_episodes` of a kind to end, whatever their goals. Episodes that succeed end first, so that rates
            come out too high with more than one.
        max_path_length: steps of an episode; default None, 500.
        deterministic: whether the adapted policy acts with the mean of its distribution.
        seed: of all random numbers.

    Raises:
        ImportError: `metaworld` is not installed.
        TypeError: the evaluator's environment is not of Meta-World.
        ValueError: a number out of range.
    """
    from metaworld.evaluation import metalearning_evaluation

    agent = MetaWorldAgent(evaluator, deterministic)
    trained = _normalized(evaluator.env).wrapped_env
    env = type(trained)(**{**present_arguments(trained), "split": check_choice("split", split, SPLITS)})
    steps = (evaluator.trained_steps or 1) if adaptation_steps is None else check_int_at_least(
        "adaptation_steps", adaptation_steps, 0)
    check_positive_int("adaptation_episodes", adaptation_episodes)
    check_positive_int("evaluation_episodes", evaluation_episodes)
    with seeding.evaluation_seed(check_int_at_least("seed", seed, 0)):
        envs = make_test_envs(env, num_goals, envs_per_kind, max_path_length, seed)
        try:
            rates, returns, by_kind = zip(*(
                metalearning_evaluation(agent, envs, 1, steps, adaptation_episodes, evaluation_episodes)
                for _ in range(num_goals // envs_per_kind)), strict=True)
        finally:
            envs.close()
    return Successes(float(np.mean(rates)), float(np.mean(returns)), {
        kind: float(np.mean([each[kind] for each in by_kind])) for kind in env.env_names}, steps, list(rates))


def versions() -> dict[str, str]:
    """Returns the versions that results depend on."""
    return {name: importlib.metadata.version(name) for name in ("metaworld", "mujoco")}


def run(arguments: argparse.Namespace) -> None:
    """Evaluates a run, prints the table and writes the file."""
    output = arguments.output or os.path.join(arguments.run_folder, FILE)
    check_is_new(output, arguments.overwrite)
    evaluator = mps.load_evaluator(arguments.run_folder, arguments.snapshot)
    names = ("split", "num_goals", "adaptation_episodes", "evaluation_episodes", "envs_per_kind", "max_path_length",
             "seed")
    settings = {**{name: getattr(arguments, name) for name in names}, "deterministic": not arguments.sample_actions}
    steps = arguments.adaptation_steps or (0, evaluator.trained_steps or 1)
    results = [evaluate_on_metaworld(evaluator, adaptation_steps=number, **settings) for number in steps]
    print(f"{evaluator.name}; metaworld {versions()['metaworld']}, MuJoCo {versions()['mujoco']}\n"
          f"{arguments.num_goals} goals of each kind of task ({arguments.split}), {arguments.adaptation_episodes} "
          f"episodes for each adaptation step, then {arguments.evaluation_episodes}")
    print(text_table([
        ["adaptation steps", *(str(result.adaptation_steps) for result in results)],
        ["mean return", *(f"{result.mean_return:.1f}" for result in results)],
        ["success rate", *(f"{result.success_rate:.3f}" for result in results)],
        *(["  " + kind, *(f"{result.success_rates[kind]:.3f}" for result in results)]
          for kind in results[0].success_rates),
    ], right=range(1, len(results) + 1)))
    write_text(output, json.dumps({"name": evaluator.name, "versions": versions(), "settings": settings,
                                   "results": [result._asdict() for result in results]}, indent=2) + "\n")
    print(f"File: {output}")


def make_parser() -> Parser:
    """Returns the parser of the flags above."""
    parser = Parser(__file__, __doc__)
    add = parser.add_argument
    add("run_folder", metavar="RUN_FOLDER", help="folder of a run in an environment of Meta-World")
    evaluate.add_snapshot_flag(parser)
    add("--split", choices=SPLITS, default="test", help="whose goals (default: test)")
    add("--num_goals", type=int, default=NUM_GOALS, metavar="INT",
        help=f"goals of each kind of task, at most {NUM_VARIATIONS} (default: {NUM_GOALS})")
    add("--adaptation_steps", type=int, nargs="+", metavar="INT",
        help="a column for each of these numbers of steps (default: 0, and as in training)")
    add("--adaptation_episodes", type=int, default=ADAPTATION_EPISODES, metavar="INT",
        help=f"of each adaptation step (default: {ADAPTATION_EPISODES})")
    add("--evaluation_episodes", type=int, default=EVALUATION_EPISODES, metavar="INT",
        help=f"that are counted for each goal (default: {EVALUATION_EPISODES})")
    add("--envs_per_kind", type=int, default=1, metavar="INT", help="goals of a kind of task at a time; with more than "
        "one, the package counts the episodes that end first, which makes rates too high (default: 1)")
    add("--max_path_length", type=int, metavar="INT", help="steps of an episode (default: 500)")
    add("--sample_actions", action="store_true", help="have the adapted policy draw its actions, as while it explores; "
        "by default it acts with their mean")
    add("--seed", type=int, default=1, metavar="INT", help="of all random numbers (default: 1)")
    add_output_flags(parser, "FILE", f"JSON file to write (default: RUN_FOLDER/{FILE})", "evaluation")
    return parser


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Evaluates as the flags say; returns the exit status."""
    return run_tool(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
