"""The algorithm that does nothing."""
from typing import Any, Optional, Sequence, Tuple

from meta_policy_search.baselines import ZeroBaseline
from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm, Runner
from meta_policy_search.samplers.base import SampleProcessor
from meta_policy_search.samplers.single_task_sampler import SingleTaskSampler
from meta_policy_search.types import Path
from meta_policy_search.utils.checks import check_positive_int


class NOP(RLAlgorithm):
    """NOP (no optimization performed): a reference for returns without training, and for the cost of everything else.

    If there is a sampler, each epoch is one iteration, and its paths are logged.

    Args:
        policy: policy to collect paths with. Default: none; then there is no sampler unless `LocalRunner.setup` gets
            one.
        max_path_length (int): most steps of a path. Default: 500.
    """

    def __init__(self, policy: Any = None, max_path_length: int = 500) -> None:
        self.policy = policy
        self.max_path_length = check_positive_int("max_path_length", max_path_length)
        self.sampler_cls = None if policy is None else SingleTaskSampler
        self._processor = SampleProcessor(ZeroBaseline())

    def init_opt(self) -> None:
        """Does nothing."""

    def optimize_policy(self, paths: Sequence[Path]) -> None:
        """Does nothing with the collected paths."""

    def get_state(self) -> Tuple[()]:
        """Returns an empty state: nothing changes, so an epoch can always be rolled back."""
        return ()

    def train(self, runner: Runner) -> Optional[float]:
        """Collects paths in each epoch, if there is a sampler.

        Returns:
            The average undiscounted return in the last epoch; None without a sampler.
        """
        self.init_opt()
        average_return = None
        for _ in runner.step_epochs():
            if runner.sampler is not None:
                runner.step_path = runner.obtain_samples(runner.step_itr)
                self._processor.process_samples(runner.step_path, log="all")
                average_return = sum(float(path["rewards"].sum()) for path in runner.step_path) / len(runner.step_path)
                self.optimize_policy(runner.step_path)
            runner.step_itr += 1
        return average_return
