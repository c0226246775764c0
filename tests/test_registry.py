"""Algorithms are found by name: built-in algorithms and algorithms that a user registers."""
import pytest

import meta_policy_search as mps
from meta_policy_search import registry
from meta_policy_search.plotting import describe_run


class MyProMP(mps.ProMP):
    """A user-defined algorithm."""


@pytest.fixture(autouse=True)
def names(monkeypatch):
    monkeypatch.setattr(registry.ALGORITHMS, "entries", dict(registry.ALGORITHMS.entries))


@pytest.mark.thorough
def test_registered_algorithm_trains_by_name_and_has_a_plot_title(tmp_path):
    mps.register_algorithm("my_promp", MyProMP, title="My ProMP")
    run = mps.train("MetaPointEnvCorner", "my_promp", n_itr=1, dump_path=tmp_path / "run", log_formats=["csv"],
                    meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=5, hidden_sizes=(4,))
    assert type(run.trainer.algo) is MyProMP
    assert describe_run(run.folder).startswith("My ProMP on MetaPointEnvCorner")
    assert type(mps.load_run(run.folder).trainer.algo) is MyProMP


@pytest.mark.parametrize("other", ["MyProMP", dict])
def test_other_objects_than_classes_of_algorithms_are_refused(other):
    with pytest.raises(TypeError, match="algo_class: expected a subclass of MetaAlgo or RLAlgorithm, got .*(MyP|dict)"):
        mps.register_algorithm("mine", other)


@pytest.mark.parametrize("part, value, message", [
    ("sample_processor_cls", mps.MetaSampleProcessor("ZeroBaseline"), "expected a class, got MetaSampleProcessor"),
    ("optimizer_cls", mps.MAMLFirstOrderOptimizer(), "expected a class, got MAMLFirstOrderOptimizer"),
    ("policy_cls", mps.MetaGaussianMLPPolicy,
     r"expected a class method policy_cls\(is_discrete\), got MetaGaussianMLPPolicy"),
])
def test_algorithm_with_a_wrong_part_is_refused(part, value, message):
    with pytest.raises(TypeError, match=f"^Own.{part}: {message}"):
        type("Own", (mps.VPGMAML,), {part: value})


def test_titles_are_found_by_name_and_class():
    mps.register_algorithm("my_promp", MyProMP)
    names = ("trpo_maml", "TRPOMAML", "e_maml", "MyProMP", "x")
    titles = {name: registry.title_of(name) for name in names}
    assert titles == {"trpo_maml": "TRPO-MAML", "TRPOMAML": "TRPO-MAML", "e_maml": "E-MAML",
                      "MyProMP": "MyProMP", "x": "x"}
