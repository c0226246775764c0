"""The documentation agrees with the code."""
import ast
import importlib
import operator
import re
import runpy
import sys
import types

import numpy as np
import pytest

from meta_policy_search import meta_algos
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner, TrialEnv, get_env_class, make_env
from meta_policy_search.envs.registry import BUILT_IN
from meta_policy_search.meta_algos import RL2, TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import GaussianGRUPolicy, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler, TrialSampleProcessor
from meta_policy_search.utils import logger
from meta_policy_search.utils.gym_import import gym
from tests.helpers.documentation import DOCS

COLUMNS_PAGE = DOCS / "columns.rst"
NUM_TASKS, NUM_ROLLOUTS, NUM_STEPS = 2, 2, 3


class Succeeding(MetaPointEnvCorner):
    """Reports for each step whether it is a success."""

    def step(self, action):
        *answer, info = super().step(action)
        return (*answer, {**info, "success": True})


def columns_of_trials():
    """Columns that one iteration of RL2 logs."""
    env = TrialEnv(MetaPointEnvCorner(), 2, NUM_STEPS)
    policy = GaussianGRUPolicy.for_env(env, meta_batch_size=NUM_TASKS, hidden_size=2)
    with MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, env.trial_length) as sampler:
        row = Trainer(RL2(policy, NUM_TASKS), env, sampler, TrialSampleProcessor(), policy, n_itr=1,
                      num_inner_grad_steps=0).train_itr()
    return {re.sub(r"^Step_\d+-", "Step_i-", column) for column in row}


def logged_columns(algo_class, env_name="HalfCheetahRandVelEnv", policy_class=MetaGaussianMLPPolicy, parallel=False):
    """Returns the columns that one iteration of a tiny training logs; `Step_i-` stands for every adaptation step."""
    env = Succeeding() if env_name == "Succeeding" else make_env(env_name)
    policy = policy_class(NUM_TASKS, gym.spaces.flatdim(env.observation_space), gym.spaces.flatdim(env.action_space),
                          hidden_sizes=(2,))
    processor = MetaSampleProcessor(LinearFeatureBaseline())
    algo = algo_class(policy, meta_batch_size=NUM_TASKS)
    with MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS, parallel=parallel) as sampler:
        row = Trainer(algo, env, sampler, processor, policy, n_itr=1, diagnostics=algo_class is ProMP).train_itr()
    return {re.sub(r"_adapt_\d+$", "_adapt_i", re.sub(r"^Step_\d+-", "Step_i-", column)) for column in row}


@pytest.mark.thorough
def test_documented_columns_equal_logged_columns():
    pytest.importorskip("ray")
    logger.set_level(logger.DISABLED)
    logged = set().union(*map(logged_columns, (ProMP, TRPOMAML, VPGMAML)))
    logged |= logged_columns(VPGMAML, "MetaTabularMDPEnv", MetaCategoricalMLPPolicy)
    logged |= logged_columns(VPGMAML, "AntRandDirecEnv")
    logged |= logged_columns(VPGMAML, "Succeeding")
    logged |= logged_columns(VPGMAML, parallel="ray")
    logged |= columns_of_trials()
    of_training = COLUMNS_PAGE.read_text().partition("Evaluations during training\n")[0]
    cells = re.findall(r"^   \* - (``.*)$", of_training, flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))


def test_figures_equal_the_output_of_their_scripts():
    module = runpy.run_path(str(DOCS / "draw_training_loop.py"))
    for picture in module["PICTURES"]:
        assert (module["IMAGES"] / picture.file).read_text(encoding="utf-8") == module["draw"](picture), picture.file


