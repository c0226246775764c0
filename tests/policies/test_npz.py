"""Tests parameter files that contain only arrays and no code."""
import pickle

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.policies import GaussianMLPPolicy, MetaGaussianMLPPolicy


def make(**kwargs):
    return MetaGaussianMLPPolicy(2, 3, 1, hidden_sizes=(4,), **kwargs)


def test_policy_of_equal_sizes_loads_the_parameters(tmp_path):
    """A policy that loads the file of another policy acts like it; also for single-task policies."""
    saved = make()
    saved.save_npz(tmp_path / "policy.npz")
    for other in (make(name="other"), GaussianMLPPolicy(3, 1, hidden_sizes=(4,))):
        assert (other.get_flat_params() != saved.get_flat_params()).any()
        other.load_npz(tmp_path / "policy.npz")
        np.testing.assert_array_equal(other.get_flat_params(), saved.get_flat_params())


def test_the_file_holds_arrays_by_name(tmp_path):
    policy = make()
    policy.save_npz(str(tmp_path / "policy.npz"))
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as file:
        assert file.files == list(policy.get_params())
        np.testing.assert_array_equal(file["mean_network/hidden_0/kernel"],
                                      policy.get_param_values()["mean_network/hidden_0/kernel"])
    assert [path.name for path in tmp_path.iterdir()] == ["policy.npz"]


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('code of the file ran')",)


@pytest.mark.parametrize("write", [
    lambda path: path.write_bytes(b"no arrays"),
    lambda path: path.write_bytes(b"PK\x03\x04 no archive"),
    lambda path: path.write_bytes(pickle.dumps(Evil())),
    lambda path: np.savez(path, **{name: np.array([Evil()], dtype=object) for name in make().get_params()}),
    lambda path: np.save(path.open("wb"), np.zeros(3)),
    lambda path: np.savez(path, **{name: np.full_like(v, np.nan) for name, v in make().get_param_values().items()}),
    *(lambda path, kind=kind: np.savez(path, **{name: np.zeros(v.shape, kind) for name, v in
                                                make().get_param_values().items()}) for kind in (str, complex, bool)),
])
def test_other_files_are_refused_without_running_their_code(tmp_path, write):
    path, policy = tmp_path / "policy.npz", make()
    write(path)
    with pytest.raises(ValueError, match=r"^path: expected .*policy\.npz"):
        policy.load_npz(path)


@pytest.mark.parametrize("savez", [np.savez, np.savez_compressed])
def test_damaged_files_are_refused_and_change_nothing(tmp_path, savez):
    # given a file of which one bit is changed, or the end is missing
    path, policy, rng = tmp_path / "policy.npz", make(), np.random.default_rng(0)
    savez(path, **policy.get_param_values())
    original, weights = path.read_bytes(), policy.get_flat_params()
    for n in range(60):
        data = bytearray(original[:len(original) if n % 3 else rng.integers(len(original))])
        if n % 3:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        # then it is refused with its name, or the weights are those of the original
        try:
            policy.load_npz(path)
        except ValueError as error:
            assert "policy.npz" in str(error)
        np.testing.assert_array_equal(policy.get_flat_params(), weights)


def test_files_can_have_any_ending(tmp_path):
    policy = make()
    policy.save_npz(tmp_path / "weights")
    np.testing.assert_array_equal(mps.load_policy(tmp_path / "weights").get_flat_params(), policy.get_flat_params())


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.npz"):
        make().load_npz(tmp_path / "nowhere.npz")
