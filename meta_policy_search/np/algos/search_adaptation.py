"""Gradient-free adaptation: searches for policy parameters in each task, starting from a common mean."""
from typing import Any, Dict, Optional, Tuple

import numpy as np

from meta_policy_search.actors.actor import Actor
from meta_policy_search.actors.flat_policy import act_in_one_task, sizes_of
from meta_policy_search.actors.from_policy import actor_from_policy
from meta_policy_search.np.algos.population_algorithm import PopulationAlgorithm
from meta_policy_search.np.algos.rl_algorithm import MetaRLAlgorithm
from meta_policy_search.trajectory_batch import TrajectoryBatch
from meta_policy_search.types import Infos
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import check_type
from meta_policy_search.utils.fast_paths import replaces

__all__ = ["SearchAdaptation", "SearchPolicy"]

CANDIDATE = "candidate"  # agent info with the index of the candidate that acted


class SearchAdaptation(MetaRLAlgorithm):
    """Gradient-free meta-baseline: CEM or CMA-ES searches in each task, starting from a common mean.

    During exploration, the candidates of the search act in turn, one per path. Their returns update the search
    distribution, and the adapted policy uses its mean. An adaptation step is therefore one cycle of the search, and
    each candidate must act in at least one path. `algos.GradientAdaptation` has the same interface, starts from the
    same parameters and uses the same number of paths.

    Args:
        search (PopulationAlgorithm): a `CEM` or `CMAES`, which starts at the parameters of its `policy`. To start at
            the parameters of a trained meta-policy, use `policies.TaskPolicy(meta_policy)`. The object itself is not
            changed.
    """

    def __init__(self, search: PopulationAlgorithm) -> None:
        self.search = check_type("search", search, PopulationAlgorithm, "a CEM or CMAES")

    @property
    def policy(self) -> Any:
        """The policy whose parameters adaptation starts from."""
        return self.search.policy

    def get_initial_policy(self) -> "SearchPolicy":
        """Returns a policy for one task that acts with the mean of a new search."""
        return SearchPolicy(self.search.fresh_copy(), is_exploring=False)

    def get_exploration_policy(self) -> "SearchPolicy":
        """Returns a policy for one task that acts with the candidates of a new search."""
        return self.next_exploration_policy(self.get_initial_policy())

    def next_exploration_policy(self, adapted_policy: "SearchPolicy") -> "SearchPolicy":
        """Returns a policy that acts with the candidates of the next cycle of the search in the task."""
        return SearchPolicy(adapted_policy.search, is_exploring=True)

    def adapt_policy(self, exploration_policy: "SearchPolicy",
                     exploration_trajectories: TrajectoryBatch) -> "SearchPolicy":
        """Updates the search with the returns of its candidates; returns a policy that acts with the new mean.

        Args:
            exploration_policy (SearchPolicy): return value of `get_exploration_policy` or `next_exploration_policy`.
            exploration_trajectories (TrajectoryBatch): trajectories collected with the policy, at least one per
                candidate (agent info `candidate`). Only one batch per exploration policy is accepted.

        Raises:
            ValueError: a candidate did not act; the search has already been updated with the candidates of this policy;
                or the policy does not explore.
        """
        check_type("exploration_policy", exploration_policy, SearchPolicy, "a SearchPolicy")
        check_type("exploration_trajectories", exploration_trajectories, TrajectoryBatch, "a TrajectoryBatch")
        if not exploration_policy.is_current:
            raise ValueError("exploration_policy: expected a policy with the candidates of the current cycle, got one "
                             "without them; create one with next_exploration_policy")
        search = exploration_policy.search
        search.tell(_candidate_returns(exploration_trajectories, search.n_samples))
        return SearchPolicy(search, is_exploring=False)


