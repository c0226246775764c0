"""The documentation keeps up with the code."""
import ast
import importlib
import operator
import re
import runpy
import types
from pathlib import Path

import numpy as np
import pytest

import meta_policy_search
from meta_policy_search import meta_algos
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.envs import MetaPointEnvCorner, TrialEnv, available_envs, get_env_class, make_env
from meta_policy_search.meta_algos import RL2, TRPOMAML, VPGMAML, ProMP
from meta_policy_search.meta_trainer import Trainer
from meta_policy_search.policies import GaussianGRUPolicy, MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler, TrialSampleProcessor
from meta_policy_search.utils import logger
from meta_policy_search.utils.gym_import import gym

DOCS = Path(__file__).resolve().parent.parent / "docs"
COLUMNS_PAGE = DOCS / "columns.rst"
NUM_TASKS, NUM_ROLLOUTS, NUM_STEPS = 2, 2, 3


class Succeeding(MetaPointEnvCorner):
    """An environment that tells whether a step is a success."""

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
    """Columns that one iteration of a tiny training logs, with `Step_i-` for each adaptation step."""
    env = Succeeding() if env_name == "Succeeding" else make_env(env_name)
    policy = policy_class(NUM_TASKS, gym.spaces.flatdim(env.observation_space), gym.spaces.flatdim(env.action_space),
                          hidden_sizes=(2,))
    processor = MetaSampleProcessor(LinearFeatureBaseline())
    algo = algo_class(policy, meta_batch_size=NUM_TASKS)
    with MetaSampler(env, policy, NUM_ROLLOUTS, NUM_TASKS, NUM_STEPS, parallel=parallel) as sampler:
        row = Trainer(algo, env, sampler, processor, policy, n_itr=1, diagnostics=algo_class is ProMP).train_itr()
    return {re.sub(r"_adapt_\d+$", "_adapt_i", re.sub(r"^Step_\d+-", "Step_i-", column)) for column in row}


