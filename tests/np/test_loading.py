"""Trained policies act without TensorFlow: from a run folder, a snapshot or weights."""
import os
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.utils import logger

OBSERVATION = np.array([0.3, -0.2])
GAUSSIAN = {"hidden_sizes": (6, 5), "hidden_nonlinearity": "relu", "init_std": 0.5}


def write(folder, policy, **more):
    with logger.scoped_configure(folder, ["csv"], "all"):
        logger.save_itr_params(3, {"itr": 3, "policy": policy, **more})
    return folder


def with_context(policy):
    """Returns a policy whose context is not zero, as after adaptation."""
    policy.set_params({**policy.get_param_values(), "context": np.full(policy.context_dim, 0.7, np.float32)})
    return policy


def distribution(policy, observation=OBSERVATION):
    """Returns the parameters of the action distribution."""
    return policy.get_action(observation)[1]


def assert_same(loaded, policy, observation=OBSERVATION):
    assert type(loaded).__module__ == "meta_policy_search.np.policies"
    expected = distribution(policy, observation)
    assert set(distribution(loaded, observation)) == set(expected)
    for key, value in distribution(loaded, observation).items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [
    lambda: mps.MetaGaussianMLPPolicy(3, 2, 2, "name", (6, 5), hidden_nonlinearity="relu", init_std=0.5),
    lambda: mps.MetaGaussianMLPPolicy(meta_batch_size=3, obs_dim=2, action_dim=2, learn_std=False, min_std=0.1),
    lambda: mps.MetaCategoricalMLPPolicy(3, 2, 4, hidden_sizes=(5,)),
    lambda: with_context(mps.MetaGaussianMLPPolicy(3, 2, 2, context_dim=2, hidden_sizes=(5,))),
    lambda: with_context(mps.MetaCategoricalMLPPolicy(3, 2, 4, context_dim=1, hidden_sizes=())),
])
def test_policy_of_a_run(make, tmp_path):
    policy = make()
    folder = write(tmp_path, policy, algo=mps.ConjugateGradientOptimizer(), env=mps.MetaPointEnvCorner())
    assert_same(mps.load_policy(folder), policy)
    assert_same(mps.load_policy(folder, itr=3), policy)
    assert_same(mps.load_policy(folder / "itr_3.pkl"), policy)


@pytest.mark.parametrize("make, arguments", [
    (lambda: mps.MetaGaussianMLPPolicy(3, 2, 2, **GAUSSIAN), {"hidden_nonlinearity": "relu"}),
    (lambda: mps.GaussianMLPPolicy(2, 2, learn_std=False, init_std=0.5), {"init_std": 0.5}),
    (lambda: with_context(mps.MetaGaussianMLPPolicy(3, 2, 2, context_dim=2)), {}),
])
def test_weights_of_a_policy(make, arguments, tmp_path):
    policy = make()
    policy.save_npz(tmp_path / "policy.npz")
    assert_same(mps.load_policy(tmp_path / "policy.npz", **arguments), policy)


def test_policy_acts_in_a_process_without_tensorflow(tmp_path):
    policy = mps.train("MetaPointEnvCorner", n_itr=1, dump_path=tmp_path, callbacks=[mps.EvalCallback(5)], **GAUSSIAN,
                       meta_batch_size=2, rollouts_per_meta_task=2, max_path_length=3, log_formats=["csv"]).policy
    policy.save_npz(tmp_path / "policy.npz")
    program = """
import sys
import numpy as np
sys.modules["tensorflow"] = None  # cannot be imported
import meta_policy_search as mps
for path, arguments in ((sys.argv[1], {}), (sys.argv[1] + "/policy.npz", {"hidden_nonlinearity": "relu"})):
    actor = mps.load_policy(path, **arguments)
    actor.act(np.array([0.3, -0.2]))
    sys.stdout.buffer.write(actor.act(np.array([0.3, -0.2]), deterministic=True).tobytes())
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stderr) == (0, b"")
    expected = distribution(policy)["mean"]
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32).reshape(2, 2), [expected, expected], rtol=1e-5)


def test_single_action_sampled_or_deterministic():
    mps.set_seed(3)
    gaussian, discrete = mps.GaussianMLPPolicy(2, 2), mps.CategoricalMLPPolicy(2, 3)
    np.testing.assert_array_equal(gaussian.act(OBSERVATION, deterministic=True), distribution(gaussian)["mean"])
    assert not np.array_equal(gaussian.act(OBSERVATION), gaussian.act(OBSERVATION))
    assert discrete.act(OBSERVATION, deterministic=True) == np.argmax(distribution(discrete)["log_prob"])
    assert len({int(discrete.act(OBSERVATION)) for _ in range(50)}) == 3
    with pytest.raises(TypeError, match="deterministic: expected True or False, got 1"):
        gaussian.act(OBSERVATION, deterministic=1)


class Own(mps.GaussianMLPPolicy):
    """A policy of another package."""


def test_policy_of_another_package_is_loaded_unchanged(tmp_path):
    assert type(mps.load_policy(write(tmp_path, Own(2, 2)))) is Own


def test_policy_of_a_script_is_loaded_in_another_process(tmp_path, monkeypatch):
    """Snapshots contain the class of such a policy, but not its base class."""
    class OfScript(mps.MetaGaussianMLPPolicy):
        pass

    policy = OfScript(2, 2, 2)
    write(tmp_path, policy)
    monkeypatch.setattr(cloudpickle.cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID", {})  # as in another process
    loaded = mps.load_policy(tmp_path)
    assert type(loaded) is not OfScript and type(loaded).__name__ == "OfScript"
    np.testing.assert_allclose(loaded.act(OBSERVATION, deterministic=True), distribution(policy)["mean"], rtol=1e-5)


def test_invalid_sources_are_refused(tmp_path):
    with pytest.raises(ValueError, match="expected a run with a GaussianMLPPolicy or .*, got a dict"):
        mps.load_policy(write(tmp_path / "1", {}))
    with pytest.raises(RuntimeError, match="contains no snapshot"):
        mps.load_policy(tmp_path)
    np.savez(tmp_path / "a.npz", weights=np.ones(3))
    with pytest.raises(ValueError, match="expected the parameters of an MLP policy in .*a.npz, got weights"):
        mps.load_policy(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(pickle.dumps(1))
    with pytest.raises(ValueError, match="b.npz"):
        mps.load_policy(tmp_path / "b.npz")
    mps.GaussianMLPPolicy(2, 2).save_npz(tmp_path / "c.npz")
    with pytest.raises(ValueError, match="the shapes differ"):
        mps.load_policy(tmp_path / "c.npz", hidden_sizes=(3,))
    with pytest.raises(ValueError, match="itr: expected None for a file of weights .*c.npz.*, got 3"):
        mps.load_policy(tmp_path / "c.npz", itr=3)
    with pytest.raises(ValueError, match="hidden_sizes: expected no arguments for a stored NumPy policy"):
        mps.load_policy(write(tmp_path / "2", Own(2, 2)), hidden_sizes=(3,))
    with pytest.raises(TypeError, match="unexpected keyword argument 'hidden'"):
        mps.load_policy(tmp_path / "c.npz", hidden=3)
