"""Tests the mujoco-py engine: agreement with the official engine, and errors without a build.

`test_contract.py` tests every environment on this engine, including copies and independent rows.
"""
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from meta_policy_search.envs import PhysicsError, make_env, mujoco_envs
from meta_policy_search.envs.mujoco_envs.engines import build as build_mujoco_py
from meta_policy_search.envs.mujoco_envs.engines import chosen_engine, make_engine
from meta_policy_search.envs.mujoco_envs.engines import mujoco_py as engine_mujoco_py
from meta_policy_search.envs.mujoco_envs.engines.base import DERIVED, INERTIALS, ROBOTS, model_file
from tests.helpers.robots import cheetahs, engine_of, reference_of

VARIABLE = "META_POLICY_SEARCH_ENGINE"
compile_model = engine_mujoco_py._compile
needs_mujoco_py = pytest.mark.mujoco_py


@needs_mujoco_py
@pytest.mark.parametrize("inertials", INERTIALS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_both_engines_agree_over_ten_control_steps(robot, inertials):
    """Compares positions, velocities, derived quantities and relative forces; the humanoid has a larger tolerance."""
    reference = reference_of(robot)
    tolerance = 1e-4 if robot == "humanoid" else 1e-9
    official, mujoco_py = (
        make_engine(name, robot, 5, int(reference["frame_skip"]), inertials, derived=DERIVED)
        for name in ("mujoco", "mujoco-py"))
    assert official.dt == mujoco_py.dt
    np.testing.assert_array_equal(official.control_low, mujoco_py.control_low)
    np.testing.assert_array_equal(official.init_qpos, mujoco_py.init_qpos)
    for engine in (official, mujoco_py):
        engine.set_state(reference["qpos0"], reference["qvel0"])
    for t in range(10):
        official.step(reference["actions"][:, t])
        mujoco_py.step(reference["actions"][:, t])
        ours, theirs = official.get_state(), mujoco_py.get_state()
        np.testing.assert_allclose(theirs.qpos, ours.qpos, rtol=0, atol=tolerance)
        np.testing.assert_allclose(theirs.qvel, ours.qvel, rtol=0, atol=tolerance)
        for name in DERIVED:
            scale = max(1.0, np.abs(ours.derived[name]).max())
            np.testing.assert_allclose(
                theirs.derived[name], ours.derived[name], rtol=0, atol=tolerance * scale, err_msg=name)
    if robot not in ("reacher", "swimmer"):  # they touch nothing
        assert np.abs(mujoco_py.get_state().derived["cfrc_ext"]).max() > 1.0  # N


@needs_mujoco_py
def test_engine_always_uses_one_thread():
    assert cheetahs(8, "mujoco-py", num_threads=4).threads() == 1
    assert make_env("HalfCheetahRandDirecEnv", engine="mujoco-py").make_batched(8).max_threads == 1


@needs_mujoco_py
def test_warning_with_finite_numbers_raises_on_every_attempt(monkeypatch, tmp_path):
    """MuJoCo 2.1.0 has a buffer for a fixed number of contacts, here one."""
    text = model_file("half_cheetah").read_text()
    crowded = tmp_path / "half_cheetah.xml"
    crowded.write_text(text.replace("<size ", '<size nconmax="1" '))
    monkeypatch.setattr(engine_mujoco_py, "model_file", lambda robot: crowded)
    compile_model.cache_clear()
    engine = make_engine("mujoco-py", "half_cheetah", 2, 5)
    compile_model.cache_clear()
    qpos = np.zeros((2, 9))
    qpos[:, 1] = 1.0, -0.1  # m: in the air, and into the ground with both feet
    engine.set_state(qpos, np.zeros((2, 9)))
    for _ in range(2):
        with pytest.raises(PhysicsError, match=r"environments \[1\]:"):
            engine.step(np.zeros((2, 6)))


@needs_mujoco_py
@pytest.mark.parametrize("inertials", INERTIALS)
def test_images_equal_those_of_the_official_engine(inertials):
    pictures = []
    for engine in ("mujoco", "mujoco-py"):
        env = make_env("SwimmerRandVelEnv", engine=engine, inertials=inertials, render_mode="rgb_array")
        env.reset(seed=0)
        try:
            pictures.append(env.render())
        except RuntimeError as error:
            pytest.skip(str(error))
        env.close()
    np.testing.assert_array_equal(*pictures)


@needs_mujoco_py
def test_engine_loads_silently_without_the_official_package(tmp_path):
    script = (
        "import os, sys\n"
        "from meta_policy_search.envs import make_env\n"
        "assert 'mujoco_py' not in sys.modules\n"
        "sys.modules['mujoco'] = None\n"
        "env = make_env('HalfCheetahRandDirecEnv')\n"
        "env.reset(seed=0)\n"
        "env.step(env.action_space.sample())\n"
        "env.set_task(-1.0)\n"
        "import mujoco_py\n"
        "assert mujoco_py.functions.mj_version() == 210\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    path = os.pathsep.join([str(Path(build_mujoco_py.__file__).parents[4]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, VARIABLE: "mujoco-py"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@needs_mujoco_py
def test_existing_build_is_not_repeated(capsys):
    assert build_mujoco_py.main([]) == 0
    assert capsys.readouterr().out == "mujoco-py: already built (use --force to rebuild)\n"


@needs_mujoco_py
def test_copies_and_vectorized_environments_keep_the_engine(monkeypatch):
    monkeypatch.setenv(VARIABLE, "mujoco-py")
    by_variable, by_argument = make_env("HopperRandParamsEnv"), make_env("HopperRandParamsEnv", engine="mujoco")
    monkeypatch.delenv(VARIABLE)
    for env, expected in ((by_variable, "MujocoPyEngine"), (by_argument, "MujocoEngine")):
        for one in (env, pickle.loads(pickle.dumps(env))):
            assert type(engine_of(one)).__name__ == type(one.make_batched(2).engine).__name__ == expected
        assert type(pickle.loads(pickle.dumps(env.make_batched(2))).engine).__name__ == expected


@pytest.mark.parametrize("variable, argument, expected", [
    (None, None, "mujoco"), ("", None, "mujoco"), ("mujoco-py", None, "mujoco-py"), ("mujoco", None, "mujoco"),
    ("mujoco-py", "mujoco", "mujoco"), ("bullet", "mujoco-py", "mujoco-py"),
])
def test_engine_argument_overrides_the_environment_variable(monkeypatch, variable, argument, expected):
    monkeypatch.delenv(VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    assert chosen_engine(argument) == expected


@pytest.mark.parametrize("name", mujoco_envs.__all__)
def test_unknown_engine_is_named(name, monkeypatch):
    for engine in ("bullet", "mujoco_py", "", 3):
        with pytest.raises(ValueError, match=f"engine: expected one of 'mujoco', 'mujoco-py', got {engine!r}"):
            make_env(name, engine=engine)
    monkeypatch.setenv(VARIABLE, "bullet")
    with pytest.raises(ValueError, match=f"^environment variable {VARIABLE}: expected one of 'mujoco', .*'bullet'"):
        make_env(name)


def hide(monkeypatch):
    """Removes mujoco-py from the modules of this process."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mujoco_py"]:
        monkeypatch.delitem(sys.modules, name)
    compile_model.cache_clear()


@pytest.fixture
def fake_mujoco_py(monkeypatch, tmp_path):
    """Replaces the package `mujoco_py` by one that runs the given code; returns its folder."""

    def put(code, built=False):
        package = tmp_path / "mujoco_py"
        (package / "generated").mkdir(parents=True)
        (package / "__init__.py").write_text(code)
        (package / "version.py").write_text("def get_version():\n    return '2.1.2.14'\n")
        if built:
            (package / "mujoco210" / "bin").mkdir(parents=True)
            (package / "mujoco210" / "bin" / "libmujoco210nogl.so").touch()
            build_mujoco_py.extension_file(package).touch()
        hide(monkeypatch)
        monkeypatch.syspath_prepend(tmp_path)
        return package

    yield put
    sys.modules.pop("mujoco_py", None)  # before the original modules are restored


def test_missing_mujoco_py_error_names_the_command_to_run(monkeypatch):
    hide(monkeypatch)
    monkeypatch.setitem(sys.modules, "mujoco_py", None)
    with pytest.raises(ImportError, match=r"mujoco-py is not installed \(.*mujoco_py.*\): run `make mujoco-py` or, "
                                          r'without make, `pip install "meta_policy_search\[mujoco-py\]"` and then'):
        make_env("HalfCheetahRandDirecEnv", engine="mujoco-py")
    make_env("HalfCheetahRandDirecEnv")


def test_missing_mujoco_engine_gives_the_same_error(fake_mujoco_py):
    fake_mujoco_py("raise Exception('\\nYou appear to be missing MuJoCo.\\nFind it.')\n")
    with pytest.raises(ImportError, match=r"\(You appear to be missing MuJoCo.\): run `make mujoco-py`") as raised:
        make_env("AntRandGoalEnv", engine="mujoco-py")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("libraries", [None, "/somewhere"])
def test_mujoco_py_receives_the_folder_of_its_engine(monkeypatch, fake_mujoco_py, libraries):
    for name in ("MUJOCO_PY_MUJOCO_PATH", "MUJOCO_PY_FORCE_CPU", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)
    if libraries:
        monkeypatch.setenv("LD_LIBRARY_PATH", libraries)
    package = fake_mujoco_py("import os\nseen = dict(os.environ)\n", built=True)
    seen = engine_mujoco_py.import_mujoco_py().seen
    folder = str(package / "mujoco210")
    assert (seen["MUJOCO_PY_MUJOCO_PATH"], seen["MUJOCO_PY_FORCE_CPU"]) == (folder, "1")
    assert seen["LD_LIBRARY_PATH"].split(":") == [f"{folder}/bin", *([libraries] if libraries else [])]


def test_engine_folder_set_by_the_user_takes_precedence(monkeypatch, fake_mujoco_py):
    fake_mujoco_py("import os\nseen = dict(os.environ)\n", built=True)
    monkeypatch.setenv("MUJOCO_PY_MUJOCO_PATH", "/opt/mujoco210")
    assert engine_mujoco_py.import_mujoco_py().seen["MUJOCO_PY_MUJOCO_PATH"] == "/opt/mujoco210"


def complaint_of(capsys):
    """Returns the error message of the build."""
    assert build_mujoco_py.main(["--force"]) == 1
    return capsys.readouterr().err


def test_build_names_missing_requirements(monkeypatch, tmp_path, fake_mujoco_py, capsys):
    monkeypatch.setattr(build_mujoco_py, "_NEWEST_PYTHON", sys.version_info[:2])
    hide(monkeypatch)
    monkeypatch.setitem(sys.modules, "mujoco_py", None)
    assert "mujoco-py is not installed: run `make mujoco-py`" in complaint_of(capsys)
    monkeypatch.delitem(sys.modules, "mujoco_py")

    fake_mujoco_py("")
    wheel = tmp_path / "free_mujoco_py.whl"
    wheel.write_bytes(b"something else")
    monkeypatch.setattr(build_mujoco_py, "_download", lambda folder: wheel)
    assert re.search("free_mujoco_py.whl: expected the SHA-256 f541[0-9a-f]{60}, got [0-9a-f]{64}",
                     complaint_of(capsys))


def test_build_names_unsupported_platforms(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(build_mujoco_py.platform, "system", lambda: "Darwin")
        assert "expected Linux on x86_64, got Darwin on" in complaint_of(capsys)
    monkeypatch.setattr(build_mujoco_py, "_NEWEST_PYTHON", (3, 9))
    assert f"Python: expected version 3.10 to 3.12, got {build_mujoco_py._PYTHON} (" in complaint_of(capsys)
