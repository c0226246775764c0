"""Evaluates a run with the evaluation of the metaworld package: success rate on goals that were not used in training.

    python experiments/metaworld_evaluation.py RUN_FOLDER
    python experiments/metaworld_evaluation.py RUN_FOLDER --split train --num_goals 10 --adaptation_steps 2

For each goal, `metaworld.evaluation` lets the policy adapt with ten episodes per adaptation step. It then measures the
success rate in three further episodes, which end at the first success. This script prints the mean return and the
success rate, averaged over kinds of tasks and for each kind, before and after adaptation. In a notebook:

    import meta_policy_search as mps
    from experiments.metaworld_evaluation import evaluate_on_metaworld
    print(evaluate_on_metaworld(mps.load_evaluator("RUN_FOLDER")).success_rate)

Loading a snapshot executes code that it contains. Only evaluate runs that you trust.
"""
import argparse
import copy
import functools
import importlib.metadata
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple, Optional, Sequence

import numpy as np

import meta_policy_search as mps
from meta_policy_search.cli import evaluate
from meta_policy_search.cli.flags import Parser, add_flag
from meta_policy_search.cli.train import run_tool
from meta_policy_search.envs import NormalizedEnv, meta_world, normalize
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.samplers.paths import split_paths
from meta_policy_search.settings import settings_of
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_choice, check_int_at_least, check_positive_int
from meta_policy_search.utils.progress import text_table
from meta_policy_search.utils.serializable import present_arguments

BENCHMARKS = (meta_world.MetaWorldML1, meta_world.MetaWorldML10, meta_world.MetaWorldML25, meta_world.MetaWorldML45)


class Successes(NamedTuple):
    """Result of `evaluate_on_metaworld`: return and success rates after adaptation."""

    success_rate: float  # fraction of successful episodes, mean over kinds of tasks
    mean_return: float  # mean return of an episode, which ends at the first success
    success_rates: dict[str, float]  # fraction of successful episodes by kind of task
    adaptation_steps: int
    rounds: list[float]  # fraction of successful episodes for each goal


