"""Tests the reproduction of published results: runs, stored data, statistics and pages."""
import contextlib
import dataclasses
import functools
import os
import re
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import meta_policy_search as mps
from benchmarks.workload import SMOKE
from experiments import metaworld_evaluation, reproduce
from experiments.reproduction import entries, figures, measurements, pages, pretrained_files, reference, reference_page
from experiments.reproduction.entries import ENTRIES, Entry, Method, script_settings
from meta_policy_search import run_folder
from meta_policy_search.evaluation import MetaEvaluator, TrialEvaluator
from meta_policy_search.run import check_settings
from meta_policy_search.utils.statistics import mean_interval

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "exploration_corner"


@pytest.fixture(autouse=True, scope="module")
def _read_once():
    """Reads each file of the stored data once."""
    read = entries.read_runs

    @functools.lru_cache(maxsize=None)
    def read_version(path, modified):
        return read(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "read_runs", lambda path: read_version(path, path.exists() and path.stat().st_mtime_ns))
        yield


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty folder instead of the stored data; pages and figures are written to temporary folders."""
    for module, name in ((entries, "DATA"), (figures, "FIGURES"), (pages, "DOCS")):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(module, name, tmp_path / name)
    monkeypatch.setattr(pages, "README", Path(shutil.copy(pages.README, tmp_path)))
    monkeypatch.setattr(pages.write, "__defaults__", (pages.DOCS, pages.README))
    monkeypatch.setattr(pretrained_files, "update", lambda *arguments: None)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / "DATA"


@pytest.fixture
def small_entry(monkeypatch):
    """An entry with one method that takes seconds and does not learn."""
    entry = ENTRIES[NAME]
    method = dataclasses.replace(entry.methods[0], seeds=(1,), published=(0.25, 0.5))
    entry = dataclasses.replace(entry, settings={**entry.settings, **SMOKE}, methods=[method], rollouts=2)
    monkeypatch.setitem(ENTRIES, NAME, entry)
    return entry


def scores_of(*columns):
    """The columns of a test."""
    return {"task": np.arange(len(columns[0]), dtype=float), **{
        f"after_{step}": np.array(values, float) for step, values in enumerate(columns)}}


def trained(iterations, before=0.0, after=1.0):
    """The columns of a training; the return after adaptation grows linearly."""
    itr = np.arange(iterations, dtype=float)
    return {"Itr": itr, "n_timesteps": 160_000.0 * (itr + 1.0), "Time": 60.0 * (itr + 1.0),
            "Step_0-AverageReturn": np.full(iterations, before), "Step_1-AverageReturn": after * itr}


def write(name, tests, training=None):
    entries.write_runs(entries.DATA / f"{name}.csv", tests)
    if training:
        entries.write_runs(entries.DATA / f"{name}_training.csv", training)


# Stored data -------------------------------------------------------------------------------------------------------


def test_runs_are_read_as_written(tmp_path):
    runs = {("a", 2): scores_of([1.0, 2.0], [3.0, -4.25]),
            ("b", 1): {**scores_of([5.0, 6.0]), "goal": np.array([-1.0, 1.0])}}
    entries.write_runs(tmp_path / "a.csv", runs)
    again = entries.read_runs(tmp_path / "a.csv")
    assert list(again) == list(runs)
    for run, columns in runs.items():
        assert set(again[run]) == set(columns)
        for name, values in columns.items():
            np.testing.assert_allclose(again[run][name], values)
    assert entries.read_runs(tmp_path / "b.csv") == {}


@pytest.mark.parametrize("damage", [
    lambda lines: [*lines[:-1], lines[-1][:-3]], lambda lines: [lines[0], *lines[2:]], lambda lines: lines[1:],
    lambda lines: lines[:-1], lambda lines: [lines[0], "<<<<<<< HEAD\n", *lines[1:]],
    lambda lines: [lines[0], lines[1].rpartition(",")[0] + ",\n", *lines[2:]],
    lambda lines: ["x" + lines[0], *lines[1:]],
    lambda lines: [*lines[:2], lines[2].replace("2", "two"), *lines[3:]], lambda lines: []])
def test_damaged_data_is_one_message(damage, data, capsys):
    """Given cut, missing, additional or edited lines, then a command says so before it trains."""
    path = data / f"{NAME}.csv"
    entries.write_runs(path, {("a", seed): scores_of([1.0, 2.0, 3.0]) for seed in (1, 2)})
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    with pytest.raises(SystemExit):
        reproduce.main([NAME, "--update"])
    message = capsys.readouterr().err
    assert f"{NAME}.csv: expected a complete table" in message and message.count("\n") <= 3


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_have_valid_settings_and_report_few_seeds(name):
    entry = ENTRIES[name]
    for method in entry.methods if entry.settings else ():
        settings = script_settings(method.script, {**entry.settings, **method.settings})
        check_settings(settings.pop("algo"), settings)
        assert len(method.seeds) >= 3 or "seed" in entry.differs
    assert not entry.measure or hasattr(measurements, entry.measure)


def test_every_trained_entry_with_data_has_training_rows_and_a_figure():
    for name in filter(lambda name: ENTRIES[name].settings, entries.stored()):
        training = entries.read_training(name)
        assert all(seed in training[method] for method, runs in entries.read_tests(name).items() for seed in runs)
        assert (figures.FIGURES / f"{name}.svg").exists()


# Statistics and pages ----------------------------------------------------------------------------------------------


def test_intervals_need_three_seeds_and_contain_the_variation_over_tasks(data):
    """Given seeds with the means 2, 4 and 6, then the interval is Student's t of these numbers and of the tasks."""
    nothing = [0.0, 0.0]
    write(NAME, {**{("log_likelihood", seed): scores_of(2.0 * seed + np.array([-1.0, 1.0]),
                                                                   nothing, nothing, [10.0] * 2)
                    for seed in (1, 2, 3)},
                 ("likelihood_ratio", 2): scores_of([9.0, 9.0], nothing, nothing, [41.0, 41.0])})
    runs = entries.read_tests(NAME)["log_likelihood"]
    of_seeds, of_tasks = mean_interval(np.array([2.0, 4.0, 6.0])), mean_interval(np.array([3.0, 5.0]))
    expected = (4.0, np.hypot(of_seeds.half_width, of_tasks.half_width))
    np.testing.assert_allclose(entries.over_seeds(runs, "after_0"), expected)
    two = entries.over_seeds({seed: runs[seed] for seed in (1, 2)}, "after_0")
    assert two.mean == 3.0 and np.isnan(two.half_width)
    page = pages.page(NAME)
    assert "| log-likelihood | 3 of 10 | 0 | 4.0 ± 13.6 |" in page and "worst quarter" not in page
    assert "| likelihood ratio | 1 of 10 | 0 | 9.00 |" in page and "+31" not in page  # one common seed: no difference