def test_data_figure_shows_the_actual_types_and_shapes():
    """Types and shapes in the figure equal those of the data of an iteration."""
    module = runpy.run_path(str(DOCS / "draw_training_loop.py"))
    formats = [getattr(importlib.import_module(f"meta_policy_search.{module_name}"), name)
               for name, module_name, _ in module["FORMATS"]]
    for function, module_name, _ in module["CONVERTERS"]:
        assert callable(operator.attrgetter(function)(importlib.import_module(f"meta_policy_search.{module_name}")))
    env = MetaPointEnvCorner()
    policy = MetaGaussianMLPPolicy(NUM_TASKS, 2, 2, hidden_sizes=(2,))
    algo = ProMP(policy, meta_batch_size=NUM_TASKS)
    with MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS) as sampler:
        sampler.update_tasks()
        paths = sampler.obtain_samples()
    samples = MetaSampleProcessor(LinearFeatureBaseline()).process_samples(paths)
    fed = algo.meta_input_values([samples, samples])
    envs = env.make_batched(2)
    envs.reset(np.arange(2), [np.random.default_rng(0)] * 2)
    step = envs.step(np.zeros((2, 2)))
    assert type(step) is formats[0] and step.observations.shape == (2, 2)
    assert paths[0][0].keys() <= formats[1].__annotations__.keys()
    assert samples[0].keys() <= formats[2].__annotations__.keys()
    assert len(paths) == len(samples) == NUM_TASKS and len(paths[0]) == NUM_ROLLOUTS
    assert paths[0][0]["observations"].shape == (NUM_STEPS, 2)
    assert samples[0]["advantages"].shape == (NUM_ROLLOUTS * NUM_STEPS,)
    stacked = (NUM_TASKS, NUM_ROLLOUTS * NUM_STEPS)
    assert all(values.shape[:2] == stacked for name, values in fed.items() if "/" in name)


def test_design_page_repeats_the_docstring_of_each_subpackage():
    package = DOCS.parent / "meta_policy_search"
    page = (DOCS / "design.rst").read_text(encoding="utf-8")
    said = dict(re.findall(r"^   \* - ``([\w/]+)``\n     - (.*)$", page, flags=re.MULTILINE))
    assert {path.parent.name for path in package.glob("*/__init__.py")} == {name for name in said if "/" not in name}
    for folder, sentence in said.items():
        docstring = ast.get_docstring(ast.parse((package / folder / "__init__.py").read_text(encoding="utf-8")))
        assert sentence.replace("``", "`") == docstring.splitlines()[0], folder


def test_every_environment_and_algorithm_has_a_page():
    pages = [*(DOCS / "environments").glob("*.rst"), DOCS / "meta_world.rst"]
    environments = "".join(path.read_text() for path in pages)
    for name in BUILT_IN:
        assert f".{get_env_class(name).__name__}\n" in environments, name
    algorithms = "".join(path.read_text() for path in (DOCS / "algorithms").glob("*.rst"))
    for name in set(meta_algos.__all__) - {"AdaptationStep", "Constraint", "MAMLAlgo", "MetaAlgo", "MetaObjective"}:
        assert f"autoclass:: meta_policy_search.meta_algos.{name}\n" in algorithms


def test_every_page_is_in_the_table_of_contents():
    """Every page is listed on another page, and all pictures on pages exist."""
    pages = {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.rst")
             if not {"generated", "_templates"} & {*path.parts}}
    for page in pages:
        others = "".join(text for path, text in pages.items() if path != page)
        assert page.name == "index.rst" or page.stem in others, page
    for page, text in pages.items():
        for name in re.findall(r"^\.\. (?:image|figure):: (\S+)", text, flags=re.MULTILINE):
            assert (DOCS / page.parent / name).is_file(), (page, name)


