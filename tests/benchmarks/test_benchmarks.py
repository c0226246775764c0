"""Tests that the benchmarks produce the figures documented in their README; the values are not tested."""
import itertools
import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import engine_share, machine, ray_cost_model, run
from benchmarks.processes import measure_here
from benchmarks.training import build, configure

BENCHMARKS = Path(run.__file__).parent


def documented_keys():
    """Returns the first column of the README's tables of keys, with all alternatives in braces expanded."""
    keys = set()
    for pattern in re.findall(r"^\| `(.+?)` \|", (BENCHMARKS / "README.md").read_text(), flags=re.MULTILINE):
        parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
        keys |= {"".join(choice) for choice in itertools.product(*parts)}
    return keys


def of_group(keys, name):
    return {key for key in keys if key.startswith((f"{name}.", f"load.{name}."))}


@pytest.mark.parametrize("group", sorted(set(run.GROUPS) - {"graph", "scaling"}))  # tested below
@pytest.mark.thorough(ci=("envpool", "ml45_memory", "returns", "stable_baselines3", "startup", "vector"))
def test_group_measures_the_documented_figures(group):
    if group in ("envpool", "stable_baselines3"):
        pytest.importorskip(group)
    if group == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    figures = run.measure_group(group, run.SMOKE, measure_here)
    assert set(figures) == of_group(documented_keys(), group)
    assert all(math.isfinite(value) and value >= 0 for value in figures.values())


@pytest.mark.thorough
def test_scaling_measures_the_documented_figures(monkeypatch):
    """With two cores, one measured variant and the others replaced by it, all figures are present."""
    monkeypatch.setattr(run, "available_cores", lambda: 2)
    one = next(m for m in run.scaling(run.SMOKE) if m.arguments["cores"] == 1)
    measured = measure_here(one)
    figures = run.measure_group("scaling", run.SMOKE, lambda variant: {
        key.replace(one.arguments["prefix"], variant.arguments["prefix"]): value for key, value in measured.items()})
    assert set(figures) == of_group(documented_keys(), "scaling")


@pytest.mark.thorough(but="humanoid")
@pytest.mark.parametrize("robot", ["hopper", "humanoid"])  # task-specific models; derived quantities and early ends
def test_engine_benchmark_repeats_the_sampled_steps(robot):
    config = configure(env=engine_share.ROBOTS[robot], meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=30)
    recording = engine_share.record(config, build(config))
    batched = engine_share.make_batched(config, recording.tasks)
    batched.engine.set_state(recording.qpos, recording.qvel)
    reached = np.empty_like(recording.last_observations)
    for step in range(recording.lengths.max()):
        ids = np.flatnonzero(recording.lengths > step)
        reached[ids] = batched.step(recording.controls[ids, step], ids).observations
    np.testing.assert_allclose(reached, recording.last_observations, rtol=1e-4, atol=1e-5)  # float32 actions


def test_every_documented_key_belongs_to_a_group_or_the_machine():
    keys = documented_keys()
    assert keys == {key for key in keys if key.startswith("machine.")}.union(*(of_group(keys, g) for g in run.GROUPS))


def test_readme_states_the_measured_time_to_a_published_return():
    (listed,) = re.findall(r"\| few_tasks \| 11 to 20 \| (.*) \|", (BENCHMARKS / "README.md").read_text())
    median, longest = (round(function(map(float, listed.split(", ")))) for function in (statistics.median, max))
    readme = (BENCHMARKS.parent / "README.md").read_text()
    assert f"within {median} s, start-up included. This is the median of ten seeds (22 to {longest} s)" in readme


@pytest.mark.slow
def test_command_writes_the_printed_figures(tmp_path):
    output = tmp_path / "results.json"
    done = subprocess.run([sys.executable, BENCHMARKS / "run.py", "--smoke", "--only", "graph", "--output", output],
                          cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    figures = json.loads(output.read_text())
    keys = documented_keys()
    assert set(figures) == set(machine.describe()) | of_group(keys, "graph")
    assert all(key in done.stdout for key in figures)
    operations = {figures[f"graph.meta_batch_size_{size}_operations"] for size in (10, 40, 160)}
    assert len(operations) == 1 and operations.pop() > 0


@pytest.mark.parametrize("others, is_busy", [(0.02, False), (0.5, True)])
def test_load_of_other_processes_is_separated_from_the_benchmark(monkeypatch, others, is_busy):
    # Given 10 s in which all cores together worked `1 + others` times 10 s, 10 s of it for this process, on two cores.
    monkeypatch.setattr(machine, "available_cores", lambda: 2)
    monkeypatch.setattr(machine.time, "monotonic", iter([100.0, 110.0]).__next__)
    monkeypatch.setattr(machine, "_busy_time", iter([500.0, 510.0 + 10.0 * others]).__next__)
    monkeypatch.setattr(machine, "own_time", iter([1.0, 11.0]).__next__)
    with machine.measure_load("graph") as load:
        pass
    assert load["load.graph.others_cores"] == pytest.approx(others)
    assert load["load.graph.is_busy"] is is_busy
    assert ("NOT QUIET" in run.format_table(load)) is is_busy


def test_clusters_page_shows_the_measured_figures():
    results = json.loads(ray_cost_model.RESULTS.read_text())
    assert ray_cost_model.TABLES.read_text(encoding="utf-8") == ray_cost_model.make_tables(results)


def test_cost_model_equals_the_documented_formula():
    # Given constants that are powers of ten, so that each term has separate digits.
    constants = ray_cost_model.Constants(
        seconds_per_loop=1e-2, seconds_per_step=1e-6, seconds_per_path=1e-4, seconds_per_call=1e-3,
        seconds_per_round=1e-1, seconds_per_byte_in=1e-8, seconds_per_byte_out=1e-9, seconds_per_update=5.0,
        seconds_per_update_step=2e-6, bytes_per_step=100.0, bytes_per_path=1000.0, bytes_per_task=1e6)
    job = ray_cost_model.Job(tasks=10, rollouts=20, length=50, workers=4, cores=2)
    h, s, r, w, a, c, q, v, u, b, d, D = (1e-2, 1e-6, 1e-4, 1e-3, 1e-1, 1e-8, 1e-9, 5.0, 2e-6, 100.0, 1000.0, 1e6)
    M, P, T, W, N, network = 10, 20, 50, 4, 10_000, 1e6
    compute = (h * T * W + s * N + r * M * P) / 2  # four workers share two cores
    transfer = a + w * W + q * D * M + (c + 1 / network) * (b * N + d * M * P)
    predicted = constants.predict(job, network)
    assert predicted["sampling_s"] == pytest.approx(2 * (compute + transfer))
    assert predicted["update_s"] == pytest.approx(v + u * 2 * N)
    assert predicted["iteration_s"] == pytest.approx(2 * (compute + transfer) + v + u * 2 * N)
    assert constants.workers_at_balance() == pytest.approx(0.5)


def test_constants_are_recovered_from_times_of_the_model():
    rows = [(1, 10, 3), (1, 50, 7), (1, 200, 1), (1, 90, 30)]
    times = [0.5 + 0.01 * n + 0.2 * k for _, n, k in rows]
    assert ray_cost_model.fit(rows, times) == pytest.approx([0.5, 0.01, 0.2])
