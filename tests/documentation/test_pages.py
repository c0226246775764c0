"""The documentation agrees with the code."""
import ast
import re
import runpy
import sys
import types

import pytest

from meta_policy_search import MetaPointEnvCornerGoals, ProMP, get_env_class, logger, meta_algos
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.run import build_trainer
from tests.documentation.test_execution import COMMANDS, DOCS, PAGES, ROOT, blocks_of


class Succeeding(MetaPointEnvCornerGoals):
    """Reports for each step whether it is a success."""

    def step(self, action):
        *answer, info = super().step(action)
        return (*answer, {**info, "success": True})


def columns_of(env, algo, **settings):
    """Returns the columns of one iteration; `Step_i-` stands for every adaptation step."""
    rows = []
    trainer = build_trainer(env, algo, n_itr=1, callbacks=[lambda trainer, row: rows.append(row)], max_path_length=3,
                            **settings)
    trainer.train(*[1, 3] * (algo in ("cem", "cma_es", "ddpg")))
    trainer.sampler.close()
    return {re.sub(r"_adapt_\d+$", "_adapt_i", re.sub(r"^Step_\d+-", "Step_i-", column)) for column in rows[0]}


def documented_columns(page, end="\n\n\n\n"):
    cells = re.findall(r"^   \* - (``.*)$", (DOCS / page).read_text().partition(end)[0], flags=re.MULTILINE)
    return set(re.findall(r"``([^`]+)``", " ".join(cells)))


@pytest.mark.thorough
def test_documented_columns_equal_logged_columns():
    pytest.importorskip("ray")
    logger.set_level(logger.DISABLED)
    tiny = {"meta_batch_size": 2, "rollouts_per_meta_task": 2}
    logged = columns_of("HalfCheetahRandVelEnv", "promp", diagnostics=True, **tiny)
    for env, algo, settings in (
            ("MetaPointEnvNavigation", "trpo_maml", {"task_sampler": "roml"}), ("MetaTabularMDPEnv", "vpg_maml", {}),
            ("AntRandDirecEnv", "vpg_maml", {"target_kl": 1.0}), (Succeeding(), "vpg_maml", {}),
            ("MetaPointEnv", "vpg_maml", {"parallel": "ray"}), ("MetaPointEnv", "rl2", {"hidden_size": 2})):
        logged |= columns_of(env, algo, **tiny, **settings)
    assert logged == documented_columns("columns.rst", "Evaluations during training\n")


def test_documented_columns_of_single_task_algorithms_equal_logged_columns():
    logged = {"SuccessRate"}.union(*(columns_of("MetaPointEnv", algo, **settings) for algo, settings in (
        ("cem", {"n_samples": 20}), ("cma_es", {}), ("ddpg", {"min_buffer_size": 1, "buffer_size": 10}))))
    others = {column for column in logged if column.startswith("Evaluation-")}
    assert (logged - others) | {"Evaluation-AverageReturn"} == documented_columns("single_task.rst")


def test_examples_use_an_environment_that_every_algorithm_learns():
    """`MetaPointEnvCorner` has a sparse reward, with which ProMP hardly learns by default."""
    examples = [*COMMANDS, *(block for page in PAGES for block in blocks_of(page)),
                *(path.read_text() for path in (DOCS / "notebooks").glob("*.ipynb"))]
    assert not [example for example in examples if re.search(r"\bMetaPointEnvCorner\b", example)]


def test_every_environment_and_algorithm_has_a_page():
    pages = [*(DOCS / "environments").glob("*.rst"), DOCS / "meta_world.rst"]
    environments = "".join(path.read_text() for path in pages)
    for name in BUILT_IN:
        assert f".{get_env_class(name).__name__}\n" in environments, name
    algorithms = "".join(path.read_text() for path in (DOCS / "algorithms").glob("*.rst"))
    for name in set(meta_algos.__all__) - {"AdaptationStep", "MAMLAlgo", "MetaAlgo", "MetaObjective"}:
        assert f"autoclass:: meta_policy_search.meta_algos.{name}\n" in algorithms


TESTED = re.compile(r"^([\w-]+) +([\d.]+) +([\d.]+)$", flags=re.MULTILINE)  # rows of the table of versions


def test_installation_page_lists_extras_and_lower_bounds_of_setup():
    page, setup = (DOCS / "installation.rst").read_text(), ast.parse((ROOT / "setup.py").read_text())
    values = {node.targets[0].id: node.value for node in setup.body if isinstance(node, ast.Assign)}
    extras = set(re.findall(r"^   \* - ``([\w-]+)``$", page, flags=re.MULTILINE))
    assert extras == {key.value for key in values["EXTRAS"].keys}
    bounds = dict(re.split("[>=]=", ast.literal_eval(name)) for name in values["DEPENDENCIES"].elts)
    listed = {name: lowest for name, lowest, _ in TESTED.findall(page)}
    assert listed == {"Python": "3.10", **bounds}


