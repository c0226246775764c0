"""Paths and samples are plain dicts and lists. An edit by the user takes effect or raises an error."""
import copy
import functools

import numpy as np
import pytest

from meta_policy_search import DiceMetaSampleProcessor
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline
from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.meta_algos import DICEMAML, VPGMAML
from meta_policy_search.meta_algos.inputs import stack_samples
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import DiceSampleProcessor, MetaSampleProcessor, MetaSampler, SampleProcessor
from meta_policy_search.utils.utils import set_seed
from tests.helpers.runs import assert_same
from tests.helpers.sampling import EnvWithRareInfos, FixedPolicy, Wanderer, make_policy

T = 6
PROCESSORS = {
    "one task": lambda: SampleProcessor(LinearFeatureBaseline(), normalize_adv=True),
    "meta-batch": lambda: MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True),
    "DiCE, one task": lambda: DiceSampleProcessor(LinearTimeBaseline(), T, return_baseline=LinearFeatureBaseline()),
    "DiCE, meta-batch": lambda: DiceMetaSampleProcessor(LinearTimeBaseline(), T),
}
KEYS = ("observations", "actions", "rewards", "agent_infos/mean", "mask", "path_starts")
ADDED = {"returns", "advantages", "discounted_rewards"}


@functools.lru_cache(maxsize=None)
def sampled(ragged):
    set_seed(5)
    env = Wanderer() if ragged else MetaPointEnvCorner()
    with MetaSampler(env, make_policy(env, 2), 3, 2, T) as sampler:
        return sampler.obtain_samples()


@pytest.fixture(params=[True, False], ids=["ragged", "equal lengths"])
def paths(request):
    paths = copy.deepcopy(sampled(request.param))
    lengths = {len(path["rewards"]) for task_paths in paths.values() for path in task_paths}
    assert (len(lengths) > 1) == request.param
    return paths


@pytest.fixture(params=PROCESSORS)
def process(request):
    """Processes a meta-batch with a new processor; returns a list of samples."""
    def process(paths):
        processor = PROCESSORS[request.param]()
        if isinstance(processor, MetaSampleProcessor):
            return processor.process_samples(paths)
        return [processor.process_samples(task_paths) for task_paths in paths.values()]

    return process


def rebuilt(value):
    """Returns the same values in new containers and arrays."""
    if isinstance(value, dict):
        return {key: rebuilt(item) for key, item in value.items() if key not in ADDED}
    if isinstance(value, (list, tuple)):
        return [rebuilt(item) for item in value]
    return np.array(value.tolist(), value.dtype) if isinstance(value, np.ndarray) else value


def differs(first, second):
    try:
        assert_same(first, second)
    except AssertionError:
        return True
    return False


EDITS_OF_PATHS = {
    "in place": lambda paths: paths[1][0]["rewards"].__iadd__(3.0),
    "info removed": lambda paths: [path["agent_infos"].pop("mean") for path in (*paths[0], *paths[1])],
    "path removed": lambda paths: paths[1].pop(),
    "paths reordered": lambda paths: paths[1].reverse(),
    "path shortened": lambda paths: paths[1].__setitem__(0, {
        key: value[:1] for key, value in paths[1][0].items()
        if key in ("observations", "actions", "rewards")} | {
        "agent_infos": {key: value[:1] for key, value in paths[1][0]["agent_infos"].items()}}),
    "task added": lambda paths: paths.update({7: copy.deepcopy(paths[0])}),
}


@pytest.mark.parametrize("edit", EDITS_OF_PATHS)
def test_edited_paths_are_processed_as_edited(paths, process, edit):
    """Samples of edited paths equal samples of new dicts with the same values."""
    before = process(rebuilt(paths))
    EDITS_OF_PATHS[edit](paths)
    after = process(paths)
    assert_same(after, process(rebuilt(paths)))
    assert differs(after, before)


def test_samples_and_paths_share_no_memory(paths, process):
    samples = process(paths)
    before = copy.deepcopy(paths)
    for task in samples:
        for values in (*task.values(), *task["agent_infos"].values()):
            if isinstance(values, np.ndarray):
                values[...] = 0
    assert_same(paths, before)
    samples = process(paths)
    before = copy.deepcopy(samples)
    for path in (*paths[0], *paths[1]):
        for values in (*path.values(), *path["agent_infos"].values()):
            if isinstance(values, np.ndarray):
                values[...] = 0
    assert_same(samples, before)


def flat(task, values):
    """Returns the steps of a task, `[N, ...]`, without padding."""
    return values[task["mask"] > 0] if "mask" in task else values


def by_hand(samples):
    """Computes the graph inputs with slow, simple code."""
    counts = [len(flat(task, task["observations"])) for task in samples]
    fed = {key: [] for key in KEYS}
    for task, count in zip(samples, counts):
        starts, start = [], 0
        for length in task["path_lengths"]:
            starts += [start] * length
            start += length
        entries = {"mask": np.ones(count), "path_starts": np.array(starts),
                   "agent_infos/mean": flat(task, task["agent_infos"]["mean"]),
                   **{key: flat(task, task[key]) for key in ("observations", "actions", "rewards")}}
        for key, values in entries.items():
            rest = [0.0 if key == "mask" else values[0]] * (max(counts) - count)
            fed[key].append(np.array([*values, *rest], np.int32 if key == "path_starts" else np.float32))
    return {key: np.stack(values) for key, values in fed.items()}


EDITS_OF_SAMPLES = {
    "in place": lambda samples: samples[0]["rewards"].__imul__(0.0),
    "info replaced": lambda samples: samples[0]["agent_infos"].update(mean=samples[0]["agent_infos"]["mean"] + 1.0),
    "tasks reordered": lambda samples: samples.reverse(),
    "tasks concatenated": lambda samples: samples.extend(copy.deepcopy(samples)),
}


