"""The single files compute what the library computes, on identical samples, and sample paths as they claim."""
import ast
import functools
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from experiments.single_file import promp, rl2, trpo_maml
from meta_policy_search import (
    RL2,
    TRPOMAML,
    GaussianRecurrentPolicy,
    LinearFeatureBaseline,
    MetaGaussianMLPPolicy,
    MetaSampleProcessor,
    MetaSampler,
    ProMP,
    TrialEnv,
    sessions,
)
from meta_policy_search.optimizers import ConjugateGradientOptimizer
from meta_policy_search.samplers import TrialSampleProcessor
from meta_policy_search.tf_compat import tf
from tests.helpers.sampling import M, P, T, Wanderer

FILES = sorted(Path(promp.__file__).parent.glob("*.py"))
OF_PROCESSOR = {"discount": 0.9, "gae_lambda": 0.8}
COMMON = {"meta_batch_size": M, "inner_lr": 0.1, "hidden_sizes": (8, 8), **OF_PROCESSOR}
OF_PROMP = {"num_ppo_steps": 3, "learning_rate": 0.01, "clip_eps": 0.05}


@pytest.fixture(autouse=True)
def _unoptimized_graphs(monkeypatch):
    """Skips TensorFlow's graph optimization, which takes most of the time of tiny graphs."""
    monkeypatch.setattr(tf, "Session", functools.partial(tf.Session, config=sessions.CONFIG))


def padded(paths, key):
    """Joins an entry of the paths of all tasks, `[M * P, T, ...]`; the last step of a path is repeated."""
    arrays = [path["agent_infos"][key] if key in path["agent_infos"] else path[key]
              for of_task in paths.values() for path in of_task]
    longest = max(map(len, arrays))
    return np.stack([np.concatenate([x, np.repeat(x[-1:], longest - len(x), axis=0)]) for x in arrays])


def mask_of(paths):
    lengths = np.array([len(path["rewards"]) for of_task in paths.values() for path in of_task])
    assert len(set(lengths.tolist())) > 1, "paths of unequal length"
    return np.arange(lengths.max()) < lengths[:, None]


def load(algo, policy):
    for variable, value in zip(algo.theta, policy.get_param_values().values(), strict=True):
        variable.load(value, algo.session)


def flat_theta(algo):
    return np.concatenate([value.ravel() for value in algo.session.run(algo.theta)])


def make_promp(policy, num_steps):
    settings = promp.Settings(num_inner_grad_steps=num_steps, inner_kl_penalty=0.3, **OF_PROMP, **COMMON)
    return promp, promp.ProMP(2, 2, settings), ProMP(
        policy, settings.inner_lr, M, num_steps, init_inner_kl_penalty=0.3, adaptive_inner_kl_penalty=False, **OF_PROMP)


def make_trpo_maml(policy, num_steps):
    settings = trpo_maml.Settings(num_inner_grad_steps=num_steps, step_size=1e-3, cg_iters=5, **COMMON)
    return trpo_maml, trpo_maml.TRPOMAML(2, 2, settings), TRPOMAML(
        policy, settings.inner_lr, M, num_steps, step_size=1e-3, inner_type="log_likelihood",
        optimizer=ConjugateGradientOptimizer(cg_iters=5))  # further iterations amplify the rounding of float32


@pytest.mark.parametrize(("make", "num_steps"), [
    pytest.param(make, num_steps, id=f"{make.__name__}-{num_steps}")
    for make in (make_promp, make_trpo_maml) for num_steps in (1, 2)])
