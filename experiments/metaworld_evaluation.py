"""Meta-World's own evaluation of a run: the success rate of its policy on goals that training has not seen.

    python experiments/metaworld_evaluation.py RUN_FOLDER
    python experiments/metaworld_evaluation.py RUN_FOLDER --split train --num_goals 10 --adaptation_steps 0 1 2

The package's `metaworld.evaluation` gives the policy a goal, lets it adapt to ten episodes there, and counts successes
in three more, which end at the first success. This script prints the mean return and the success rate, averaged over
kinds of tasks and for each kind, before adaptation and after as many steps as in training. It also writes them to
RUN_FOLDER/metaworld_evaluation.json.

In a notebook:

    import meta_policy_search as mps
    from experiments.metaworld_evaluation import evaluate_on_metaworld
    print(evaluate_on_metaworld(mps.load_evaluator("RUN_FOLDER")).success_rate)

Loading a snapshot runs code that it contains: only evaluate runs that you trust.
"""
import argparse
import importlib.metadata
import inspect
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
from meta_policy_search.envs import EnvSpec, NormalizedEnv, meta_world, normalize
from meta_policy_search.np.algos import MetaRLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.serializable import present_arguments

if TYPE_CHECKING:
    from meta_policy_search.evaluation import MetaEvaluator

BENCHMARKS = (meta_world.MetaWorldML1, meta_world.MetaWorldML10, meta_world.MetaWorldML25, meta_world.MetaWorldML45)
FILE = "metaworld_evaluation.json"
NUM_GOALS = 40  # of each kind of task, as the package's evaluation expects
ADAPTATION_EPISODES, EVALUATION_EPISODES = 10, 3  # the package's defaults
INTEGERS = {  # flags that are arguments of `evaluate_on_metaworld`, and their help
    "num_goals": f"goals of each kind of task, at most {meta_world.NUM_VARIATIONS}",
    "adaptation_episodes": "episodes of each adaptation step",
    "evaluation_episodes": "episodes that are counted for each goal",
    "max_path_length": "steps of an episode; 500 if it is not given",
    "seed": "root of all random numbers",
}


class Successes(NamedTuple):
    """The result of the package's evaluation."""

    success_rate: float  # share of episodes that succeed, the mean over kinds of tasks
    mean_return: float  # of episodes, which end at the first success
    success_rates: dict[str, float]  # of each kind of task
    adaptation_steps: int
    rounds: list[float]  # share of episodes that succeed with each goal