@pytest.mark.parametrize("edit", [None, *EDITS_OF_SAMPLES])
def test_edited_samples_are_fed_as_edited(paths, process, edit):
    samples = process(paths)
    before = by_hand(samples)
    if edit is not None:
        EDITS_OF_SAMPLES[edit](samples)
        assert differs(by_hand(samples), before)
    assert_same(stack_samples(samples, KEYS), by_hand(samples))


@pytest.mark.parametrize("key", ["observations", "actions", "rewards", "agent_infos/mean"])
def test_missing_malformed_or_infinite_sample_entry_is_named(paths, process, key):
    def check(message, change):
        samples = process(paths)
        entries, name = (samples[1], key) if "/" not in key else (samples[1]["agent_infos"], "mean")
        change(entries, name)
        with pytest.raises(ValueError, match=message):
            stack_samples(samples, KEYS)

    check(f"task 1: expected samples with an entry '{key}'", lambda entries, name: entries.pop(name))
    check(f"task 1, {key}: expected finite float32", lambda entries, name: entries[name].__setitem__((0, 0), np.nan)
          if entries[name].ndim > 1 else entries[name].__setitem__(0, np.nan))
    check(f"task 1, {key}: expected a numeric array", lambda entries, name: entries.update({name: None}))
    check("task 1(, .*)?: expected", lambda entries, name: entries.update({name: entries[name][1:]}))


def test_edited_path_lengths_must_add_up(paths, process):
    samples = process(paths)
    samples[1]["path_lengths"] = samples[1]["path_lengths"][:-1]
    with pytest.raises(ValueError, match="task 1.*path_lengths"):
        stack_samples(samples, KEYS)


@pytest.mark.parametrize("process", ["DiCE, one task", "DiCE, meta-batch"], indirect=True)
def test_mask_and_path_lengths_of_dice_samples_must_agree(paths, process):
    samples = process(paths)
    last = samples[1]["path_lengths"][0] - 1
    samples[1]["mask"][0, last] = 0.0
    with pytest.raises(ValueError, match="task 1, mask and path_lengths"):
        stack_samples(samples, ["observations"])
    if last:
        samples[1]["path_lengths"][0] -= 1
        assert_same(stack_samples(samples, KEYS), by_hand(samples))
    samples[0]["path_lengths"][0] += 1
    with pytest.raises(ValueError, match="task 0, mask and path_lengths"):
        stack_samples(samples, ["observations"])


@pytest.mark.parametrize("process", ["DiCE, meta-batch"], indirect=True)
def test_term_after_the_end_is_added_to_the_last_adjusted_reward(paths, process):
    samples = process(paths)
    stacked = stack_samples(samples, ["adjusted_rewards"])["adjusted_rewards"]
    for task, row in zip(samples, stacked):
        expected = task["adjusted_rewards"].copy()
        expected[range(3), task["path_lengths"] - 1] += task["adjusted_rewards_after_end"]
        np.testing.assert_array_equal(row[:task["path_lengths"].sum()], flat(task, expected).astype(np.float32))
    samples[0]["adjusted_rewards_after_end"] += 1.0
    assert differs(stack_samples(samples, ["adjusted_rewards"])["adjusted_rewards"], stacked)
    del samples[0]["adjusted_rewards_after_end"]
    with pytest.raises(ValueError, match="task 0: expected samples with an entry 'adjusted_rewards_after_end'"):
        stack_samples(samples, ["adjusted_rewards"])


@pytest.mark.thorough(but="ragged-meta-batch")
@pytest.mark.parametrize("process", ["meta-batch", "DiCE, meta-batch"], indirect=True)
def test_algorithms_use_edited_samples(paths, process, request):
    """After an entry of samples is edited in place, the next update uses the new values."""
    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(3,), name=f"fed{abs(hash(request.node.name))}")
    data = [process(paths), process(paths)]
    is_dice = "mask" in data[0][0]
    key = "adjusted_rewards" if is_dice else "advantages"
    algo = DICEMAML(T, policy, meta_batch_size=2) if is_dice else VPGMAML(policy, meta_batch_size=2)
    values = algo.meta_input_values(data)
    data[0][0][key] *= 2.0
    changed = algo.meta_input_values(data)
    assert [name for name in values if not np.array_equal(values[name], changed[name])] == [
        name for name in values if name.endswith(f"/{key}")][:1]
    data[0].reverse()
    assert not np.array_equal(algo.meta_input_values(data)[name := next(iter(values))], values[name])


@pytest.mark.parametrize("num_threads", [2, 3])
def test_paths_of_several_threads_are_joined_like_those_of_one_thread(num_threads):
    def sample(max_threads):
        set_seed(5)
        with MetaSampler(EnvWithRareInfos(), FixedPolicy(), 3, 2, 5) as sampler:
            sampler.vec_env.max_threads = max_threads
            paths = sampler.obtain_samples()
        for path in (*paths[0], *paths[1]):  # keys are in the order of their first occurrence
            path["env_infos"] = dict(sorted(path["env_infos"].items()))
        return paths

    assert_same(sample(num_threads), sample(1))


def test_path_arrays_are_writable_and_never_reused():
    set_seed(5)
    env = Wanderer()
    with MetaSampler(env, make_policy(env, 2), 3, 2, T) as sampler:
        first = sampler.obtain_samples()
        before = copy.deepcopy(first)
        sampler.obtain_samples()
        assert_same(first, before)
    for path in (*first[0], *first[1]):
        for values in (*path.values(), *path["env_infos"].values(), *path["agent_infos"].values()):
            assert not isinstance(values, np.ndarray) or values.flags.writeable
