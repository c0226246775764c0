"""Tests names of the user's environments, algorithms and policies: registered names and MODULE:NAME."""
import sys

import pytest

import meta_policy_search as mps
from meta_policy_search import registry
from meta_policy_search.envs import registry as env_registry
from meta_policy_search.plotting import describe_run
from meta_policy_search.registry import import_name

MODULE = """
from os import popen, system
import meta_policy_search as mps

class Corner(mps.MetaPointEnvCorner):
    pass

class NoEnvironment:
    pass

def make(reward_type="sparse"):
    return Corner(reward_type)

def seven():
    return 7

mps.register_env("Corner-v0", Corner)
five = 5
"""
TINY = {"n_itr": 1, "meta_batch_size": 2, "rollouts_per_meta_task": 2, "max_path_length": 5, "hidden_sizes": (4,)}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(env_registry.ENVS, "entries", dict(env_registry.ENVS.entries))
    monkeypatch.setattr(registry.ALGORITHMS, "entries", dict(registry.ALGORITHMS.entries))
    (tmp_path / "a_module_of_a_user.py").write_text(MODULE)
    yield "a_module_of_a_user"
    sys.modules.pop("a_module_of_a_user", None)


def test_modules_of_the_current_folder_are_found_after_installed_ones(module, tmp_path):
    """A name that the module does not have is looked up among registered names."""
    (tmp_path / "cloudpickle.py").write_text("five = 5")
    assert import_name("env", f"{module}:five", {}) == 5
    assert callable(import_name("env", "cloudpickle:dumps", {}))
    assert import_name("env", f"{module}:mine", {"mine": sys}) is sys
    with pytest.raises(ValueError, match="env: expected MODULE:NAME with an object of the module or a registered name"):
        import_name("env", f"{module}:half", {"mine": sys})


@pytest.mark.parametrize("text, error", [
    (None, "ModuleNotFoundError"), ("import sys; sys.exit(0)", "SystemExit: 0"), ("x = undefined", "NameError: name"),
    ("def f(:", "SyntaxError"),
])
def test_module_that_cannot_be_imported_is_named(text, error, module, tmp_path):
    if text is not None:
        (tmp_path / "broken_module.py").write_text(text)
    with pytest.raises(ValueError, match=f"env: expected MODULE:NAME .* imported, got 'broken_module:E': {error}"):
        mps.make_env("broken_module:E")
    with pytest.raises(ValueError, match="env: expected MODULE:NAME .* imported, got '.broken_module:E'"):
        mps.make_env(".broken_module:E")


@pytest.mark.parametrize("name", ["Corner", "Corner-v0", "make"])
def test_environments_of_a_module(name, module):
    assert mps.make_env(f"{module}:{name}", reward_type="dense").reward_type == "dense"


@pytest.mark.parametrize("name", [
    "os:system", "os.path:join", "subprocess:Popen", "builtins:exec", "cloudpickle:load", "a_module_of_a_user:system",
    "a_module_of_a_user:popen", "a_module_of_a_user:five", "a_module_of_a_user:NoEnvironment", "a_module_of_a_user:mps",
])
def test_names_in_settings_files_cannot_call_other_functions(name, module):
    for function in (mps.make_env, mps.find_env, mps.get_env_class):
        with pytest.raises(ValueError, match="env: expected MODULE:NAME"):
            function(name)


def test_objects_that_are_no_environment_or_policy_are_named(module, tmp_path):
    for env in (mps.MetaPointEnvCorner, None, lambda: None, f"{module}:seven"):
        with pytest.raises(TypeError, match="env: expected "):
            mps.train(env, "cem", dump_path=tmp_path / "a")
        for train in (mps.train, mps.compare) if not isinstance(env, str) else (mps.train,):
            folder = {"dump_path": tmp_path / "a"} if train is mps.train else {"folder": tmp_path / "a"}
            with pytest.raises(TypeError, match="env: expected an environment(, got the class| with the methods) "):
                train(env, "vpg_maml" if train is mps.train else ["vpg_maml"], **folder, **TINY)
    for policy, error in ((f"{module}:make", TypeError), (f"{module}:system", TypeError), ("os:system", ValueError)):
        with pytest.raises(error, match="policy: expected "):
            mps.train("MetaPointEnvCorner", "vpg_maml", policy=policy, dump_path=tmp_path / "a", **TINY)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("register, value, names", [
    (mps.register_env, mps.MetaPointEnvWalls, ("MetaPointEnvCorner", "meta_point_env_corner", "METAPOINT-ENVCORNER")),
    (mps.register_algorithm, mps.VPGMAML, ("promp", "ProMP", "pro-mp", "Trpo_Maml")),
])
def test_built_in_names_cannot_be_registered(register, value, names, module):
    for name in names:
        with pytest.raises(ValueError, match=f"name: expected a name that is not built in, got '{name}'"):
            register(name, value)
    for name in ("", 3):
        with pytest.raises(TypeError, match="name: expected a non-empty string"):
            register(name, value)
    assert mps.get_env_class("MetaPointEnvCorner") is mps.MetaPointEnvCorner and mps.get_algorithm("promp") is mps.ProMP


def test_a_name_can_be_registered_again(module):
    """As when the user runs a notebook cell again. Another spelling is an error; lookups ignore it."""
    for factory in (mps.MetaPointEnvCorner, mps.MetaPointEnvWalls):
        mps.register_env("My_Env", factory)
        assert mps.get_env_class("my-env") is factory
    with pytest.raises(ValueError, match="name: expected a name that differs from 'My_Env' in more than case, hyphens"):
        mps.register_env("my-env", mps.MetaPointEnvCorner)


@pytest.mark.parametrize("name", ["../../x", "/x", "a b", "x/../y", "a,b", "a\n"])
def test_names_cannot_leave_the_data_folder(name, module):
    """The name is part of the path of the run folder."""
    for register, value in ((mps.register_env, mps.MetaPointEnvCorner), (mps.register_algorithm, mps.VPGMAML)):
        with pytest.raises(ValueError, match="name: expected letters, digits and _-.:/ without '..' and without /"):
            register(name, value)
    mps.register_env("lab/Corner:small-v0.1", mps.MetaPointEnvCorner)
    assert mps.find_env("lab/Corner:small-v0.1") == "lab/Corner:small-v0.1"


class MyProMP(mps.ProMP):
    """A user-defined algorithm."""


@pytest.mark.thorough
def test_registered_algorithm_trains_by_name_and_has_a_plot_title(tmp_path, module):
    mps.register_algorithm("my_promp", MyProMP, title="My ProMP")
    run = mps.train("MetaPointEnvCorner", "my_promp", dump_path=tmp_path / "run", log_formats=["csv"], **TINY)
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
     r"expected a class method policy_cls\(is_discrete\), got the class MetaGaussianMLPPolicy"),
])
def test_algorithm_with_a_wrong_part_is_refused(part, value, message):
    with pytest.raises(TypeError, match=f"^Own.{part}: {message}"):
        type("Own", (mps.VPGMAML,), {part: value})


def test_titles_are_found_by_name_and_class(module):
    mps.register_algorithm("my_promp", MyProMP)
    names = ("trpo_maml", "TRPOMAML", "e_maml", "MyProMP", "x")
    titles = {name: registry.title_of(name) for name in names}
    assert titles == {"trpo_maml": "TRPO-MAML", "TRPOMAML": "TRPO-MAML", "e_maml": "E-MAML",
                      "MyProMP": "MyProMP", "x": "x"}