def test_repeated_corners_have_equal_weights_and_do_not_vary():
    """A test repeats the four corners with unequal numbers; all corners of the environment are in the test."""
    goals = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    runs = {seed: {"after_0": seed + np.array([9.0, 11.0, 10.0, 2.0, 3.0, 5.0]), "goal": goals} for seed in (1, 2, 3)}
    assert entries.mean_of(runs[1], "after_0") == 6.0
    found, expected = entries.over_seeds(runs, "after_0"), mean_interval(np.array([6.0, 7.0, 8.0]))
    np.testing.assert_allclose(found, expected)


def test_tests_store_which_corner_a_task_is():
    corner, navigation = entries.ENTRIES["exploration_corner"], entries.ENTRIES["navigation"]
    tasks = [np.array(task) for task in ((2.0, -2.0), (-2.0, 2.0), (-2.0, -2.0), (2.0, -2.0), (2.0, 2.0))]
    assert reproduce.goal_column(corner, tasks)["goal"].tolist() == [2.0, 1.0, 0.0, 2.0, 3.0]
    assert reproduce.goal_column(navigation, tasks) == {}
    assert reproduce.goal_column(navigation, [-1.0, 1.0])["goal"].tolist() == [-1.0, 1.0]


def test_intervals_of_differences_contain_the_variation_over_tasks():
    """All seeds share 40 test tasks; 95% of the intervals contain the mean over all tasks, which is 0."""
    rng, found, of_seeds = np.random.default_rng(1), [], []
    for _ in range(400):
        returns = rng.normal(size=(5, 1)) + 10.0 * rng.normal(size=40)
        runs = {seed: {"after_0": row} for seed, row in enumerate(returns)}
        zeros = {seed: {"after_0": np.zeros(40)} for seed in range(5)}
        found.append(entries.over_seeds_and_tasks(entries.differences(runs, "after_0", zeros, "after_0")))
        of_seeds.append(mean_interval(returns.mean(axis=1)))
    covered, too_few = (np.mean([abs(mean) < half_width for mean, half_width in each]) for each in (found, of_seeds))
    assert 0.92 < covered < 0.99 and too_few < 0.75