def test_all_files_name_the_tested_versions_of_the_installation_page():
    tested = {name: bounds for name, *bounds in TESTED.findall((DOCS / "installation.rst").read_text())}
    lowest, latest = tested["Python"]
    setup, readme = ((ROOT / name).read_text() for name in ("setup.py", "README.md"))
    minors = range(int(lowest.split(".")[1]), int(latest.split(".")[1]) + 1)
    assert re.findall(r"Python :: (3\.\d+)", setup) == [f"3.{minor}" for minor in minors]
    assert f'python_requires=">=3.{minors[0]},<3.{minors[-1] + 1}"' in setup
    for path in (".ci/run", "CONTRIBUTING.md", "Makefile", "README.md", "docs/index.rst", "docs/installation.rst"):
        text = (ROOT / path).read_text()
        named = re.findall(r"(3\.\d+) to (3\.\d+)(?![\d)])", text)  # mujoco-py has other versions, in parentheses
        assert set(named) == {(lowest, latest)} and f"{lowest} or newer" not in text, path
    for name, *versions in re.findall(r"(TensorFlow|NumPy|MuJoCo) ([\d.]+) and (\d+\.\d+)", readme):
        assert versions == [".".join(version.split(".")[:2]) for version in tested[name.lower()]]


def test_readme_and_quick_start_name_the_same_duration_of_make_train():
    (readme,) = re.findall(r"^make train .*, (.*) on two cores$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    (page,) = re.findall(r"of ProMP in (.*) on two cores", (DOCS / "quickstart.rst").read_text())
    assert page == readme and "minutes on" not in (ROOT / "Makefile").read_text()


def test_pages_named_in_sources_exist():
    named = {page for folder in ("meta_policy_search", "experiments", "benchmarks")
             for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".json", ".md")
             for page in re.findall(r"\bdocs/[\w/]+\.(?:md|rst)\b", path.read_text(encoding="utf-8"))}
    assert named and not [page for page in named if not (ROOT / page).exists()]


def test_hosted_pages_of_a_branch_have_links_that_edit_them(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # conf.py extends it
    assert "html_theme_options" not in runpy.run_path(str(DOCS / "conf.py"))
    for name, value in {"VERSION_TYPE": "branch", "GIT_CLONE_URL": "https://example.org/a/b.git",
                        "GIT_IDENTIFIER": "main"}.items():
        monkeypatch.setenv(f"READTHEDOCS_{name}", value)
    conf = runpy.run_path(str(DOCS / "conf.py"))
    assert conf["html_theme_options"] == {"source_repository": "https://example.org/a/b", "source_branch": "main",
                                          "source_directory": "docs/"}
    for page, suffix in (("index", ".rst"), ("api/generated/a", "")):  # generated pages are not in the repository
        context = {"page_source_suffix": ".rst"}
        conf["hide_edit_link"](None, page, "page.html", context, None)
        assert context == {"page_source_suffix": suffix}


@pytest.mark.parametrize("what, lines, expected", [
    ("function", ["Counts.", "", "Returns:", "    Two numbers: a and b."], ":returns: Two numbers: a and b."),
    ("property", ["Two numbers: a and b."], "Two numbers: a and b."),
])
def test_descriptions_with_a_colon_are_kept_whole(what, lines, expected, monkeypatch):
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    monkeypatch.setattr(sys, "path", [*sys.path])
    runpy.run_path(str(DOCS / "conf.py"))["keep_descriptions_whole"](None, what, "f", None, None, lines)
    assert expected in str(napoleon.GoogleDocstring(lines, napoleon.Config(), what=what, name="f")).splitlines()


def test_table_of_default_settings_is_read_from_signatures_and_scripts():
    pytest.importorskip("docutils")
    module = runpy.run_path(str(DOCS / "_ext" / "default_settings.py"))
    rows = {row[0]: row[1:] for row in module["default_rows"]()}
    assert rows["``clip_eps``"] == ["0.2", "", "0.3"] and rows["``hidden_sizes``"] == ["(32, 32)", "(64, 64)", ""]
    assert rows["``exploration``"] == ["False; EMAML: True", "", ""] and "``seed``" not in rows
    rows = {row[0]: row[1:] for row in module["train_rows"]()}
    assert rows["``discount``"] == ["MetaSampleProcessor", "0.99", "discount factor per step, in [0, 1]"]
    assert rows["``meta_batch_size``"][0] == "MetaGaussianMLPPolicy, MetaSampler, ProMP" and "``seed``" not in rows


def documented():
    """A function with a docstring."""


def undocumented():
    pass


class Documented:
    """A class with a docstring."""

    def method(self):
        pass

    def _private(self):
        pass


def test_undocumented_public_names_are_found():
    """The check reports names without a docstring or without an API reference entry; one entry per object suffices."""
    missing = runpy.run_path(str(DOCS / "_ext" / "public_names.py"))["missing"]
    module, package = types.ModuleType("package.module"), types.ModuleType("package")
    for value in (documented, undocumented, Documented):
        value.__module__ = module.__name__
        setattr(module, value.__name__, value)
    module._hidden, package.documented, package.__all__ = undocumented, documented, ["documented"]
    faults = ["package.module.Documented.method has no docstring", "package.module.undocumented has no docstring"]
    both, entry = [module, package], "package.module.Documented"
    assert missing(both, ["package.documented", entry]) == faults
    assert missing(both, [entry]) == sorted([*faults, "package.documented is not in the API reference"])
    assert missing(both, [entry], ["*.documented"]) == faults


def test_class_page_links_each_inherited_member_once(monkeypatch):
    """The page of ProMP names each inherited method once, with the class that documents it."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    module = runpy.run_path(str(DOCS / "_ext" / "inherited.py"))
    names = {module["place"](base): names for base, names in module["inherited"](ProMP)}
    assert "get_step_sizes" in names["meta_policy_search.meta_algos.MAMLAlgo"]
    assert {"adapt", "with_meta_batch_size"} <= set(names["meta_policy_search.meta_algos.MetaAlgo"])
    every = [name for of_base in names.values() for name in of_base]
    assert len(every) == len(set(every)) and "meta_objective" not in every
