"""Input of the wrong kind: refused with an error that names the argument, the cause and the remedy."""
import numpy as np
import pytest

import meta_policy_search as mps
from experiments import pro_mp
from meta_policy_search import MetaEnv, MetaGaussianMLPPolicy, MetaPointEnvCorner, MetaSampler, normalize
from meta_policy_search.samplers.utils import rollout
from meta_policy_search.utils.gym_import import gym
from tests.helpers.commands import mistake
from tests.helpers.sampling import BatchedWanderer, Wanderer

M, P, T = 2, 2, 3
VECTOR = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)


class Answering(MetaEnv):
    """Gives one answer at every step."""

    observation_space, action_space = VECTOR, gym.spaces.Box(-1.0, 1.0, (2,), np.float64)

    def __init__(self, observation=(0.0, 0.0), reward=0.0, flag=False, info=None, num_values=5, start=(0.0, 0.0)):
        flags = (flag, False) if num_values == 5 else (flag,)
        self.answer, self.start = (observation, reward, *flags, {} if info is None else info), start

    def sample_tasks(self, n_tasks):
        return [None] * n_tasks

    def set_task(self, task):
        pass

    def reset(self, *, seed=None, options=None):
        return self.start, {}

    def step(self, action):
        return self.answer


def make_policy(meta_batch_size=M):
    return MetaGaussianMLPPolicy(meta_batch_size, 2, 2, hidden_sizes=(4,))


def sample(env):
    with MetaSampler(env, make_policy(), P, M, T) as sampler:
        return sampler.obtain_samples()[0][0]


def with_spaces(**spaces):
    env = Answering()
    vars(env).update(spaces)
    return env


@pytest.mark.parametrize("flag", ["False", np.nan, None, 2, 0.5, [], [True, False], np.zeros(2, bool), 1j], ids=repr)
@pytest.mark.parametrize("num_values", [4, 5])
def test_done_must_be_zero_one_or_boolean(flag, num_values):
    for call in (sample, lambda env: rollout(env, make_policy(1), T)):
        with pytest.raises(ValueError, match="Answering: terminated.*: expected (True or False|a single number)"):
            call(Answering(flag=flag, num_values=num_values))


@pytest.mark.parametrize("kind", [bool, int, float, np.bool_, np.int64, np.array, lambda flag: np.array([flag])])
@pytest.mark.parametrize("num_values", [4, 5])
def test_zero_one_and_numpy_booleans_are_accepted_as_done(kind, num_values):
    for flag, length in ((True, 1), (False, T)):
        assert len(sample(Answering(flag=kind(flag), num_values=num_values))["rewards"]) == length


@pytest.mark.parametrize(("answer", "message"), [
    ({"observation": np.ones(2) + 1j}, "observation: expected an array of real numbers, got array"),
    ({"observation": ["1", "2"]}, "observation: expected an array of real numbers, got "),
    ({"reward": "1.5"}, "step of Answering: reward: expected a single number, got '1.5'"),
    ({"info": []}, r"step of Answering: expected a dict as info, got \[\]"),
])
def test_rewards_must_be_real_and_infos_dicts(answer, message):
    with pytest.raises(ValueError, match=f"{message}.*task 0, path 0, step 0"):
        sample(Answering(**answer))


@pytest.mark.parametrize(("name", "change", "message"), [
    ("terminated", lambda flags: np.where(flags, np.nan, 0.0), "terminated: expected True or False, got"),
    ("truncated", lambda flags: flags + 2, "truncated: expected True or False, got"),
    ("rewards", lambda rewards: rewards.astype(str), "rewards: expected an array of real numbers, got"),
    ("observations", lambda observations: observations + 1j, "observation: expected an array of real numbers, got"),
])
def test_vectorized_environments_are_checked_alike(name, change, message):
    class Batched(BatchedWanderer):
        end_probability = 1.0

        def step(self, actions, env_ids=None):
            answer = super().step(actions, env_ids)
            return answer._replace(**{name: change(getattr(answer, name))})

    with pytest.raises(ValueError, match=message):
        sample(type("Env", (Wanderer,), {"batched_class": Batched})())


ORDER = "expected a box with low <= high and a finite width, or infinite bounds, got bounds from"
KIND = "env.action_space: expected a Box of real numbers or a Discrete, got"