def compared(monkeypatch, **values):
    """Adds an entry `x` with a measured value per method and seed."""
    methods = [Method(name, name.upper(), published=(10.0,), chance=5.0 if name == "c" else None) for name in values]
    monkeypatch.setitem(ENTRIES, "x", Entry("T", "Q", "S", "{a}", methods, columns=["value"], failed_below=9.0))
    write("x", {(method, seed): {"task": np.zeros(1), "value": np.array([value])}
                for method, found in values.items() for seed, value in enumerate(found)})


@pytest.mark.parametrize("values, expected, with_chance", [
    ([10.1, 9.9, 10.0], "reproduced (0.000 ± 0.248, margin 1)", "reproduced"),
    ([10.4, 9.6, 10.0], "reproduced (0.000 ± 0.994, margin 1)", "undecided"),
    ([12.0, 8.0, 10.0], "undecided (+0.00 ± 4.97, margin 1)", "undecided"),
    ([8.0, 8.2, 8.1], "not reproduced (-1.90 ± 0.25, margin 1)", "not reproduced"),
    ([12.0, 12.2, 12.1], "not reproduced (+2.10 ± 0.25, margin 1)", "not reproduced"),
    ([10.0], "undecided (too few seeds)", "undecided"), ([10.0, 10.0], "undecided (too few seeds)", "undecided")])
def test_a_published_value_is_reproduced_if_the_interval_lies_within_a_tenth_of_it(values, expected, with_chance, data,
                                                                                   monkeypatch):
    """With the return of random actions 5, the margin is a tenth of 10 - 5."""
    compared(monkeypatch, a=values, c=values)
    assert pages.fill("x", "{a - published}").replace("+0.000", "0.000") == expected
    assert pages.fill("x", "{c - published}").partition(" (")[0] == with_chance
    assert pages.headline("x")[2] == expected.partition(" (")[0]


def test_p_values_agree_with_the_intervals():
    """Without variation over tasks, the p-value is that of the t-test; an interval of level 1 - p ends at zero."""
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(1)
    of_seeds = rng.normal(1.0, size=(6, 1))
    assert entries.p_value(list(of_seeds)) == pytest.approx(ttest_1samp(of_seeds[:, 0], 0.0).pvalue, abs=1e-6)
    values = list(rng.normal(0.5, 1.0, (6, 40)) + of_seeds)
    interval = entries.over_seeds_and_tasks(values, 1.0 - entries.p_value(values))
    assert abs(interval.mean) == pytest.approx(interval.half_width, rel=1e-5)


def test_coverage_of_intervals_if_a_fifth_of_the_seeds_fails():
    """The overview states these numbers: failed seeds return ten standard deviations less."""
    rng, text = np.random.default_rng(1), (entries.HERE / "results.md").read_text(encoding="utf-8")
    for seeds, stated in ((3, 75), (5, 70), (10, 89)):
        returns = rng.normal(size=(seeds, 20_000)) - 10.0 * (rng.random((seeds, 20_000)) < 0.2)
        interval = mean_interval(returns)
        assert 100 * np.mean(abs(interval.mean + 2.0) < interval.half_width) == pytest.approx(stated, abs=1.5)
        assert f"{stated}%" in text


def test_no_text_claims_a_difference_between_maml_and_one_policy_for_all_tasks_on_velocities():
    """The README says that none was found."""
    assert pages.fill("half_cheetah_velocity", "{trpo_maml - all_tasks 1}").startswith("no difference was found")


def test_table_of_pretrained_policies_comes_from_their_records():
    lines = pretrained_files.table(mps.pretrained())
    assert pretrained_files.TABLE.read_text(encoding="utf-8").splitlines() == [*lines]


def test_comparisons_before_a_second_look_come_from_the_data():
    tests, entry = entries.read_tests("exploration_published"), ENTRIES["exploration_published"]
    first = {seed: tests["pro_mp"][seed] for seed in (1, 2, 3)}
    assert "no difference was found (+65.3 ± 84.0)" in entry.notes
    assert pages.difference_cell(tests["target_kl"], "after_3", first, "after_3") == "+65.3 ± 84.0"
    tests, entry = entries.read_tests("exploration_corner"), ENTRIES["exploration_corner"]
    for seeds, shown in ((range(1, 4), "and the log-likelihood ({})"), (range(4, 11), "which alone differ, too ({})")):
        ours, other = ({seed: tests[name][seed] for seed in seeds} for name in ("likelihood_ratio", "log_likelihood"))
        assert shown.format(pages.difference_cell(ours, "after_0", other, "after_0")) in entry.notes


