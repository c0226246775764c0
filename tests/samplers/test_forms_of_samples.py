"""Rollouts and samples are arrays that show themselves as the documented dicts; what a user changes there counts."""
import copy
import pickle

import numpy as np
import pytest

from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor, MetaSampler
from meta_policy_search.samplers.rollouts import Rollouts
from meta_policy_search.samplers.samples import Samples
from meta_policy_search.utils.fast_paths import replaces
from meta_policy_search.utils.lazy_dict import LazyDict
from meta_policy_search.utils.utils import set_seed
from tests.samplers.test_rollouts import EnvWithRareInfos, FixedPolicy

KEYS = ("observations", "actions", "rewards", "returns", "advantages", "adj_avg_rewards")


class PointPolicy(FixedPolicy):
    obs_dim = action_dim = 2

    @replaces()
    def make_actor(self):
        from meta_policy_search.actors.stacked_mlp import StackedMLP, sample_gaussian

        params = {"mean_network/output/kernel": np.zeros((2, 2, 2), np.float32),
                  "mean_network/output/bias": np.zeros((2, 2), np.float32),
                  "log_std_network/log_std_var": np.zeros((2, 2), np.float32)}
        return StackedMLP(params, "mean_network", (0, None, None), sample_gaussian, noise_dim=2)


def sample(ragged):
    """Returns three paths of each of two tasks: of 1 to 5 steps, or of 4."""
    set_seed(5)
    env, policy, length = (EnvWithRareInfos(), FixedPolicy(), 5) if ragged else (MetaPointEnvCorner(), PointPolicy(), 4)
    with MetaSampler(env, policy, 3, 2, length) as sampler:
        return sampler.obtain_samples()


def process(paths):
    return MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True).process_samples(paths)


def plain(paths):
    """Returns the paths as a user would have made them."""
    return {task: [dict(path) for path in task_paths] for task, task_paths in paths.items()}


def assert_same(first, second):
    """Compares nested dicts and lists of arrays, bit for bit."""
    if isinstance(first, dict):
        assert set(first) == set(second)
        for key in first:
            assert_same(first[key], second[key])
    elif isinstance(first, list):
        assert len(first) == len(second)
        for pair in zip(first, second):
            assert_same(*pair)
    else:
        np.testing.assert_array_equal(first, second)


@pytest.fixture(params=[True, False], ids=["ragged", "full"])
def paths(request):
    return sample(request.param)


def test_rollouts_are_a_dict_of_lists_of_dicts(paths):
    assert isinstance(paths, dict) and list(paths) == [0, 1]
    for task_paths in paths.values():
        assert isinstance(task_paths, list) and len(task_paths) == 3
        for path in task_paths:
            assert isinstance(path, dict)
            assert {"observations", "actions", "rewards", "env_infos", "agent_infos", "last_observation",
                    "terminated"} == set(path)
            assert len(path["observations"]) == len(path["rewards"]) == len(path["agent_infos"]["mean"])
    assert paths.num_steps == sum(len(path["rewards"]) for task_paths in paths.values() for path in task_paths)


def test_paths_of_a_users_own_making_give_the_same_samples(paths):
    """Given the same paths as plain dicts, then samples and what the graph is fed are the same, bit for bit."""
    given = plain(paths)
    ours, theirs = process(paths), process(given)
    assert_same([dict(task) for task in ours], [dict(task) for task in theirs])
    for key in (*KEYS, "agent_infos/mean", "agent_infos/log_std"):
        np.testing.assert_array_equal(ours.stacked(key), Samples.of([dict(task) for task in ours]).stacked(key))
        np.testing.assert_array_equal(ours.stacked(key), theirs.stacked(key))
    np.testing.assert_array_equal(ours.mask(), theirs.mask())
    np.testing.assert_array_equal(ours.path_starts(), theirs.path_starts())
    np.testing.assert_array_equal(given[1][2]["advantages"], paths[1][2]["advantages"])


def test_stacked_entries_are_padded_by_the_first_sample():
    samples = process(sample(ragged=True))
    counts = [len(task["rewards"]) for task in samples]
    assert counts[0] != counts[1]
    for key in KEYS:
        for task, row in zip(samples, samples.stacked(key)):
            np.testing.assert_array_equal(row[:len(task[key])], task[key].astype(np.float32))
            assert (row[len(task[key]):] == task[key][0].astype(np.float32)).all()
    np.testing.assert_array_equal(samples.mask().sum(axis=1), counts)