class SearchPolicy:
    """Acts in one task, with the mean of the search distribution or, during exploration, with its candidates in turn.

    `SearchAdaptation` creates these policies. In path `r` (from 0) of the paths that a sampler collects together,
    candidate `r % n` acts. With `get_action` and `get_actions`, each `reset` switches to the next candidate.

    Attributes:
        search (PopulationAlgorithm): the search in this task.
        is_exploring (bool): whether the candidates act.
        obs_dim (int): size `O` of an observation.
        action_dim (int): size `A` of an action; if actions are discrete, the number of actions.
    """

    def __init__(self, search: PopulationAlgorithm, is_exploring: bool) -> None:
        self.search, self.is_exploring = search, is_exploring
        self.obs_dim, self.action_dim = search.policy.obs_dim, search.policy.action_dim
        # stored, because the search may continue
        self._flat_params = search.candidates if is_exploring else search.cur_mean[None]
        self._turn = -1
        self._rng = seeding.next_rng(seeding.Stream.POLICY)

    @property
    def action_shape(self) -> Optional[Tuple[int, ...]]:
        """Shape of an action: `(A,)`, or `()` if actions are discrete."""
        return sizes_of(self.search.policy)[2]

    @property
    def is_current(self) -> bool:
        """Whether the policy acts with the candidates of the current cycle."""
        return self._flat_params is self.search.candidates

    @replaces("get_action", "get_actions")
    def make_actor(self) -> Actor:
        """Returns an actor for one task; during exploration, candidate `r % n` of `n` acts in path `r`."""
        actors = actor_from_policy(self.search.policy, flat_params=self._flat_params)
        return RoundRobinActor(actors, len(self._flat_params)) if self.is_exploring else actors

    def reset(self) -> None:
        """Starts a new path for `get_action` and `get_actions`."""
        self._turn += 1

    def get_action(self, observation: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action.

        Args:
            observation: `[O]`.

        Returns:
            `(action [A], agent_info)`. If actions are discrete, the action is an int64. During exploration, the info
            `candidate` is the index of the candidate that acted.
        """
        actions, infos = self.get_actions(self.search.policy._check_observations("observation", observation, 1)[None])
        return actions[0], {key: value[0] for key, value in infos.items()}

    def get_actions(self, observations: np.ndarray) -> Tuple[np.ndarray, Infos]:
        """Chooses an action for each observation `[B, O]`, all with the same candidate; see `get_action`."""
        observations = self.search.policy._check_observations("observations", observations, 2)
        turn = max(self._turn, 0) % len(self._flat_params)
        actor = actor_from_policy(self.search.policy, flat_params=self._flat_params[turn, None])
        noise = np.empty((len(observations), actor.noise_dim), np.float32)
        actor.draw_noise(self._rng, noise)
        actions, infos = act_in_one_task(actor, observations, noise)
        return actions, {**infos, CANDIDATE: np.full(len(observations), turn)} if self.is_exploring else infos


class RoundRobinActor(Actor):
    """Acts with several candidates in turn on the rows of one task.

    The agent info `candidate` is the index of the candidate. `actors` is an actor with one task per candidate.
    """

    def __init__(self, actors: Actor, num_candidates: int) -> None:
        self._actors, self._num_candidates = actors, num_candidates
        self.noise_dim, self.can_divide = actors.noise_dim, actors.can_divide
        self.draw_noise = actors.draw_noise  # type: ignore[method-assign]

    def for_tasks(self, start: int, stop: int) -> "RoundRobinActor":
        """Returns this actor, because it acts in only one task."""
        return self

    def act(self, observations: np.ndarray, noise: np.ndarray) -> Tuple[np.ndarray, Infos]:
        rows, n = np.arange(observations.shape[1]), self._num_candidates
        per_candidate = -(-len(rows) // n)
        # [n, ceil(R / n)], rows of each candidate; if n does not divide R, the last row is repeated
        theirs = np.minimum(np.arange(n)[:, None] + n * np.arange(per_candidate), len(rows) - 1)
        actions, infos = self._actors.act(observations[0, theirs], noise[0, theirs])
        who, which = rows % n, rows // n
        answers: Dict[str, np.ndarray] = {key: value[who, which][None] for key, value in infos.items()}
        return actions[who, which][None], {**answers, CANDIDATE: who[None]}


def _candidate_returns(trajectories: TrajectoryBatch, num_candidates: int) -> np.ndarray:
    """Returns each candidate's mean undiscounted return, float64 `[n]`."""
    if CANDIDATE not in trajectories.agent_infos:
        raise ValueError("exploration_trajectories: expected the agent info 'candidate' of a SearchPolicy, got only "
                         f"{sorted(trajectories.agent_infos)}")
    starts = np.cumsum(trajectories.lengths) - trajectories.lengths
    who = trajectories.agent_infos[CANDIDATE][starts]
    returns = np.add.reduceat(trajectories.rewards.astype(np.float64), starts)
    if sorted(set(who.tolist())) != list(range(num_candidates)):
        raise ValueError("exploration_trajectories: expected at least one trajectory for each of the "
                         f"{num_candidates} candidates, got trajectories for {sorted(set(who.tolist()))}")
    return np.bincount(who, returns) / np.bincount(who)
