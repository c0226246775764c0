"""Writes the pretrained policies of the package: settings, test scores and weights, and the table of the docs.

    python -m experiments.results.pretrained

Each policy is the one with the lowest training seed (in nearly all entries 1). Test scores do not affect this choice.
The data are those of `experiments/reproduce.py`. To add an entry, add it to `NAMES`.
"""
import json
import os
import shutil
from pathlib import Path
from typing import Any, Iterator, Sequence

from experiments.results import reproduced
from experiments.results.entries import ENTRIES, Method, all_settings, build
from meta_policy_search.pretrained_policies import DATA, NAMES_FILE, Pretrained
from meta_policy_search.run_folder import as_json
from meta_policy_search.utils.files import write_text
from meta_policy_search.utils.statistics import mean_interval

NAMES = {"exploration_corner": "point_corner", "exploration_momentum": "point_momentum", "navigation": "navigation",
         "partial_adaptation_navigation": "navigation", "half_cheetah_direction": "half_cheetah_direction",
         "partial_adaptation_direction": "half_cheetah_direction", "half_cheetah_velocity": "half_cheetah_velocity",
         "partial_adaptation_velocity": "half_cheetah_velocity", "rllib_cart_pole_mass": "cart_pole_mass",
         "rllib_pendulum_mass": "pendulum_mass", "meta_world_reach": "meta_world_reach",
         "rl2_navigation": "navigation", "rl2_half_cheetah": "half_cheetah_direction", "rl2_bandits": "rl2_bandits",
         "outer_steps_navigation": "navigation", "outer_steps_direction": "half_cheetah_direction",
         "figure_2_hopper_params": "hopper_params", "figure_2_walker_direction": "walker_direction",
         "figure_2_ant_direction": "ant_direction"}
"""First part of the names of policies, by entry."""
SKIPPED = ("random", "all_tasks", "oracle",
           "maml", "anil_far", "anil_farther", "pro_mp_value_network", "n10_k10", "n10_k50", "n100_k10")
"""Methods that do not learn to adapt, and methods that are similar to others (skipped to limit the size)."""
TABLE = Path(reproduced.ROOT) / "docs" / "pretrained_policies.inc"


def main() -> None:
    """Writes all files."""
    records = sorted((describe(*chosen) for chosen in choose()), key=lambda record: record.name)
    for name, method, seed in choose():
        target = DATA / f"{policy_name(name, method)}.npz"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(reproduced.weights_path(name, method.name, seed), target)
    lines = ",\n".join(json.dumps(record._asdict()) for record in records)
    write_text(DATA / NAMES_FILE, f"[\n{lines}\n]\n")
    write_text(TABLE, "\n".join(table(records)) + "\n")


def choose() -> Iterator[tuple[str, Method, int]]:
    """Yields the name of the entry, the method and the seed of each policy."""
    for name in NAMES:
        for method, seed in reproduced.trained(name):
            if method.name not in SKIPPED:
                yield name, method, seed


def policy_name(entry: str, method: Method) -> str:
    """Returns the name of the policy that a method trained."""
    return f"{NAMES[entry]}/{method.name.replace('pro_mp', 'promp')}"


def describe(name: str, method: Method, seed: int) -> Pretrained:
    """Returns settings and test scores of a policy; builds its trainer to find the settings that have an effect."""
    entry = ENTRIES[name]
    settings = {**entry.settings, **method.settings, "seed": seed}
    known, trainer = all_settings(method.script, settings), build(method.script, settings)
    trainer.sampler.close()
    recorded = trainer.describe().settings
    scores = reproduced.read_scores(name)[method.name][seed]
    steps = min(entry.num_steps, known.get("num_inner_grad_steps", entry.num_steps))
    mean, half_width = mean_interval(scores[:, :steps + 1])
    return Pretrained(
        name=policy_name(name, method), algo=known["algo"], env=recorded.pop("env"),
        env_kwargs=recorded.pop("env_kwargs"), settings={name: as_json(known[name]) for name in recorded
                                                         if name in known and name not in ("n_itr", "seed")},
        rollouts_per_meta_task=entry.rollouts, num_tasks=len(scores), score=entry.score,
        means=mean.round(4).tolist(), half_widths=half_width.round(4).tolist(),
        command=f"python -m experiments.reproduce {name} --methods {method.name} --seeds {seed}")


def table(records: Sequence[Pretrained]) -> Iterator[str]:
    """Yields the lines of the table of the documentation."""
    yield from (".. Written by experiments/results/pretrained.py.", "", ".. list-table::", "   :header-rows: 1", "")
    rows: list[Sequence[Any]] = [("name", "environment", "score", "before", "after", "steps")]
    for record in records:
        scores = [f"{mean:.2f} ± {width:.2f}" for mean, width in zip(record.means, record.half_widths, strict=True)]
        steps = len(scores) - 1
        rows.append((f"``{record.name}``", f"``{record.env}``", record.score, scores[0],
                     scores[-1] if steps else "", steps or ""))
    for row in rows:
        yield from (f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row))


if __name__ == "__main__":
    main()
    print(*map(os.path.relpath, (DATA, TABLE)), sep="\n")