class MetaWorldAgent:
    """Adaptive policy with the interface of `MetaLearningAgent` in `metaworld.evaluation`.

    Each copy in the vectorized environment is a separate task. The exploring policy samples its actions. The adapted
    policy acts with the mean of its distribution, like the agents of the Meta-World authors. Actions and observations
    are normalized as in the run.

    Args:
        evaluator: the evaluator of a policy that adapts by gradient steps, in a Meta-World environment, normalized or
            not.

    Raises:
        TypeError: the environment is not a Meta-World environment, or the policy adapts in another way.
    """

    def __init__(self, evaluator: MetaEvaluator) -> None:
        self._env, self._evaluator = _normalized(evaluator.env), evaluator
        if isinstance(evaluator.algo, mps.MetaRLAlgorithm):
            raise TypeError("evaluator: expected a policy that adapts by gradient steps, got one of "
                            f"{type(evaluator.algo).__name__}")
        self.init()

    def init(self) -> None:
        """Resets the agent for new tasks."""
        self._algo: Any = None  # built with the first observations, which have one row per task
        self._steps: list[dict[str, np.ndarray]] = []

    def adapt_action(self, observations: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Returns the exploration actions `[M, A]`, and the data that `step` records together with them."""
        seen, actions, infos = self._act(observations)
        return self._env.unscaled_actions(actions), {"observations": seen, "actions": actions, **infos}

    def step(self, timestep: Any) -> None:
        """Records an exploration step, a `metaworld.evaluation.Timestep`."""
        rewards = self._env.normalized_rewards(np.asarray(timestep.reward, float))
        self._steps.append({**timestep.aux_policy_outputs, "rewards": rewards, "terminated": timestep.terminated,
                            "ended": np.logical_or(timestep.terminated, timestep.truncated)})

    def adapt(self) -> None:
        """Performs an adaptation step in each task with the recorded episodes."""
        columns = {key: np.stack([step[key] for step in self._steps], axis=1) for key in self._steps[0]}
        paths = {m: _paths({key: column[m] for key, column in columns.items()}) for m in range(len(columns["ended"]))}
        processor = copy.deepcopy(self._evaluator.sample_processor)
        self._algo.adapt(processor.process_samples(paths))
        self._steps = []

    def reset(self, env_mask: np.ndarray) -> None:
        """Starts an episode in the environments selected by `env_mask`, bool `[M]`; policies have no state."""

    def eval_action(self, observations: np.ndarray) -> np.ndarray:
        """Returns the actions `[M, A]` of the adapted policies."""
        _, actions, infos = self._act(observations)
        return self._env.unscaled_actions(infos.get("mean", actions))

    def _act(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Returns the normalized observations, the actions and the agent infos, each `[M, ...]`."""
        seen = self._env.normalized_observations(np.asarray(observations, float))
        self._algo = self._algo or self._evaluator.algo.with_meta_batch_size(len(seen))
        actions, infos = self._algo.policy.get_actions(seen[:, None])
        return seen, np.concatenate(actions), {key: np.stack([info[key] for (info,) in infos]) for key in infos[0][0]}


def _normalized(env: Any) -> NormalizedEnv:
    """Returns the normalized environment of a run; raises `TypeError` if it is not a Meta-World environment."""
    env = env if type(env) is NormalizedEnv else normalize(env, normalization_scale=1.0)
    if not isinstance(env.wrapped_env, BENCHMARKS):
        raise TypeError("evaluator: expected a Meta-World environment such as MetaWorldML1, normalized or not, got "
                        f"{env.wrapped_env!r}")
    return env


def _paths(columns: dict[str, np.ndarray]) -> list[Any]:
    """Splits the steps of a task into paths, `[T, ...]`; drops an incomplete path."""
    ends = np.flatnonzero(columns["ended"]) + 1
    arrays = {key: columns[key] for key in ("observations", "actions", "rewards")}
    infos = {key: values for key, values in columns.items() if key not in (*arrays, "terminated", "ended")}
    # The metaworld package does not return the last observation; no algorithm uses it.
    return split_paths(np.diff(ends, prepend=0), arrays, {}, infos, arrays["observations"][ends - 1],
                       columns["terminated"][ends - 1])


def make_test_envs(env: Any, num_goals: int = 40, max_path_length: Optional[int] = None, seed: int = 1) -> Any:
    """Builds the vectorized environment of the metaworld evaluation, with one copy per kind of task.

    It equals the result of `metaworld.make_ml_envs_test`, but also works with recent versions of MuJoCo.

    Args:
        env: a Meta-World environment, which determines the benchmark and the goals.
        num_goals: number of goals per kind of task; the first goals are used. Default 40.
        max_path_length: maximum number of steps of an episode. Default None: 500.
        seed: seed of the order of the goals; default 1.

    Returns:
        A `gymnasium.vector.SyncVectorEnv`.

    Raises:
        ValueError: a number is out of range.
    """
    if check_positive_int("num_goals", num_goals) > meta_world.NUM_VARIATIONS:
        raise ValueError(f"num_goals: expected at most {meta_world.NUM_VARIATIONS}, got {num_goals}")
    if max_path_length is not None:
        check_positive_int("max_path_length", max_path_length)

    scenes = {kind: functools.partial(meta_world.scene_class(kind), object()) for kind in env.env_names}
    benchmark = SimpleNamespace(test_classes=scenes, test_tasks=list(map(meta_world.package_task, env.tasks)))
    return meta_world.import_metaworld()._make_ml_envs_inner(
        benchmark, len(env.env_names), seed, num_goals, "test", terminate_on_success=True,
        task_select="pseudorandom", max_episode_steps=max_path_length,
        reward_function_version=present_arguments(env)["reward_function_version"])


def evaluate_on_metaworld(
    evaluator: MetaEvaluator, split: str = "test", num_goals: int = 40, adaptation_steps: Optional[int] = None,
    adaptation_episodes: int = 10, evaluation_episodes: int = 3, max_path_length: Optional[int] = None, seed: int = 1,
) -> Successes:
    """Evaluates a policy with `metaworld.evaluation.metalearning_evaluation`, once per goal.

    Args:
        evaluator: the evaluator of the policy, see `MetaWorldAgent`.
        split: `"test"` or `"train"`: the goals of this split are used, for the benchmark and seed of the evaluator's
            environment. Default `"test"`.
        num_goals: goals per kind of task, at most 50; default 40.
        adaptation_steps: number of adaptation steps. Default None: the number in training, or 1 if it is unknown.
        adaptation_episodes: episodes per adaptation step; default 10.
        evaluation_episodes: episodes per goal after adaptation, in which successes are counted; default 3.
        max_path_length: maximum number of steps of an episode. Default None: 500.
        seed: root seed of all random generators; default 1.

    Returns:
        Success rates and mean return.

    Raises:
        ImportError: `metaworld` is not installed.
        TypeError: the evaluator's environment is not a Meta-World environment.
        ValueError: a number is out of range.
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


def run(arguments: argparse.Namespace) -> None:
    """Evaluates a run and prints its returns and success rates as a table."""
    settings = vars(arguments)
    evaluator = mps.load_evaluator(settings.pop("run_folder"), settings.pop("snapshot"))
    results = [evaluate_on_metaworld(evaluator, **{**settings, **changed}) for changed in ({"adaptation_steps": 0}, {})]
    versions = [f"{package} {importlib.metadata.version(package)}" for package in ("metaworld", "mujoco")]
    print(", ".join([evaluator.name, *versions]))
    print(text_table([
        ["adaptation steps", *(str(result.adaptation_steps) for result in results)],
        ["mean return", *(f"{result.mean_return:.1f}" for result in results)],
        ["success rate", *(f"{result.success_rate:.3f}" for result in results)],
        *(["  " + kind, *(f"{result.success_rates[kind]:.3f}" for result in results)]
          for kind in results[0].success_rates),
    ], right=range(1, len(results) + 1)))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Evaluates a run; returns the exit status."""
    parser = Parser("metaworld_evaluation.py", __doc__)
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="folder of a run in a Meta-World environment")
    evaluate.add_snapshot_flag(parser)
    for setting in settings_of([evaluate_on_metaworld], {"evaluator"}).values():
        add_flag(parser, setting)
    return run_tool(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
