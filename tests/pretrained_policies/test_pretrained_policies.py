"""Pretrained policies agree with the stored data of their experiments, and evaluation repeats their test scores."""
import html
import re

import numpy as np
import pytest

import meta_policy_search as mps
from experiments.reproduction import entries, pretrained_files, reference
from experiments.reproduction.entries import ENTRIES
from meta_policy_search import pretrained_policies
from meta_policy_search.pretrained_policies import DATA
from meta_policy_search.registry import get_algorithm
from meta_policy_search.run import settings_of_algorithm
from meta_policy_search.utils.statistics import mean_interval
from tests.test_imports import run_python

RECORDS = {record.name: record for record in mps.pretrained()}
BY_ENV = {record.env: name for name, record in RECORDS.items() if record.score == "mean return"}  # one for each


@pytest.fixture(scope="module")
def chosen():
    """The entry, method and test of each policy."""
    found = {}
    for entry, tests in [*((ENTRIES[name], entries.read_tests(name)) for name in entries.stored()),
                         *map(reference.chosen_entry, reference.stored_worlds())]:
        for method, seed in pretrained_files.choose(entry, tests):
            assert method.pretrained not in found
            found[method.pretrained] = entry, method, tests[method.name][seed]
    return found


def test_package_contains_the_policies_of_all_entries(chosen):
    assert list(RECORDS) == sorted(chosen)
    assert {path.relative_to(DATA).with_suffix("").as_posix() for path in DATA.glob("*/*.npz")} == set(RECORDS)
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 1.5 * 2 ** 20


@pytest.mark.parametrize("name", RECORDS)
def test_record_equals_the_data_of_the_experiment(name, chosen):
    entry, method, test = chosen[name]
    record = RECORDS[name]
    columns = entries.score_columns(entry)[:len(record.means)]
    expected = mean_interval(np.transpose([test[column] for column in columns]))
    np.testing.assert_allclose((record.means, record.half_widths), expected, atol=5.1e-5)
    assert len(record.means) == 1 + min(entry.num_steps, record.settings.get("num_inner_grad_steps", 1))
    for key, value in {**entry.settings, **method.settings}.items():
        assert record.settings.get(key, value) == value, key
    assert record.settings.keys() <= settings_of_algorithm(get_algorithm(record.algo)).keys()


def test_table_of_the_page_equals_the_records():
    table = list(pretrained_files.table(mps.pretrained()))
    assert pretrained_files.TABLE.read_text(encoding="utf-8").splitlines() == table


@pytest.mark.slow
def test_policies_of_new_runs_are_written(tmp_path, monkeypatch):
    """Given a tested run of an entry with data, then its record, its weights and its row are written."""
    for name in ("DATA", "TABLE"):
        monkeypatch.setattr(pretrained_files, name, tmp_path / name)
    entry, tests = reference.chosen_entry("navigation")
    (method,) = [method for method in entry.methods if method.pretrained == "navigation/trpo_maml"]
    run = mps.train("MetaPointEnvNavigation", "trpo_maml", n_itr=1, meta_batch_size=2, rollouts_per_meta_task=2,
                    max_path_length=5, hidden_sizes=(4,), dump_path=tmp_path / "runs" / f"{method.name},seed=201")
    (tmp_path / "DATA").mkdir()
    for seed in (202, 201):
        pretrained_files.update(entry, tests, [(method.name, seed)], tmp_path / "runs", "train {method} {seed}")
        assert (tmp_path / "DATA" / "navigation").exists() == (seed == 201)  # the run was tested
    assert '"command": "train trpo_maml 201"' in (tmp_path / "DATA" / "policies.json").read_text()
    weights = np.load(tmp_path / "DATA" / "navigation" / "trpo_maml.npz")
    assert all(np.array_equal(value, weights[key]) for key, value in run.policy.get_param_values().items())
    monkeypatch.setattr(pretrained_policies, "DATA", tmp_path / "DATA")
    loaded = mps.load_pretrained("navigation/trpo_maml").policy.get_param_values()
    assert all(np.array_equal(value, weights[key]) for key, value in loaded.items())
    assert '"hidden_sizes": [4]' in (tmp_path / "DATA" / "policies.json").read_text()
    assert "``navigation/trpo_maml``" in (tmp_path / "TABLE").read_text(encoding="utf-8")