@pytest.mark.parametrize("name, method, reference, column, number, text", [
    ("exploration_published", "likelihood_ratio", "log_likelihood", "after_3", 9, "page: no difference found ({})"),
    ("exploration_published", "target_kl", "pro_mp", "after_3", 9, "nine comparisons, no difference shown: {}"),
    ("maml_mdp", "maml_n10", "random_n10", "after_0", 8, "no difference shown after correction ({})"),
    ("exploration_momentum", "likelihood_ratio", "log_likelihood", "after_1", 4, "no difference shown: {}"),
    ("figure_2_half_cheetah_direction", "e_maml_vpg", "pro_mp", "after_1", 7, "no difference shown: {}"),
    ("half_cheetah_direction", "pro_mp_value_network", "pro_mp", "after_1", 6, "no difference shown: {}"),
])
def test_corrected_p_values_in_texts_come_from_the_data(name, method, reference, column, number, text):
    tests, entry = entries.read_tests(name), ENTRIES[name]
    found = entries.differences(tests[method], column, tests[reference], column)
    assert text.format(pages.p_text(number * entries.p_value(found))) in entry.answer + entry.notes


def test_claims_of_the_texts_are_expressions():
    """Answers and notes state differences as expressions of the data, so that they change with it."""
    for name in entries.stored():
        for text in (ENTRIES[name].answer, ENTRIES[name].notes):
            assert "{" not in pages.fill(name, text)
        assert 0 < len(pages.fill(name, ENTRIES[name].answer).split()) <= 40, name


def test_numbers_in_sentences_of_the_readme_come_from_the_data():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    direction = pages.fill("half_cheetah_direction", "{all_tasks - trpo_maml 1}").replace("-", "+")
    velocity = pages.fill("half_cheetah_velocity", "{trpo_maml - all_tasks 1}").split("(")[1].rstrip(")")
    of_make = entries.read_tests("minutes_half_cheetah_direction")["few_tasks"].values()
    lowest = min(run["after_1"][run["goal"] == goal].mean() for run in of_make for goal in (1.0, -1.0))
    after = pages.fill("minutes_half_cheetah_direction", "{few_tasks 1}")
    assert all(text in readme for text in (direction, velocity, after, f"{lowest:.0f} or more"))