@pytest.mark.thorough(but=("make_promp-2", "make_trpo_maml-1"))
def test_gradient_methods_equal_the_library(make, num_steps):
    policy = MetaGaussianMLPPolicy(M, 2, 2, hidden_sizes=COMMON["hidden_sizes"])
    module, single, library = make(policy, num_steps)
    load(single, policy)
    processor = MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True, **OF_PROCESSOR)
    of_single, of_library = [], []
    with MetaSampler(Wanderer(), policy, P, M, T) as sampler:
        sampler.update_tasks()
        for k in range(num_steps + 1):
            # given the paths of the library's policies, before and after adaptation
            paths = sampler.obtain_samples()
            mask = mask_of(paths)
            samples = {key: padded(paths, key).reshape(M, P, mask.shape[1], -1)
                       for key in ("observations", "actions", "mean", "log_std")}
            samples["rewards"], samples["mask"] = (x.reshape(M, P, -1) for x in (padded(paths, "rewards"), mask))
            # then the advantages are equal
            of_library.append(processor.process_samples(paths))
            samples["advantages"] = module.advantages_of(samples, single.settings)
            for m in range(M):
                np.testing.assert_allclose(samples["advantages"][m][samples["mask"][m]],
                                           of_library[-1][m]["advantages"], rtol=0.0, atol=1e-9)
            of_single.append(samples)
            if k == num_steps:
                break
            # and so are the adapted parameters
            library.adapt(of_library[-1])
            for value, name in zip(single.adapt(of_single), policy.get_param_values(), strict=True):
                expected = [params[name] for params in policy.policies_params_vals]
                np.testing.assert_allclose(value, expected, rtol=0.0, atol=1e-6)
    # and the meta-gradient
    gradient = library.optimizer.gradient(library.meta_input_values(of_library))
    value = single.session.run(single.gradient, single.feed(of_single))
    value = np.concatenate([np.ravel(x) for x in value])
    assert np.linalg.norm(gradient) > 0.01
    np.testing.assert_allclose(value, gradient, rtol=1e-6, atol=1e-6)
    # and the update
    before = flat_theta(single)
    single.update(of_single)
    library.optimize_policy(of_library, log=False)
    after = flat_theta(single)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after, policy.get_flat_params(), rtol=0.0, atol=1e-6)


def test_rl2_equals_the_library():
    # given trials of the library's policy, and a single file with the same parameters and random numbers
    settings = rl2.Settings(hidden_size=4, num_ppo_steps=2, num_minibatches=3, clip_eps=0.05, **OF_PROCESSOR)
    env = TrialEnv(Wanderer(), episodes_per_trial=2, max_path_length=T)
    policy = GaussianRecurrentPolicy(M, 6, 2, hidden_size=4)
    policy.set_params({name: value + 0.2 for name, value in policy.get_param_values().items()})
    single = rl2.RL2(6, 2, settings)
    load(single, policy)
    library = RL2(policy, M, num_ppo_steps=2, num_minibatches=3, clip_eps=0.05, value_coef=settings.value_coef,
                  learning_rate=settings.learning_rate)
    with MetaSampler(env, policy, P, M, 2 * T) as sampler:
        sampler.update_tasks()
        paths = sampler.obtain_samples()
    names = {"inputs": "observations", **{key: key for key in ("actions", "mean", "log_std", "value", "rewards")}}
    samples = rl2.process({"mask": mask_of(paths), **{key: padded(paths, name) for key, name in names.items()}},
                          settings)
    # then the policy, the advantages, the gradient and the update are equal
    state = np.zeros((M * P, 4), np.float32)
    for t in range(samples["mask"].shape[1]):
        params = single.session.run(single.theta)
        state = rl2.gru(params, samples["inputs"][:, t].astype(np.float32), state, np.tanh)
        for value, key in zip(rl2.heads(params, state), ("mean", "log_std", "value")):
            np.testing.assert_allclose(value[samples["mask"][:, t]], samples[key][:, t][samples["mask"][:, t]],
                                       rtol=0.0, atol=1e-6)
    of_library = TrialSampleProcessor(**OF_PROCESSOR).process_samples(paths)
    np.testing.assert_allclose(samples["advantages"][samples["mask"]],
                               np.concatenate([task["advantages"] for task in of_library]), rtol=0.0, atol=1e-9)
    gradient = single.session.run(single.gradient, single.feed(samples, np.arange(M * P)))
    np.testing.assert_allclose(np.concatenate([np.ravel(x) for x in gradient]),
                               library.optimizer.gradient(library.input_values(of_library)), rtol=0.0, atol=1e-6)
    before, rng = flat_theta(single), np.random.default_rng(3)
    library.set_state({"optimizer": {**library.get_state()["optimizer"], "rng": rng.bit_generator.state}})
    single.update(samples, rng)
    library.optimize_policy([of_library], log=False)
    assert np.abs(flat_theta(single) - before).max() > 1e-3
    np.testing.assert_allclose(flat_theta(single), policy.get_flat_params(), rtol=0.0, atol=1e-6)


