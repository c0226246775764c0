"""An algorithm that does nothing."""
from typing import Any, Sequence, Tuple

from meta_policy_search.np.algos.rl_algorithm import RLAlgorithm
from meta_policy_search.types import Path


class NOP(RLAlgorithm):
    """Runs epochs without sampling or learning (no operation)."""

    def init_opt(self) -> None:
        """Does nothing."""

    def optimize_policy(self, paths: Sequence[Path]) -> None:
        """Does nothing."""

    def get_state(self) -> Tuple[()]:
        """Returns an empty state. No attribute changes, so an epoch can always be rolled back."""
        return ()

    def train(self, runner: Any) -> None:
        """Runs all epochs; each epoch is one iteration."""
        for _ in runner.step_epochs():
            runner.step_itr += 1
