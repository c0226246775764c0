"""Tests the side effects of imports, each in a fresh process."""
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

HEAVY = {"tensorflow", "gym", "gymnasium", "matplotlib", "mujoco", "mujoco_py", "ray", "scipy"}
ENGINES = {"tensorflow", "gymnasium", "matplotlib", "mujoco", "mujoco_py", "ray"}
LIGHT = {  # modules in the order of their import, and what is not loaded after it
    **{f"utils.{name}": HEAVY for name in ("checks", "logger", "seeding", "serializable", "snapshotter", "utils")},
    "types": HEAVY, "registry": ENGINES, "plotting": ENGINES, "envs": ENGINES, "pretrained_policies": ENGINES,
    **dict.fromkeys(("baselines", "samplers", "np.policies", "np.algos", "np.exploration_policies", "np.replay_buffer",
                     "local_runner", "envs.gymnasium"), {"tensorflow", "ray"}),
}


def run_python(program, stdin=b""):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run([sys.executable, "-c", program], input=stdin, capture_output=True, env=env, timeout=300)


def test_imports_without_computation_load_no_heavy_modules_and_print_nothing():
    program = f"""
import importlib, sys
for module, unloaded in {LIGHT}.items():
    importlib.import_module("meta_policy_search." + module)
    assert not unloaded & set(sys.modules), (module, unloaded & set(sys.modules))
"""
    done = run_python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.thorough
def test_unpickled_policy_acts_in_a_fresh_process_without_warnings():
    from meta_policy_search.policies import MetaGaussianMLPPolicy
    from meta_policy_search.tf_compat import tf

    policy = MetaGaussianMLPPolicy(2, 3, 1, hidden_sizes=(4,), hidden_nonlinearity=tf.nn.tanh)
    program = """
import pickle, sys
import numpy as np
pickled = sys.stdin.buffer.read()
pickle.loads(pickled)  # not used
policy = pickle.loads(pickled)
sys.stdout.buffer.write(np.array(policy.get_actions(np.ones((2, 1, 3)))[0]).tobytes())
"""
    done = run_python(program, pickle.dumps(policy))
    assert (done.returncode, done.stderr) == (0, b"")
    expected = np.array(policy.get_actions(np.ones((2, 1, 3)))[0])
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32), expected.ravel(), rtol=1e-6)


@pytest.mark.thorough
def test_import_after_eager_tensorflow_use_raises_an_error_with_the_remedy():
    done = run_python("import tensorflow as tf; tf.ones(1); import meta_policy_search.policies")
    message = done.stderr.decode().strip().splitlines()[-1]
    assert done.returncode == 1 and message.startswith("RuntimeError: ")
    assert "eager TensorFlow has already run" in message and "fresh process" in message


@pytest.mark.slow
def test_import_after_unused_tensorflow_works():
    done = run_python("import tensorflow as tf; import meta_policy_search.policies")
    assert done.returncode == 0, done.stderr.decode()