def test_table_of_maml_and_one_policy_in_the_readme_comes_from_the_data():
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("| world |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    for world, (_, difference, p, steps, failed) in zip(reference.WORLDS, rows, strict=True):
        entry, tests = reference.chosen_entry(world)
        methods = {method.name.partition(",")[0]: method for method in entry.methods}
        compared = [(methods[name], tests[methods[name].name]) for name in ("trpo_maml", "all_tasks")]
        found = entries.differences(compared[0][1], "after_1", compared[1][1], "after_1")
        assert difference == pages.cell(entries.over_seeds_and_tasks(found), "+")
        assert f"p {p}" == pages.p_text(len(rows) * entries.p_value(found)).replace("= ", "")
        searched = reference.WORLDS[world].inner_lr
        marks = {searched[0]: " (-)", searched[-1]: " (+)"}
        values = [method.settings["inner_lr"] for method, _ in compared]
        assert steps == " and ".join(f"{value}{marks.get(value, '')}" for value in values)
        assert failed == " and ".join(reference_page.failed_in_a_task(entry, *each) or pages.failures(entry, *each)
                                      for each in compared)


def millions_until(name, method, published):
    """Returns the million steps until the mean return of 0.2 million steps reaches a published one, by seed, or NaN."""
    found = []
    for run in entries.read_training(name)[method].values():
        window = round(200_000 / run["n_timesteps"][0])
        means = np.convolve(run["Step_1-AverageReturn"], np.full(window, 1 / window), "valid")
        found.append([*run["n_timesteps"][window - 1:][means >= published] / 1e6, np.nan][0])
    return np.array(found)


@pytest.mark.parametrize("goal, published, with_few, with_many", [
    ("direction", 293.19, "{:.2f} to {:.2f} million steps with 6 tasks", "{:.2f} to {:.2f} million with 20 tasks"),
    ("velocity", -78.6, "{:.2f} to {:.2f} million steps with 6 tasks", "{:.2f} to {:.2f} million with nine seeds"),
])
def test_steps_to_the_published_return_with_few_tasks_come_from_the_data(goal, published, with_few, with_many):
    name = f"minutes_half_cheetah_{goal}"
    few, many = (millions_until(name, method, published) for method in ("few_tasks", "fast"))
    for values, shown in ((few, with_few), (many, with_many)):
        assert shown.format(np.nanmin(values), np.nanmax(values)) in ENTRIES[name].notes
    assert np.isnan(many).sum() == (goal == "velocity") and not np.isnan(few).any()
    if goal == "direction":
        ratio = mean_interval(np.log(few / many))
        assert "{:.2f} times as many (geometric mean, 95% interval {:.2f} to {:.2f}".format(
            *np.exp([ratio.mean, ratio.low, ratio.high])) in ENTRIES[name].notes


def test_table_of_target_kl_comes_from_the_data():
    text = (ROOT / "docs" / "algorithms" / "promp.rst").read_text(encoding="utf-8")
    rows = re.findall(r"\* - :doc:`../results/(\w+)`\n +- (.*)\n +- (.*)\n +- (.*)\n", text)
    assert sorted(name for name, *_ in rows) == sorted(
        name for name, entry in ENTRIES.items() if any(method.name == "target_kl" for method in entry.methods))
    below = []
    for name, *shown in rows:
        tests, first = entries.read_tests(name), ENTRIES[name].methods[0].name
        column = f"after_{ENTRIES[name].num_steps}"
        p = len(rows) * entries.p_value(entries.differences(tests["target_kl"], column, tests[first], column))
        below += [(name, pages.p_text(p))] if p < 0.05 else []
        cells = pages.fill(name, f"{{failed {first}}}|{{failed target_kl}}|{{target_kl - {first}}}").split("|")
        assert shown == [re.sub(r"no difference was found \((.*)\)", r"\1", cell) for cell in cells]
    assert below == [("minutes_half_cheetah_direction", "p = 0.0085")]
    assert "lower with it (p = 0.0085;" in text


def test_trainings_that_lost_their_adaptation_are_counted():
    """The answer states the counts, the notes the limit."""
    lost = {}
    for method, runs in entries.read_training("target_kl_half_cheetah").items():
        gains = [np.convolve(run["Step_1-AverageReturn"] - run["Step_0-AverageReturn"], np.full(20, 0.05), "valid")
                 for run in runs.values()]
        lost[method] = f"{sum(gain[-1] < 0.5 * gain.max() for gain in gains)} of {len(gains)}"
    assert "{fast} seeds (ten planned) ended below half of their best gain; with it, {target_kl} (".format(
        **lost) in ENTRIES["target_kl_half_cheetah"].answer


def test_maml_on_mdps_returns_a_smaller_fraction_of_the_optimum_than_published():
    """The notes of `maml_mdp` say so."""
    for method, episodes, published in (("maml_n10", "10", 0.563), ("maml_n25", "25", 0.591)):
        optimum = entries.over_seeds(entries.read_tests("mdp_references")["optimum"], episodes).mean
        ours = entries.over_seeds_and_tasks([run["after_0"] for run in entries.read_tests("maml_mdp")[method].values()])
        assert ours.mean + ours.half_width < published * optimum


def test_figure_shows_runs_the_published_points_that_training_reached_and_the_test_of_each_seed(data, monkeypatch):
    drawn, name = [], "figure_2_ant_direction"
    plot = figures.plot_comparison
    monkeypatch.setattr(figures, "plot_comparison", lambda panels, *args, points: (
        drawn.append((panels, points)), plot(panels, *args, points=points))[1])
    write(name, {("pro_mp", 1): scores_of([0.0], [1.0]), ("pro_mp", 2): scores_of([0.0], [5.0])},
          {("pro_mp", 1): trained(160), ("pro_mp", 2): trained(100)})
    figures.draw(name)
    [(panels, points)] = drawn
    assert list(panels) == ["return before adaptation", "return after adaptation"]
    assert list(panels["return after adaptation"]) == ["ProMP"]
    np.testing.assert_allclose(points["ProMP"][0], [13e6, 134.0])
    assert figures.dots(name) == {"ProMP": ([25.6e6, 16e6], [1.0, 5.0])}
    assert "dots: test of each seed" in (figures.FIGURES / f"{name}.svg").read_text()


def test_test_of_a_seed_is_in_the_last_panel_that_shows_its_method(data, monkeypatch):
    """The lowest panel contains only methods without adaptation steps."""
    axes, name, figure_axes = [], "half_cheetah_velocity", figures.style.figure_axes

    @contextlib.contextmanager
    def kept(*args, **kwargs):
        with figure_axes(*args, **kwargs) as found:
            yield found
            axes[:] = [[line.get_ydata().tolist() for line in each.lines] for each in found.flat]

    monkeypatch.setattr(figures.style, "figure_axes", kept)
    without = {key: values for key, values in trained(3).items() if not key.startswith("Step_1")}
    write(name, {("trpo_maml", 1): scores_of([0.0], [7.0]), ("all_tasks", 1): scores_of([4.0], [5.0])},
          {("trpo_maml", 1): trained(3), ("all_tasks", 1): without})
    figures.draw(name)
    assert [[7.0] in lines for lines in axes] == [False, True, False]
    assert [[5.0] in lines for lines in axes] == [False, False, True]


def test_figure_compares_episodes_of_rl2_with_adaptation_steps(data):
    trial = {"Step_0-FirstEpisodeReturn": np.full(3, -1.0), "Step_0-LastEpisodeReturn": np.full(3, 6.0)}
    rl2 = {**{key: values for key, values in trained(3).items() if not key.startswith("Step_1")}, **trial}
    write("rl2_navigation", {}, {("pro_mp", 1): trained(3, 4.0, 5.0), ("rl2", 1): rl2})
    panels = figures.curves("rl2_navigation")
    assert {panel: [curve[0][1][-1] for curve in curves.values()] for panel, curves in panels.items()} == {
        "return before adaptation": [-1.0, 4.0], "return after adaptation": [6.0, 10.0]}


@pytest.mark.parametrize("name, method, drop, expected", [
    ("maml_mdp", "maml_n25", "", 5 * (10.0 + 12.0)), ("rl2_bandits", "n100_k5", "Step_1", 10.0)])
def test_figure_shows_returns_of_whole_trials(name, method, drop, expected, data):
    """A trial of MAML has 5 paths at each step of adaptation; each of the two paths of RL2 is a trial."""
    run = {**trained(3, 10.0), "Step_1-AverageReturn": np.full(3, 12.0)}
    write(name, {}, {(method, 1): {key: values for key, values in run.items() if not (drop and key.startswith(drop))}})
    [(label, curves)] = figures.curves(name).items()
    assert label == "return of a trial" and [curve[0][1][-1] for curve in curves.values()] == [expected]


# Commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_entry_is_trained_and_compared_and_stored_only_with_update(data, small_entry, tmp_path, capsys):
    arguments = [NAME, "--output", str(tmp_path / "runs"), "--processes", "1"]
    assert reproduce.main(arguments) == 0
    printed = capsys.readouterr().out
    assert re.search(r"log_likelihood +published +0.25 +0.5", printed) and "now" in printed and "stored" not in printed
    tests = entries.read_runs(tmp_path / "runs" / NAME / "test.csv")
    assert tests["log_likelihood", 1]["after_3"].shape == (40,)
    assert not list(data.iterdir()) and not list(pages.DOCS.iterdir())
    assert reproduce.main([*arguments, "--update", "--seeds", "1", "1"]) == 0
    assert "1 of 1 runs complete" in capsys.readouterr().out
    assert sorted(os.listdir(data)) == [f"{NAME}.csv", f"{NAME}_training.csv", "machines.json"]
    assert sorted(os.listdir(pages.DOCS / "results")) == [f"{NAME}.md"]
    assert (figures.FIGURES / f"{NAME}.svg").exists()
    np.testing.assert_allclose(entries.read_tests(NAME)["log_likelihood"][1]["after_3"],
                               tests["log_likelihood", 1]["after_3"])
    assert {"LossBefore", "LossAfter"} <= entries.read_training(NAME)["log_likelihood"][1].keys()


@pytest.mark.thorough(ci="bandit_references")
@pytest.mark.parametrize("name", ["navigation", "rl2_bandits", "bandit_references"])
def test_smoke_run_takes_seconds_and_changes_nothing(name, data, tmp_path, capsys):
    methods = [method.name for method in ENTRIES[name].methods][:1]
    assert reproduce.main([name, "--smoke", "--output", str(tmp_path / "runs"), "--methods", *methods]) == 0
    assert (tmp_path / "runs" / f"{name}-smoke" / "test.csv").exists() and not list(data.iterdir())


def test_a_command_keeps_the_tests_of_earlier_commands(data, tmp_path):
    for method in ("random", "ucb1"):
        assert reproduce.main(["bandit_references", "--smoke", "--output", str(tmp_path), "--methods", method]) == 0
    tests = entries.read_runs(tmp_path / "bandit_references-smoke" / "test.csv")
    assert list(tests) == [("random", 1), ("ucb1", 1)]


def test_repetition_on_another_kernel_is_reported(data, tmp_path, monkeypatch, capsys):
    """Given a stored result, then repeating it reports another kernel, or one that was not recorded."""
    name = "bandit_references"
    measured = {("random", 1): {"task": np.zeros(1), ENTRIES[name].columns[0]: np.ones(1)}}
    monkeypatch.setattr(reproduce, "measure", lambda *arguments: measured)
    monkeypatch.setattr(figures, "draw", lambda *arguments: None)
    command = [name, "--output", str(tmp_path), "--methods", "random", "--seeds", "1"]
    for kernel, flags, is_reported in (
            ("Haswell", ["--update"], False), ("Haswell", [], False), ("SkylakeX", [], True)):
        monkeypatch.setattr(run_folder, "blas_kernels", lambda kernel=kernel: kernel)
        assert reproduce.main([*command, *flags]) == 0
        assert ("other kernel: numbers may differ from the stored ones (now SkylakeX, tensorflow"
                in capsys.readouterr().out) == is_reported
    assert entries.read_machines()[f"{name}/random/1"].startswith("Haswell, tensorflow ")
    (data / "machines.json").unlink()
    assert reproduce.main(command) == 0 and "numbers may differ" in capsys.readouterr().out


def test_policies_of_a_seed_without_data_cannot_be_measured(data, tmp_path, capsys):
    (data / "rl2_bandits.csv").write_text("method,seed,task,after_0\nn10_k5,1,0,6.5\n")
    with pytest.raises(SystemExit, match="2"):
        reproduce.main(["rl2_minus_references", "--smoke", "--output", str(tmp_path), "--seeds", "11"])
    assert "--seeds: expected one of 1, got 11" in capsys.readouterr().err


def test_a_measurement_has_one_value_or_those_of_several_tasks(monkeypatch):
    monkeypatch.setattr(measurements, "rl2_minus", lambda *arguments: {"n10_k5": np.array([1.0, 2.0, 6.0])})
    monkeypatch.setattr(measurements, "of_mdps", lambda *arguments: {"10": 4.0})
    for name, task, column, values in (("rl2_minus_references", [0, 1, 2], "n10_k5", [1, 2, 6]),
                                       ("mdp_references", [0], "10", [4])):
        entry = ENTRIES[name]
        found = reproduce.measure(entry, [(entry.methods[0], 7)])[entry.methods[0].name, 7]
        assert found["task"].tolist() == task and found[column].tolist() == values


def test_first_step_of_a_test_has_the_size_of_training(monkeypatch):
    evaluator, run = mock.MagicMock(), mock.MagicMock()
    evaluator.algo.inner_lr = 0.2
    evaluator.evaluate.return_value.task_returns = np.zeros((40, 4))
    evaluator.evaluate.return_value.tasks = [[np.zeros(2)] * 40]
    monkeypatch.setattr(reproduce.mps, "load_evaluator", lambda *arguments, **more: evaluator)
    for name in ("half_cheetah_direction", "partial_adaptation_direction"):
        reproduce.test(ENTRIES[name], ENTRIES[name].methods[1], run, {})
    first, second = (call.args for call in evaluator.evaluate.call_args_list)
    assert first == (40, 3, [0.2, 0.1]) and second == (40, 3, None)


@pytest.mark.parametrize("kind, factor", [(MetaEvaluator, 5), (TrialEvaluator, 1)])
def test_return_of_a_trial_is_that_of_all_paths(kind, factor, monkeypatch):
    """Gradient steps: all paths of all steps. RL2: all episodes; the paths of a task are different trials."""
    evaluator = mock.Mock(spec=kind, rollouts_per_meta_task=5)
    evaluator.evaluate.return_value.task_returns = np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 0.5]])
    monkeypatch.setattr(reproduce.mps, "load_evaluator", lambda *arguments, **more: evaluator)
    entry = ENTRIES["maml_mdp"]
    found = reproduce.test(entry, entry.methods[0], mock.MagicMock())
    np.testing.assert_array_equal(found["after_0"], factor * np.array([7.0, 1.5]))