@pytest.mark.parametrize("change", [
    lambda paths: paths[1][0].update(rewards=paths[1][0]["rewards"] + 1.0),
    lambda paths: paths[1].pop(),
    lambda paths: paths[1].reverse(),
    lambda paths: paths[1][0]["agent_infos"].pop("mean") is None or [
        path["agent_infos"].pop("mean", None) for path in (*paths[0], *paths[1])],
    lambda paths: paths.pop(0),
    lambda paths: paths.update({7: paths[0]}),
], ids=["an entry is replaced", "a path is removed", "paths change places", "an info is removed", "a task is removed",
        "a task is added"])
def test_paths_that_were_changed_count_as_they_are(paths, change):
    before = [dict(task) for task in process(plain(paths))]
    change(paths)
    after = process(paths)
    assert_same([dict(task) for task in after], [dict(task) for task in process(plain(paths))])
    with pytest.raises(AssertionError):
        assert_same([dict(task) for task in after], before)


def test_writing_into_an_array_counts_too(paths):
    paths[0][1]["rewards"][:] = 100.0
    assert (process(paths)[0]["rewards"] == 100.0).any()


def test_samples_that_were_changed_count_as_they_are(paths):
    samples = process(paths)
    assert Samples.of(samples) is samples
    samples[0]["advantages"] = samples[0]["advantages"] * 2.0
    changed = Samples.of(samples)
    np.testing.assert_array_equal(changed.stacked("advantages")[0, :1], samples[0]["advantages"][:1].astype(np.float32))
    samples = process(paths)
    samples.reverse()
    np.testing.assert_array_equal(Samples.of(samples).stacked("rewards")[0, 0], np.float32(samples[0]["rewards"][0]))


def test_padded_samples_are_fed_like_their_dicts():
    """Given samples for DiCE, then the graph is fed the same whether or not somebody has made dicts of them."""
    samples = DiceMetaSampleProcessor(LinearTimeBaseline(), 6).process_samples(sample(ragged=True))
    assert samples.max_path_length == 6 and samples[0]["adjusted_rewards"].shape == (3, 6)
    from_dicts = Samples.of([dict(task) for task in samples])
    assert from_dicts.max_path_length == 6
    for key in ("observations", "adjusted_rewards", "adj_avg_rewards", "agent_infos/mean"):
        np.testing.assert_array_equal(samples.stacked(key), from_dicts.stacked(key))
    np.testing.assert_array_equal(samples.path_starts(), from_dicts.path_starts())


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_hold_the_same(paths, clone):
    assert_same(plain(clone(paths)), plain(paths))
    process(paths)
    assert_same(plain(clone(paths)), plain(paths))
    paths[0][0]["mine"] = np.ones(1)
    assert_same(plain(clone(paths)), plain(paths))
    samples = process(paths)
    assert_same([dict(task) for task in clone(samples)], [dict(task) for task in samples])


def test_parts_are_joined_as_if_collected_together():
    whole = sample(ragged=True)
    set_seed(5)
    with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 3, 2, 5) as sampler:
        sampler.vec_env.max_threads = 2
        assert_same(plain(sampler.obtain_samples()), plain(whole))


def test_a_dict_that_fills_itself():
    calls = []
    lazy = LazyDict(lambda: calls.append(1) or {"a": 1, "b": {"c": 2}})
    assert not lazy.is_changed and not calls
    assert {**lazy} == dict(lazy) == lazy.copy() == {"a": 1, "b": {"c": 2}} == lazy and len(lazy) == 2 and calls == [1]
    assert not lazy.is_changed
    lazy.add("d", 3)
    assert not lazy.is_changed and lazy["d"] == 3
    lazy["b"]["c"] = 5
    assert lazy.is_changed
    assert type(pickle.loads(pickle.dumps(lazy))) is dict


def test_rollouts_of_rollouts_are_themselves(paths):
    assert Rollouts.of(paths) is paths
    assert Rollouts.of(dict(paths)) is not paths
