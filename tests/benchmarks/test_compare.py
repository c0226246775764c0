"""Tests the comparison of two checkouts, which run alternately and give paired figures."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compare, compared, same_numbers

ROOT = Path(compare.__file__).parent.parent
SCRIPT = ROOT / "benchmarks" / "compare.py"


def run_script(*arguments, cwd):
    return subprocess.run([sys.executable, SCRIPT, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture
def other_checkout(tmp_path):
    """Copies this checkout's package and experiments to another folder without its benchmarks."""
    for name in ("meta_policy_search", "experiments"):
        (tmp_path / "other" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "other" / name).symlink_to(ROOT / name)
    return tmp_path / "other"


@pytest.mark.slow
def test_checkout_is_compared_with_another(tmp_path, other_checkout):
    output = tmp_path / "pairs.json"
    done = run_script(ROOT, other_checkout, "--smoke", "--turns", "1", "--only", "point.promp.outer_step",
                      "--set", "n_itr=9", "--output", output, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pairs = json.loads(output.read_text())
    times = {f"point.promp.{figure}.{time}_s" for figure in ("machine", "outer_step") for time in ("wall", "cpu")}
    assert set(pairs) == times
    assert all(len(turns) == 1 and min(turns[0]) > 0 for turns in pairs.values())
    assert all(key in done.stdout for key in times)


@pytest.mark.slow
def test_package_of_the_given_checkout_is_measured(tmp_path):
    """For a folder without the package, no other package is measured instead."""
    with pytest.raises(RuntimeError, match=f"point.promp of {tmp_path}"):
        compare.compare(ROOT, tmp_path, ["point.promp.outer_step"], {}, turns=1)


def test_ratios_are_computed_per_turn():
    lines = compare.table({
        "a.b.wall_s": [(1.0, 2.0), (2.0, 1.0), (4.0, 6.0)], "a.machine.wall_s": [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)],
        "a.b.peak_mib": [(1.0, 2.0)]}).splitlines()
    assert lines[1].split() == "a.b.wall_s 2 2 1.500 (0.500 to 2.000) 2.000 (0.250 to 3.000)".split()
    assert [len(line.split()) for line in lines[2:]] == [7, 7]


def test_iteration_reports_the_times_of_its_phases():
    """For alternating iterations of a trainer, each phase takes part of each iteration's time."""
    settings = {**compare.SMOKE, "n_itr": 9}
    turns = compared.iterations(0.0, settings, "point", "promp")
    for figures in (next(turns), next(turns)):
        total, *phases = (figures[name][0] for name in ("iteration", *compared.PHASES))
        assert set(figures) == {"iteration", *compared.PHASES} and min(phases) > 0 and sum(phases) < total
    turns.close()


def test_missing_and_failed_runs_differ():
    failed = {"error": "a"}
    lines = same_numbers.differences({"a": {"x": "1"}, "b": failed, "c": {"x": "1"}}, {"a": {"x": "1"}, "b": failed})
    assert [line.partition(":")[0] for line in lines] == ["b", "c"]


@pytest.mark.slow
def test_changed_numbers_are_reported(tmp_path, other_checkout):
    """For a run whose saved numbers were edited, the comparison names the run and the column."""
    file = tmp_path / "numbers.json"
    command = [sys.executable, ROOT / "benchmarks" / "same_numbers.py", other_checkout, "--only", "promp-point-1"]
    subprocess.run([*command, "--save", file], check=True, capture_output=True, timeout=300)
    assert subprocess.run([*command, "--compare", file], capture_output=True, timeout=300).returncode == 0
    numbers = json.loads(file.read_text())
    assert "final parameters" in numbers["promp-point-1"]
    numbers["promp-point-1"]["Step_1-AverageReturn"] = "0"
    file.write_text(json.dumps(numbers))
    done = subprocess.run([*command, "--compare", file], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "promp-point-1" in done.stdout and "Step_1-AverageReturn (0 ->" in done.stdout