@pytest.mark.thorough
def test_success_rates_come_from_metaworld(data, monkeypatch, tmp_path):
    """The evaluation of the metaworld package measures each number of steps; its goals are the tasks."""
    rounds = [0.0, 0.25, 0.5]
    monkeypatch.setattr(metaworld_evaluation, "evaluate_on_metaworld", lambda evaluator, num_goals, adaptation_steps:
                        mock.Mock(rounds=[rate + adaptation_steps for rate in rounds]))
    monkeypatch.setattr(reproduce.mps, "load_evaluator", mock.MagicMock())
    entry = ENTRIES["meta_world_reach"]
    found = reproduce.test(entry, entry.methods[0], mock.MagicMock())
    np.testing.assert_allclose([found["after_0"], found["after_1"]], [rounds, [1.0, 1.25, 1.5]])


@pytest.mark.thorough
@pytest.mark.slow
def test_failed_run_is_reported(data, small_entry, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(small_entry.settings, "adapt_params", ["nothing"])
    assert reproduce.main([NAME, "--output", str(tmp_path / "runs"), "--update"]) == 1
    assert "adapt_params" in capsys.readouterr().out and not list(data.iterdir())


@pytest.mark.parametrize("flags, said", [
    ([NAME, "--methods", "likelihod_ratio"], "log_likelihood"), ([NAME, "--seeds", "-1"], "--seeds"),
    ([NAME, "--processes", "0"], "processes: expected"),
    (["navigatoin"], "did you mean 'navigation'?"), ([], "NAME: expected"),
    ([NAME, "--smoke", "--update"], "--update: expected no --smoke")])
def test_invalid_arguments_are_reported(flags, said, tmp_path, capsys):
    with pytest.raises(SystemExit):
        reproduce.main([*flags, "--output", str(tmp_path)])
    assert said in capsys.readouterr().err


def test_interrupted_runs_change_nothing(data, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(reproduce, "train_all", lambda *arguments, **how: ([], True))
    assert reproduce.main([NAME, "--output", str(tmp_path / "runs"), "--update"]) == 130
    assert "run the same command to resume" in capsys.readouterr().out and not list(data.iterdir())


def test_list_contains_every_entry(capsys):
    assert reproduce.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(ENTRIES)
    assert re.match(r"navigation +\d+ +\d+  Does", lines[1])


# Files of the checkout ---------------------------------------------------------------------------------------------


def write_again(folder):
    """Writes all pages to a folder; returns pairs of the stored and the new texts."""
    readme = Path(shutil.copy(pages.README, folder))
    pages.write(folder, readme)
    reference_page.write(folder)
    written = {path.relative_to(folder): path for path in folder.rglob("*.md") if path != readme}
    assert set(written) == {path.relative_to(pages.DOCS) for path in [
        pages.DOCS / "results.md", *(pages.DOCS / "results").glob("*.md")]}
    files = [(pages.README, readme), *((pages.DOCS / name, path) for name, path in written.items())]
    return [[path.read_text(encoding="utf-8") for path in pair] for pair in files]


def test_pages_and_readme_equal_the_stored_data(tmp_path):
    """Every number of the pages is generated, from exact sums: writing them again changes nothing."""
    for stored, now in write_again(tmp_path):
        assert stored == now
    table = pages.README.read_text(encoding="utf-8").partition("<!-- results -->\n")[2].partition("\n<!-- end -->")[0]
    assert 3 < len(table.splitlines()) <= 2 + 8


def test_rounding_differences_change_at_most_the_last_digit_of_a_page(tmp_path, monkeypatch):
    """Given stored values with relative errors of 1e-13, then no sentence changes. Counts and goals are exact."""
    rng, read = np.random.default_rng(1), entries.read_runs

    @functools.lru_cache(maxsize=None)  # equal errors in each call
    def read_with_errors(path):
        return {run: {name: values if name in ("task", "goal", "configuration", "Itr", "n_timesteps") else
                      values * (1.0 + 1e-13 * rng.uniform(-1.0, 1.0, len(values))) for name, values in columns.items()}
                for run, columns in read(path).items()}

    monkeypatch.setattr(entries, "read_runs", read_with_errors)
    number = re.compile(r"-?\d+\.?\d*")
    for stored, now in write_again(tmp_path):
        assert number.sub("x", stored) == number.sub("x", now)
        for before, after in zip(number.findall(stored), number.findall(now), strict=True):
            unit = 10.0 ** -len(before.partition(".")[2])
            assert abs(float(before) - float(after)) < 1.01 * unit, (before, after)