@pytest.mark.parametrize(("space", "message"), [
    (gym.spaces.Box(np.ones(2), -np.ones(2), dtype=np.float64), f"env.action_space: {ORDER}"),
    (gym.spaces.Box(-1e308, 1e308, (2,), np.float64), f"env.action_space: {ORDER}"),
    (gym.spaces.MultiDiscrete([2, 3]), KIND),
], ids=["order", "width", "MultiDiscrete"])
def test_action_spaces_without_a_policy_are_refused(space, message):
    env = with_spaces(action_space=space)
    for call in (sample, normalize, lambda env: MetaGaussianMLPPolicy.for_env(env, M)):
        with pytest.raises(ValueError, match=message):
            call(env)


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_only_observations_are_flattened_by_the_wrapper_of_the_message(name):
    env = with_spaces(**{name: gym.spaces.Tuple([gym.spaces.Discrete(2)])})
    with pytest.raises(TypeError, match=rf"env.{name}: expected a space with a shape") as error:
        sample(env)
    assert ("FlattenObservation" in str(error.value)) == (name == "observation_space")


def test_observation_bounds_must_be_ordered():
    largest = np.full(2, np.finfo(np.float64).max)
    sample(with_spaces(observation_space=gym.spaces.Box(-largest, largest, dtype=np.float64)))
    with pytest.raises(ValueError, match=f"env.observation_space: {ORDER}"):
        sample(with_spaces(observation_space=gym.spaces.Box(np.ones(2), -np.ones(2), dtype=np.float64)))


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_images_are_refused_with_a_remedy(name):
    env = with_spaces(**{name: gym.spaces.Box(0.0, 1.0, (4, 4, 3), np.float64)})
    message = rf"env.{name}: expected vectors, got arrays of shape \(4, 4, 3\)"
    for call in (sample, lambda env: MetaGaussianMLPPolicy.for_env(env, M)):
        with pytest.raises(ValueError, match=message):
            call(env)


@pytest.mark.parametrize("answer", [{"observation": np.full(2, 1e39)}, {"start": np.full(2, 1e39)}])
def test_observations_beyond_float32_are_named(answer):
    with pytest.raises(ValueError, match=r"^observation: expected finite float32 numbers, got \[1.e\+39 1.e\+39\] in"):
        sample(Answering(**answer))


class Rich(MetaPointEnvCorner):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return (observation, 1e30 * (reward - 1.0), *rest)


@pytest.mark.parametrize(("env", "settings"), [
    (Rich, {"normalize_adv": False}), (MetaPointEnvCorner, {"inner_lr": 1e30}),
], ids=["rewards", "inner_lr"])
def test_an_adaptation_step_that_is_too_long_names_its_causes(env, settings, tmp_path, recwarn):
    with pytest.raises(ValueError) as caught:
        mps.train(env("dense"), "vpg_maml", n_itr=1, dump_path=tmp_path, meta_batch_size=M, rollouts_per_meta_task=P,
                  max_path_length=T, hidden_sizes=(4,), progress_bar=False, **settings)
    assert str(caught.value).startswith("policy: expected finite actions, got [")
    assert "lower inner_lr, learning_rate or the scale of the rewards" in str(caught.value)
    assert not [warning for warning in recwarn if "overflow" in str(warning.message)]


@pytest.mark.parametrize("sizes", [(P, 10 ** 11, T), (10 ** 11, M, T), (10 ** 9, M, 10 ** 9)])
def test_more_paths_than_fit_into_memory_are_refused(sizes):
    rollouts, meta_batch_size, max_path_length = sizes
    message = (f"^meta_batch_size={meta_batch_size}, rollouts_per_meta_task={rollouts}, max_path_length="
               f"{max_path_length}: the paths of one adaptation step need [0-9,]+ GB, and this machine has [0-9,]+ GB")
    with pytest.raises(ValueError, match=message):
        MetaSampler(Answering(), make_policy(meta_batch_size), rollouts, meta_batch_size, max_path_length)


@pytest.mark.parametrize(("flags", "name"), [
    (["--inner_lr", 0.1, "--inner_lr", 0.2], "inner_lr"), (["--inner_lr=0.1", "--inner_lr", 0.1], "inner_lr"),
    (["--hidden_sizes", 8, "--hidden_sizes", 8, 8], "hidden_sizes"),
])
def test_repeated_flags_are_refused(flags, name, tmp_path, capsys):
    flags = [*flags, "--smoke", "--dump_path", tmp_path]  # a short run if the flags were accepted
    assert mistake(pro_mp.main, capsys, *flags) == f"pro_mp.py: error: --{name}: expected once, got it 2 times\n"