class MetaWorldAgent:
    """A policy that adapts, with the interface of `MetaLearningAgent` in `metaworld.evaluation`.

    Each of the environments that step together is a separate task. While the policy explores, its actions are
    sampled. The adapted policy acts with the mean of its distribution, as the agents of Meta-World's authors do.
    Actions and observations are normalized as in the run.

    Args:
        evaluator: the evaluator of the policy, in an environment of Meta-World, normalized or not.

    Raises:
        TypeError: the environment is another one.
    """

    def __init__(self, evaluator: "MetaEvaluator") -> None:
        self._env = _normalized(evaluator.env)
        self._algo = evaluator.algo
        if not isinstance(self._algo, MetaRLAlgorithm):
            from meta_policy_search.algos import GradientAdaptation  # loads TensorFlow

            self._algo = GradientAdaptation(evaluator.algo, evaluator.sample_processor)
        self.init()

    def init(self) -> None:
        """Resets the agent for new tasks."""
        self._policies: list[Any] = []
        self._is_exploring = False

    def adapt_action(self, observations: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Explores; returns the actions `[M, A]` and the data that `step` records with them."""
        if not self._is_exploring:
            exploring = [self._algo.next_exploration_policy(policy) for policy in self._policies]
            self._begin(exploring or [self._algo.get_exploration_policy() for _ in observations])
            self._is_exploring = True
        seen, actions, infos = self._act(observations)
        return self._normalizer.actions(actions), {"observations": seen, "actions": actions, **infos}

    def step(self, timestep: Any) -> None:
        """Records a step of the exploration, a `metaworld.evaluation.Timestep`."""
        ended = np.logical_or(timestep.terminated, timestep.truncated)
        rewards = self._normalizer.rewards(np.asarray(timestep.reward, float), slice(None))
        self._steps.append({**timestep.aux_policy_outputs, "rewards": rewards, "terminated": timestep.terminated,
                            "ended": ended})
        self.reset(ended)

    def adapt(self) -> None:
        """Takes an adaptation step in each task, on the recorded episodes."""
        columns = {key: np.stack([step[key] for step in self._steps], axis=1) for key in self._steps[0]}
        spec = EnvSpec.of(self._env)
        self._begin([
            self._algo.adapt_policy(policy, TrajectoryBatch.from_paths(
                spec, _paths({key: column[m] for key, column in columns.items()})))
            for m, policy in enumerate(self._policies)])
        self._is_exploring = False

    def reset(self, env_mask: np.ndarray) -> None:
        """Starts an episode in the environments that the mask, bool `[M]`, selects."""
        if not self._policies:  # there was no exploration
            self._begin([self._algo.get_initial_policy() for _ in env_mask])
        begun = np.flatnonzero(env_mask)
        self._normalizer.reset(begun)
        for m in begun:
            self._policies[m].reset()

    def eval_action(self, observations: np.ndarray) -> np.ndarray:
        """Returns the actions `[M, A]` of the adapted policies."""
        _, actions, infos = self._act(observations)
        return self._normalizer.actions(infos.get("mean", actions))

    def _begin(self, policies: list[Any]) -> None:
        """Uses these policies, one per task, for episodes that begin now."""
        self._policies, self._steps = policies, []
        self._normalizer = self._env.make_normalizer(len(policies))
        for policy in policies:
            policy.reset()

    def _act(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Returns normalized observations, actions and agent infos, each `[M, ...]`."""
        seen = self._normalizer.observations(np.asarray(observations, float), slice(None))
        actions, infos = zip(*(policy.get_action(row) for policy, row in zip(self._policies, seen, strict=True)))
        return seen, np.stack(actions), {key: np.stack([info[key] for info in infos]) for key in infos[0]}


def _normalized(env: Any) -> NormalizedEnv:
    """Returns the environment of a run, normalized; raises `TypeError` if it is not of Meta-World."""
    env = env if type(env) is NormalizedEnv else normalize(env, normalization_scale=1.0)
    if not isinstance(env.wrapped_env, BENCHMARKS):
        raise TypeError("evaluator: expected one in an environment of Meta-World, such as MetaWorldML1, normalized or "
                        f"not, got one in {env.wrapped_env!r}")
    return env


def _paths(columns: dict[str, np.ndarray]) -> list[Any]:
    """Splits the steps of a task into paths, `[T, ...]`; drops a path that has not ended."""
    ends = np.flatnonzero(columns["ended"]) + 1
    of_path = ("observations", "actions", "rewards")
    infos = [key for key in columns if key not in (*of_path, "terminated", "ended")]
    return [{
        **{key: columns[key][start:end] for key in of_path},
        "agent_infos": {key: columns[key][start:end] for key in infos},
        # The package does not return the observation after the last action; no algorithm here uses it.
        "last_observation": columns["observations"][end - 1],
        "terminated": bool(columns["terminated"][end - 1]),
    } for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def make_test_envs(
    env: Any, num_goals: int = NUM_GOALS, max_path_length: Optional[int] = None, seed: int = 1
) -> Any:
    """Returns the vectorized environments of the package's evaluation, one for each kind of task.

    They equal those of `metaworld.make_ml_envs_test`, and also work with recent versions of MuJoCo.

    Args:
        env: an environment of Meta-World, which determines the benchmark and the goals.
        num_goals: number of goals of each kind of task; the first ones are used.
        max_path_length: steps of an episode; default None, 500.
        seed: determines the order of goals.

    Returns:
        A `gymnasium.vector.SyncVectorEnv`.
    """
    if check_positive_int("num_goals", num_goals) > meta_world.NUM_VARIATIONS:
        raise ValueError(f"num_goals: expected at most {meta_world.NUM_VARIATIONS}, got {num_goals}")
    if max_path_length is not None:
        check_positive_int("max_path_length", max_path_length)

    def maker(kind: str) -> Callable[..., Any]:
        return lambda **arguments: meta_world.scene_class(kind)(object(), **arguments)  # with a separate model

    benchmark = SimpleNamespace(test_classes={kind: maker(kind) for kind in env.env_names},
                                test_tasks=list(map(meta_world.package_task, env.tasks)))
    return meta_world.import_metaworld()._make_ml_envs_inner(
        benchmark, len(env.env_names), seed, num_goals, "test", terminate_on_success=True,
        task_select="pseudorandom", max_episode_steps=max_path_length,
        reward_function_version=present_arguments(env)["reward_function_version"])


def evaluate_on_metaworld(
    evaluator: "MetaEvaluator", split: str = "test", num_goals: int = NUM_GOALS,
    adaptation_steps: Optional[int] = None, adaptation_episodes: int = ADAPTATION_EPISODES,
    evaluation_episodes: int = EVALUATION_EPISODES, max_path_length: Optional[int] = None, seed: int = 1,
) -> Successes:
    """Evaluates a policy by `metaworld.evaluation.metalearning_evaluation`, once on each goal.

    Args:
        evaluator: the evaluator of the policy, see `MetaWorldAgent`.
        split: use the goals for `"test"` or for `"train"`, of the benchmark and seed of the evaluator's environment.
        num_goals: goals of each kind of task, at most 50.
        adaptation_steps: default None, as many as in training (one if the algorithm does not specify it).
        adaptation_episodes: episodes of each adaptation step.
        evaluation_episodes: episodes that are counted for each goal.
        max_path_length: steps of an episode; default None, 500.
        seed: root of all random numbers.

    Raises:
        ImportError: `metaworld` is not installed.
        TypeError: the evaluator's environment is not of Meta-World.
        ValueError: a number out of range.
    """
    from metaworld.evaluation import metalearning_evaluation

    agent = MetaWorldAgent(evaluator)
    trained = _normalized(evaluator.env).wrapped_env
    env = type(trained)(**{**present_arguments(trained), "split": check_choice("split", split, meta_world.SPLITS)})
    steps = (evaluator.trained_steps or 1) if adaptation_steps is None else check_int_at_least(
        "adaptation_steps", adaptation_steps, 0)
    check_positive_int("adaptation_episodes", adaptation_episodes)
    check_positive_int("evaluation_episodes", evaluation_episodes)
    with seeding.evaluation_seed(check_int_at_least("seed", seed, 0)):
        envs = make_test_envs(env, num_goals, max_path_length, seed)
        try:
            rates, returns, by_kind = zip(*(
                metalearning_evaluation(agent, envs, 1, steps, adaptation_episodes, evaluation_episodes)
                for _ in range(num_goals)), strict=True)
        finally:
            envs.close()
    return Successes(float(np.mean(rates)), float(np.mean(returns)), {
        kind: float(np.mean([each[kind] for each in by_kind])) for kind in env.env_names}, steps, list(rates))


def versions() -> dict[str, str]:
    """Returns the versions of the packages that results depend on."""
    return {name: importlib.metadata.version(name) for name in ("metaworld", "mujoco")}


def run(arguments: argparse.Namespace) -> None:
    """Evaluates a run, prints the table and writes the file."""
    output = arguments.output or os.path.join(arguments.run_folder, FILE)
    check_is_new(output, arguments.overwrite)
    evaluator = mps.load_evaluator(arguments.run_folder, arguments.snapshot)
    settings = {name: getattr(arguments, name) for name in ("split", *INTEGERS)}
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
    """Returns the parser of the flags."""
    parser = Parser(__file__, __doc__)
    add = parser.add_argument
    add("run_folder", metavar="RUN_FOLDER", help="folder of a run in an environment of Meta-World")
    evaluate.add_snapshot_flag(parser)
    add("--split", choices=meta_world.SPLITS, default="test", help="which goals to use (default: test)")
    add("--adaptation_steps", type=int, nargs="+", metavar="INT",
        help="a column for each of these numbers of steps (default: 0, and as in training)")
    for name, text in INTEGERS.items():
        default = inspect.signature(evaluate_on_metaworld).parameters[name].default
        add(f"--{name}", type=int, default=default, metavar="INT",
            help=text + (f" (default: {default})" if default is not None else ""))
    add_output_flags(parser, "FILE", f"JSON file to write (default: RUN_FOLDER/{FILE})", "evaluation")
    return parser


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Evaluates a run; returns the exit status."""
    return run_tool(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