@pytest.mark.parametrize("version_type", ["branch", "tag", None])
def test_hosted_pages_of_a_branch_link_to_their_sources(version_type, monkeypatch):
    """Edit links and the canonical address come from the environment; without it, there are none."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # conf.py extends it
    for name in ("VERSION_TYPE", "CANONICAL_URL", "GIT_CLONE_URL", "GIT_IDENTIFIER"):
        monkeypatch.delenv(f"READTHEDOCS_{name}", raising=False)
    if version_type:
        for name, value in {"VERSION_TYPE": version_type, "CANONICAL_URL": "https://example.org/en/latest/",
                            "GIT_CLONE_URL": "https://example.org/a/b.git", "GIT_IDENTIFIER": "main"}.items():
            monkeypatch.setenv(f"READTHEDOCS_{name}", value)
    conf = runpy.run_path(str(DOCS / "conf.py"))
    links = {"source_repository": "https://example.org/a/b", "source_branch": "main", "source_directory": "docs/"}
    assert conf.get("html_theme_options") == (links if version_type == "branch" else None)
    assert conf["html_baseurl"] == ("https://example.org/en/latest/" if version_type else "")
    for page, suffix in (("index", ".rst"), ("api/generated/a", "")):  # generated pages are not in the repository
        context = {"page_source_suffix": ".rst"}
        conf["hide_edit_link"](None, page, "page.html", context, None)
        assert context == {"page_source_suffix": suffix}


def test_installation_page_explains_all_extras():
    """The installation page names every extra of setup.py."""
    listed = re.findall(r"^   \* - ``([\w-]+)``$", (DOCS / "installation.rst").read_text(), flags=re.MULTILINE)
    setup = ast.parse((DOCS.parent / "setup.py").read_text())
    (extras,) = [node.value for node in setup.body if isinstance(node, ast.Assign) and node.targets[0].id == "EXTRAS"]
    assert sorted(set(listed)) == sorted(key.value for key in extras.keys)


def test_installation_page_lists_the_lower_bounds_of_setup():
    """The installation page lists every lower bound of setup.py as tested."""
    page = (DOCS / "installation.rst").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^(\w+) +([\d.]+) +[\d.]+$", page, flags=re.MULTILINE))
    setup = ast.parse((DOCS.parent / "setup.py").read_text())
    (names,) = [node.value for node in setup.body
                if isinstance(node, ast.Assign) and node.targets[0].id == "DEPENDENCIES"]
    bounds = dict(re.split("[>=]=", ast.literal_eval(name)) for name in names.elts)
    assert listed == {"Python": "3.10", **bounds}


# Public names ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def public_names():
    return runpy.run_path(str(DOCS / "_ext" / "public_names.py"))


def make_module(**names):
    module = types.ModuleType("package.module")
    for name, value in names.items():
        if getattr(value, "__module__", "") == __name__:
            value.__module__ = module.__name__
        setattr(module, name, value)
    return module


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


def test_undocumented_public_names_are_found(public_names):
    """The check reports a function, a class and a method without docstring or without an API reference entry."""
    missing = public_names["missing"]
    module = make_module(documented=documented, undocumented=undocumented, Documented=Documented, _hidden=undocumented)
    everything = ["package.module.documented", "package.module.undocumented", "package.module.Documented"]
    assert missing([module], everything) == ["package.module.Documented.method has no docstring",
                                             "package.module.undocumented has no docstring"]
    assert missing([module], everything[1:]) == ["package.module.Documented.method has no docstring",
                                                 "package.module.documented is not in the API reference",
                                                 "package.module.undocumented has no docstring"]
    assert "package.module.documented is not in the API reference" not in missing([module], [], ["*.documented"])


def test_each_name_is_documented_once(public_names):
    exporting = types.ModuleType("package")
    exporting.documented, exporting.__all__ = documented, ["documented"]
    module = make_module(documented=documented)
    assert public_names["missing"]([module, exporting], ["package.documented"]) == []


# Inherited members -----------------------------------------------------------------------------------------------


def test_class_page_links_each_inherited_member_once(monkeypatch):
    """The page of ProMP names each inherited method once, with the class that documents it."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    module = runpy.run_path(str(DOCS / "_ext" / "inherited.py"))
    names = {module["place"](base): names for base, names in module["inherited"](ProMP)}
    assert "get_step_sizes" in names["meta_policy_search.meta_algos.MAMLAlgo"]
    assert {"adapt", "with_meta_batch_size"} <= set(names["meta_policy_search.meta_algos.MetaAlgo"])
    every = [name for of_base in names.values() for name in of_base]
    assert len(every) == len(set(every)) and "meta_objective" not in every
