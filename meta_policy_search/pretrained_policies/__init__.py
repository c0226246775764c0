"""Trained policies that are part of the package, with their settings and test returns."""
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple

from meta_policy_search.envs import make_env
from meta_policy_search.registry import get_algorithm
from meta_policy_search.utils import seeding
from meta_policy_search.utils.checks import find_name
from meta_policy_search.utils.progress import shown_as_text, text_table

if TYPE_CHECKING:
    from meta_policy_search.evaluation import MetaEvaluator

DATA = Path(__file__).parent / "data"  # written by experiments/reproduce.py --update
NAMES_FILE = "policies.json"


class Pretrained(NamedTuple):
    """A pretrained policy: its settings and its scores in sampled tasks.

    `print` shows the name and the scores before and after adaptation on one line.
    """

    name: str  # experiment and method, such as "half_cheetah_direction/promp"
    algo: str  # name of the algorithm, see `meta_policy_search.train`
    env: str  # name of the environment, see `meta_policy_search.make_env`
    env_kwargs: Dict[str, Any]  # arguments of the environment
    settings: Dict[str, Any]  # settings of the training by name; `baseline` is the name of a class
    rollouts_per_meta_task: int  # number of paths per test task and number of adaptation steps
    num_tasks: int  # number of test tasks, sampled with seed 1
    score: str  # "mean return"; for Meta-World "success rate", for bandits "return of a trial"
    means: List[float]  # mean over test tasks after 0, 1, ... adaptation steps as in training; RL2: by episode
    half_widths: List[float]  # half widths of the 95% intervals over test tasks (Student's t)
    command: str  # repeats training and test, in a checkout

    def __str__(self) -> str:
        cells = [f"{mean:.2f} +- {width:.2f}" for mean, width in zip(self.means, self.half_widths, strict=True)]
        last = f"episodes: {len(cells)}" if self.algo == "rl2" else f"adaptation steps: {len(cells) - 1}"
        steps = f" -> {cells[-1]} ({last})" if len(cells) > 1 else ""
        return f"{self.name:<44}{self.score:<18}{cells[0]:>17}{steps}"


@shown_as_text
class PretrainedPolicies(List[Pretrained]):
    """A list of pretrained policies. Consoles and notebooks show a table with a row for each experiment."""

    def __str__(self) -> str:
        methods: Dict[str, List[str]] = {}
        for policy in self:
            experiment, _, method = policy.name.partition("/")
            methods.setdefault(experiment, []).append(method)
        rows = [["experiment", "methods"], *([name, ", ".join(methods[name])] for name in methods)]
        return (f"{text_table(rows, right=())}\n"
                "A name is experiment/method, as in navigation/promp. print(*mps.pretrained(), sep='\\n') shows scores")


def pretrained() -> PretrainedPolicies:
    r"""Returns the pretrained policies that `load_pretrained` can load, in alphabetical order of their names.

    `print(*pretrained(), sep="\n")` prints a line with the scores of each. Does not import TensorFlow.
    """
    records = json.loads((DATA / NAMES_FILE).read_text(encoding="utf-8"))
    return PretrainedPolicies(Pretrained(**record) for record in records)


def load_pretrained(name: str) -> "MetaEvaluator":
    """Loads a pretrained policy, with environment and algorithm as in its training. Runs no code from files.

    The result has the attributes `policy`, `env` (normalized), `algo` (such as `algo.inner_lr`), `sample_processor`,
    `rollouts_per_meta_task` and `max_path_length`. On the same kind of processor, `evaluate()` repeats the mean returns
    in `pretrained()`.

    Args:
        name: name of the policy, such as `"half_cheetah_direction/promp"`. Case, hyphens and underscores are ignored.

    Returns:
        The evaluator.

    Raises:
        ValueError: no policy has this name.
        ImportError: the environment needs a package that is not installed, such as metaworld.
    """
    from meta_policy_search.evaluation.trial_evaluator import make_evaluator  # imports TensorFlow
    from meta_policy_search.run import make_trainer
    from meta_policy_search.tf_compat import tf

    known = {policy.name: policy for policy in pretrained()}
    record = known[find_name("name", name, known)]
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # keeps the caller's random generators unchanged
        trainer = make_trainer(make_env(record.env, **record.env_kwargs), get_algorithm(record.algo),
                               **{name: value for name, value in record.settings.items() if value is not None})
        trainer.policy.load_npz(DATA / f"{record.name}.npz")
        return make_evaluator(trainer, rollouts_per_meta_task=record.rollouts_per_meta_task, name=record.name)