class Counter(gymnasium.Env):
    """The task is the length of an episode. Observes task and step; the reward is the clipped action."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-0.5, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task = (options or {}).get("task", int(self.np_random.integers(1, 4)))
        self.t = 0
        return np.array([self.task, 0.0]), {"task": self.task}

    def step(self, action):
        self.t += 1
        return np.array([self.task, self.t], float), float(action[0]), self.t == self.task, False, {"task": self.task}


@pytest.fixture
def envs():
    """Copies of an environment of another package, without own vectorization."""
    gymnasium.register("test_single_file/Counter-v0", Counter, max_episode_steps=5)
    envs = gymnasium.make_vec("test_single_file/Counter-v0", 6)
    envs.reset(seed=1)
    yield envs
    envs.close()
    del gymnasium.registry["test_single_file/Counter-v0"]


@pytest.mark.parametrize("module", [promp, trpo_maml])
def test_paths_belong_to_their_tasks(module, envs):
    settings, tasks = module.Settings(rollouts_per_meta_task=2, normalization_scale=0.5), [2, 9, 1]
    params = [np.stack([value] * 3) for value in module.initial_params(2, 1, settings)]
    samples = module.sample(envs, tasks, params, settings, np.random.default_rng(0))
    lengths = samples["mask"].sum(axis=2)
    assert lengths.tolist() == [[2, 2], [5, 5], [1, 1]]  # the time limit ends the paths of the second task
    mask = samples["mask"]
    assert (samples["observations"][..., 0] == np.array(tasks)[:, None, None])[mask].all()
    assert (samples["observations"][..., 1] == np.arange(5))[mask].all()
    moves = np.clip(-0.5 + (samples["actions"][..., 0] + 0.5) * 1.5 / 1.0, -0.5, 1.0)
    np.testing.assert_allclose(samples["rewards"][mask], moves[mask], atol=1e-6)
    assert (np.abs(samples["actions"]) > 0.5).any()  # and are clipped


def test_trials_consist_of_episodes_of_one_task(envs):
    settings, tasks = rl2.Settings(rollouts_per_meta_task=2, episodes_per_trial=3), [2, 9, 1]
    params = rl2.initial_params(5, 1, settings)
    samples = rl2.sample(envs, tasks, params, settings, np.random.default_rng(0))
    mask, inputs = samples["mask"], samples["inputs"]
    assert mask.sum(axis=1).tolist() == [6, 6, 15, 15, 3, 3]
    assert (inputs[..., 0] == np.repeat(tasks, 2)[:, None])[mask].all()
    assert inputs[0, :6, 1].tolist() == [0, 1, 0, 1, 0, 1]  # steps within the episodes
    assert samples["episode"][0, :6].tolist() == [0, 0, 1, 1, 2, 2]
    assert inputs[0, :6, 4].tolist() == [0, 0, 1, 0, 1, 0]  # an episode has ended
    np.testing.assert_array_equal(inputs[:, 1:, 2], samples["actions"][:, :-1, 0])
    np.testing.assert_array_equal(inputs[:, 1:, 3], samples["rewards"][:, :-1])
    assert not inputs[:, 0, 2:].any()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_is_short_and_needs_no_other_package(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    modules = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert {name.split(".")[0] for name in modules} - sys.stdlib_module_names == {"gymnasium", "numpy", "tensorflow"}