@pytest.mark.thorough
def test_the_columns_explained_are_those_that_are_logged():
    pytest.importorskip("ray")
    logger.set_level(logger.DISABLED)
    logged = set().union(*map(logged_columns, (ProMP, TRPOMAML, VPGMAML)))
    logged |= logged_columns(VPGMAML, "MetaTabularMDPEnv", MetaCategoricalMLPPolicy)
    logged |= logged_columns(VPGMAML, "AntRandDirecEnv")
    logged |= logged_columns(VPGMAML, "Succeeding")
    logged |= logged_columns(VPGMAML, parallel="ray")
    logged |= columns_of_trials()
    cells = re.findall(r"^   \* - (``.*)$", COLUMNS_PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(logged) == sorted(re.findall(r"``([^`]+)``", " ".join(cells)))


def test_the_figures_are_drawn_from_their_text():
    module = runpy.run_path(str(DOCS / "draw_training_loop.py"))
    for picture in module["PICTURES"]:
        assert (module["IMAGES"] / picture.file).read_text(encoding="utf-8") == module["draw"](picture), picture.file


def test_the_figure_of_samples_names_what_a_sample_is_part_of():
    """Given an iteration, when its samples are followed, then each has the form, and the axes, that is drawn."""
    module = runpy.run_path(str(DOCS / "draw_training_loop.py"))
    forms = [getattr(importlib.import_module(f"meta_policy_search.{room}"), name) for name, room, _ in module["FORMS"]]
    for function, room, _ in module["MAKERS"]:
        assert callable(operator.attrgetter(function)(importlib.import_module(f"meta_policy_search.{room}")))
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
    assert type(step) is forms[0] and step.observations.shape == (2, 2)
    assert paths[0][0].keys() <= forms[1].__annotations__.keys()
    assert samples[0].keys() <= forms[2].__annotations__.keys()
    assert len(paths) == len(samples) == NUM_TASKS and len(paths[0]) == NUM_ROLLOUTS
    assert paths[0][0]["observations"].shape == (NUM_STEPS, 2)
    assert samples[0]["advantages"].shape == (NUM_ROLLOUTS * NUM_STEPS,)
    stacked = (NUM_TASKS, NUM_ROLLOUTS * NUM_STEPS)
    assert all(values.shape[:2] == stacked for name, values in fed.items() if "/" in name)


def test_the_design_page_says_of_each_room_what_its_folder_says():
    package = DOCS.parent / "meta_policy_search"
    page = (DOCS / "design.rst").read_text(encoding="utf-8")
    said = dict(re.findall(r"^   \* - ``([\w/]+)``\n     - (.*)$", page, flags=re.MULTILINE))
    assert {path.parent.name for path in package.glob("*/__init__.py")} == {room for room in said if "/" not in room}
    for room, sentence in said.items():
        docstring = ast.get_docstring(ast.parse((package / room / "__init__.py").read_text(encoding="utf-8")))
        assert sentence.replace("``", "`") == docstring.splitlines()[0], room


def test_every_environment_and_every_algorithm_has_a_page():
    pages = [*(DOCS / "environments").glob("*.rst"), DOCS / "meta_world.rst"]
    environments = "".join(path.read_text() for path in pages)
    for name in available_envs():
        assert f".{get_env_class(name).__name__}\n" in environments, name
    algorithms = "".join(path.read_text() for path in (DOCS / "algorithms").glob("*.rst"))
    for name in set(meta_algos.__all__) - {"AdaptationStep", "Constraint", "MAMLAlgo", "MetaAlgo", "MetaObjective"}:
        assert f"autoclass:: meta_policy_search.meta_algos.{name}\n" in algorithms


def test_every_page_is_in_the_table_of_contents():
    """Given the pages, then each is named by another one, and pictures that pages show exist."""
    pages = {path.relative_to(DOCS): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.rst")
             if not {"generated", "_templates"} & {*path.parts}}
    for page in pages:
        others = "".join(text for path, text in pages.items() if path != page)
        assert page.name == "index.rst" or page.stem in others, page
    for page, text in pages.items():
        for name in re.findall(r"^\.\. (?:image|figure):: (\S+)", text, flags=re.MULTILINE):
            assert (DOCS / page.parent / name).is_file(), (page, name)


def test_extras_are_explained():
    """Given what setup.py offers, then the page on installation names each of them."""
    listed = re.findall(r"^   \* - ``([\w-]+)``$", (DOCS / "installation.rst").read_text(), flags=re.MULTILINE)
    setup = ast.parse((DOCS.parent / "setup.py").read_text())
    (extras,) = [node.value for node in setup.body if isinstance(node, ast.Assign) and node.targets[0].id == "EXTRAS"]
    assert sorted(set(listed)) == sorted(key.value for key in extras.keys)


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


def test_a_public_name_that_the_documentation_leaves_out_is_found(public_names):
    """Given a function, a class and a method without docstring, then each is named unless it is described."""
    missing = public_names["missing"]
    module = make_module(documented=documented, undocumented=undocumented, Documented=Documented, _hidden=undocumented)
    everything = ["package.module.documented", "package.module.undocumented", "package.module.Documented"]
    assert missing([module], everything) == ["package.module.Documented.method has no docstring",
                                             "package.module.undocumented has no docstring"]
    assert missing([module], everything[1:]) == ["package.module.Documented.method has no docstring",
                                                 "package.module.documented is not in the API reference",
                                                 "package.module.undocumented has no docstring"]
    assert "package.module.documented is not in the API reference" not in missing([module], [], ["*.documented"])


def test_a_name_is_described_once_wherever_it_is_exported(public_names):
    exporting = types.ModuleType("package")
    exporting.documented, exporting.__all__ = documented, ["documented"]
    module = make_module(documented=documented)
    assert public_names["missing"]([module, exporting], ["package.documented"]) == []


def test_all_public_names_of_the_package_have_docstrings(public_names):
    searched = list(public_names["modules"](meta_policy_search))
    assert {"meta_policy_search.meta_algos.pro_mp", "meta_policy_search.utils.logger"} <= {m.__name__ for m in searched}
    assert [line for line in public_names["missing"](searched, ()) if "no docstring" in line] == []


# What classes inherit --------------------------------------------------------------------------------------------


def test_a_class_names_what_it_inherits_once_and_where_that_is_described(monkeypatch):
    """Given ProMP, then each method of its bases is named with the one that has it, by the name of its page."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    module = runpy.run_path(str(DOCS / "_ext" / "inherited.py"))
    names = {module["place"](base): names for base, names in module["inherited"](ProMP)}
    assert "get_step_sizes" in names["meta_policy_search.meta_algos.MAMLAlgo"]
    assert {"adapt", "with_meta_batch_size"} <= set(names["meta_policy_search.meta_algos.MetaAlgo"])
    every = [name for of_base in names.values() for name in of_base]
    assert len(every) == len(set(every)) and "meta_objective" not in every