def test_loaded_policy_has_the_weights_and_settings_of_its_training():
    """Its name ignores case, hyphens and underscores."""
    state = np.random.get_state()[1].copy()
    evaluator = mps.load_pretrained("Navigation/TRPO-MAML")
    weights = np.load(DATA / "navigation" / "trpo_maml.npz")
    assert all(np.array_equal(value, weights[key]) for key, value in evaluator.policy.get_param_values().items())
    assert evaluator.policy is evaluator.algo.policy
    assert (evaluator.name, evaluator.rollouts_per_meta_task, evaluator.algo.inner_lr, evaluator.max_path_length) == (
        "navigation/trpo_maml", 20, 1.0, 100)
    assert isinstance(evaluator.sample_processor.baseline, mps.LinearFeatureBaseline)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_unknown_name_raises_with_the_closest_name():
    with pytest.raises(ValueError, match="name: expected one of [0-9]+ names, got 'navigation/trpo'; did you mean "
                                         "'navigation/trpo_maml'"):
        mps.load_pretrained("navigation/trpo")
    with pytest.raises(ValueError, match="name: expected one of .*, got 3"):
        mps.load_pretrained(3)


def test_list_is_shown_as_a_table_on_one_screen():
    policies = mps.pretrained()
    lines = repr(policies).splitlines()
    assert len(lines) < 24 and max(map(len, lines)) <= 120
    assert any(re.fullmatch(r"navigation +anil, boil, .*, vpg_maml", line) for line in lines)
    assert policies._repr_html_() == f"<pre>{html.escape(repr(policies))}</pre>" and isinstance(policies, list)


def test_listing_prints_a_table_without_tensorflow():
    done = run_python("""
import sys
import meta_policy_search as mps
print(*mps.pretrained(), sep="\\n")
assert "tensorflow" not in sys.modules
""")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    (line,) = [line for line in lines if line.startswith("navigation/trpo_maml ")]
    assert line.split(maxsplit=1)[1].strip() == (
        "mean return          -40.35 +- 3.89 -> -11.94 +- 2.13 (adaptation steps: 1)")
    assert len(lines) == len(RECORDS)
    assert next(line for line in lines if line.startswith("navigation/rl2 ")).endswith("-3.61 +- 0.81 (episodes: 2)")


def assert_repeats(evaluation, record):
    """The means lie in the stored intervals, which are widened according to the number of tasks.

    Paths of the same seed differ between processors, and with fewer tasks the seed samples other tasks.
    """
    widening = np.sqrt(record.num_tasks / len(evaluation.task_returns))
    tolerance = np.maximum(np.array(record.half_widths) * widening, 0.5)
    assert np.all(np.abs(evaluation.mean_return.mean - record.means) <= tolerance), evaluation


@pytest.mark.parametrize("name", BY_ENV.values())
@pytest.mark.thorough(but="pendulum_mass/promp",
                      ci=("navigation/vpg_maml", "half_cheetah_direction/vpg_maml", "point_momentum_long/promp"))
def test_evaluation_agrees_with_the_table(name):
    assert_repeats(mps.load_pretrained(name).evaluate(tasks=5), RECORDS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if record.score == "success rate"])
def test_evaluation_on_metaworld_repeats_the_table(name):
    pytest.importorskip("metaworld")
    from experiments.metaworld_evaluation import evaluate_on_metaworld

    rate = evaluate_on_metaworld(mps.load_pretrained(name), num_goals=20).success_rate
    assert abs(rate - RECORDS[name].means[-1]) <= RECORDS[name].half_widths[-1] * np.sqrt(RECORDS[name].num_tasks / 20)
