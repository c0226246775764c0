"""Lists the pretrained policies without importing TensorFlow."""
import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from meta_policy_search.utils.checks import find_name

DATA = Path(__file__).parent / "data"  # written by experiments/results/pretrained.py
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


def pretrained() -> List[Pretrained]:
    r"""Returns the pretrained policies that `load_pretrained` can load, in alphabetical order of their names.

    `print(*pretrained(), sep="\n")` prints a table. Does not import TensorFlow.
    """
    return [Pretrained(**record) for record in json.loads((DATA / NAMES_FILE).read_text(encoding="utf-8"))]


def find_pretrained(name: str) -> Pretrained:
    """Returns the pretrained policy with a name; see `load_pretrained`."""
    known = {policy.name: policy for policy in pretrained()}
    return known[find_name("name", name, known)]
