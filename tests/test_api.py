"""Tests the documented interface: signatures of every class, and a call of every method with two tasks.

The signatures are those of the method's public documentation (September 2019), written as Python. A default of `...`
stands for any object. `*args` and `**kwargs` stand for the arguments of the documented base classes.
"""
import ast
import importlib
import inspect
from unittest import mock

import numpy as np
import pytest

from meta_policy_search.envs import MetaPointEnvCorner
from meta_policy_search.policies.distributions.diagonal_gaussian import DiagonalGaussian
from meta_policy_search.tf_compat import tf

PACKAGE = "meta_policy_search"
DOCUMENTED = {
    "baselines": """
class Baseline:
    def fit(self, paths): ...
    def get_param_values(self): ...
    def log_diagnostics(self, paths, prefix): ...
    def predict(self, path): ...
    def set_params(self, value): ...

class LinearFeatureBaseline:
    def __init__(self, reg_coeff=1e-05): ...
    def fit(self, paths, target_key="returns"): ...
    def get_param_values(self): ...
    def log_diagnostics(self, paths, prefix): ...
    def predict(self, path): ...
    def set_params(self, value): ...

class LinearTimeBaseline:
    def __init__(self, reg_coeff=1e-05): ...
    def fit(self, paths, target_key="returns"): ...
    def get_param_values(self): ...
    def log_diagnostics(self, paths, prefix): ...
    def predict(self, path): ...
    def set_params(self, value): ...
""",
    "envs.base": """
class MetaEnv:
    def get_task(self): ...
    def log_diagnostics(self, paths, prefix): ...
    def sample_tasks(self, n_tasks): ...
    def set_task(self, task): ...
""",
    "meta_algos": """
class MAMLAlgo(meta_algos.base.MetaAlgo):
    def __init__(self, policy, inner_lr=0.1, meta_batch_size=20, num_inner_grad_steps=1,
                 trainable_inner_step_size=False): ...
    def build_graph(self): ...
    def make_vars(self, prefix=""): ...
    def optimize_policy(self, all_samples_data, log=True): ...

class ProMP(meta_algos.base.MAMLAlgo):
    def __init__(self, *args, name="ppo_maml", learning_rate=0.001, num_ppo_steps=5, num_minibatches=1, clip_eps=0.2,
                 target_inner_step=0.01, init_inner_kl_penalty=0.01, adaptive_inner_kl_penalty=True,
                 anneal_factor=1.0, **kwargs): ...
    def build_graph(self): ...
    def make_vars(self, prefix=""): ...
    def optimize_policy(self, all_samples_data, log=True): ...

class TRPOMAML(meta_algos.base.MAMLAlgo):
    def __init__(self, *args, name="trpo_maml", step_size=0.01, inner_type="likelihood_ratio", exploration=False,
                 **kwargs): ...
    def build_graph(self): ...
    def make_vars(self, prefix=""): ...
    def optimize_policy(self, all_samples_data, log=True): ...

class VPGMAML(meta_algos.base.MAMLAlgo):
    def __init__(self, *args, name="vpg_maml", learning_rate=0.001, inner_type="likelihood_ratio", exploration=False,
                 **kwargs): ...
    def build_graph(self): ...
    def make_vars(self, prefix=""): ...
    def optimize_policy(self, all_samples_data, log=True): ...
""",
    "optimizers": """
class ConjugateGradientOptimizer(optimizers.base.Optimizer):
    def __init__(self, cg_iters=10, reg_coeff=0, subsample_factor=1.0, backtrack_ratio=0.8, max_backtracks=15,
                 debug_nan=False, accept_violation=False, hvp_approach=...): ...
    def build_graph(self, loss, target, input_ph_dict, leq_constraint): ...
    def constraint_val(self, input_val_dict): ...
    def gradient(self, input_val_dict): ...
    def loss(self, input_val_dict): ...
    def optimize(self, input_val_dict): ...

class MAMLFirstOrderOptimizer(optimizers.base.Optimizer):
    def __init__(self, tf_optimizer_cls=..., tf_optimizer_args=None, learning_rate=0.001, max_epochs=1,
                 tolerance=1e-06, num_minibatches=1, verbose=False): ...
    def build_graph(self, loss, target, input_ph_dict): ...
    def loss(self, input_val_dict): ...
    def optimize(self, input_val_dict): ...
""",
    "policies": """
class Policy(utils.serializable.Serializable):
    def __init__(self, obs_dim, action_dim, name="policy", hidden_sizes=(32, 32), learn_std=True,
                 hidden_nonlinearity=..., output_nonlinearity=None, **kwargs): ...
    def build_graph(self): ...
    @property
    def distribution(self): ...
    def distribution_info_keys(self, obs, state_infos): ...
    def distribution_info_sym(self, obs_var, params=None): ...
    def get_action(self, observation): ...
    def get_actions(self, observations): ...
    def get_param_values(self): ...
    def get_params(self): ...
    def likelihood_ratio_sym(self, obs, action, dist_info_old, policy_params): ...
    def log_diagnostics(self, paths): ...
    def log_likelihood_sym(self, obs, action, policy_params): ...
    def set_params(self, policy_params): ...

class MetaPolicy(policies.base.Policy):
    def __init__(self, *args, **kwargs): ...
    def build_graph(self): ...
    @property
    def distribution(self): ...
    def distribution_info_keys(self, obs, state_infos): ...
    def distribution_info_sym(self, obs_var, params=None): ...
    def get_action(self, observation): ...
    def get_actions(self, observations): ...
    def get_param_values(self): ...
    def get_params(self): ...
    def likelihood_ratio_sym(self, obs, action, dist_info_old, policy_params): ...
    def log_diagnostics(self, paths): ...
    def log_likelihood_sym(self, obs, action, policy_params): ...
    @property
    def policies_params_feed_dict(self): ...
    def set_params(self, policy_params): ...
    def switch_to_pre_update(self): ...
    def update_task_parameters(self, updated_policies_parameters): ...

class GaussianMLPPolicy(policies.base.Policy):
    def __init__(self, *args, init_std=1.0, min_std=1e-06, **kwargs): ...
    def build_graph(self): ...
    @property
    def distribution(self): ...
    def distribution_info_keys(self, obs, state_infos): ...
    def distribution_info_sym(self, obs_var, params=None): ...
    def get_action(self, observation): ...
    def get_actions(self, observations): ...
    def get_param_values(self): ...
    def get_params(self): ...
    def likelihood_ratio_sym(self, obs, action, dist_info_old, policy_params): ...
    def load_params(self, policy_params): ...
    def log_diagnostics(self, paths, prefix=""): ...
    def log_likelihood_sym(self, obs, action, policy_params): ...
    def set_params(self, policy_params): ...

class MetaGaussianMLPPolicy(policies.gaussian_mlp_policy.GaussianMLPPolicy, policies.base.MetaPolicy):
    def __init__(self, meta_batch_size, *args, **kwargs): ...
    def build_graph(self): ...
    @property
    def distribution(self): ...
    def distribution_info_keys(self, obs, state_infos): ...
    def distribution_info_sym(self, obs_var, params=None): ...
    def get_action(self, observation, task=0): ...
    def get_actions(self, observations): ...
    def get_param_values(self): ...
    def get_params(self): ...
    def likelihood_ratio_sym(self, obs, action, dist_info_old, policy_params): ...
    def load_params(self, policy_params): ...
    def log_diagnostics(self, paths, prefix=""): ...
    def log_likelihood_sym(self, obs, action, policy_params): ...
    @property
    def policies_params_feed_dict(self): ...
    def set_params(self, policy_params): ...
    def switch_to_pre_update(self): ...
    def update_task_parameters(self, updated_policies_parameters): ...
""",
    "samplers": """
class Sampler:
    def __init__(self, env, policy, batch_size, max_path_length): ...
    def obtain_samples(self): ...

class MetaSampler(samplers.base.Sampler):
    def __init__(self, env, policy, rollouts_per_meta_task, meta_batch_size, max_path_length, envs_per_task=None,
                 parallel=False): ...
    def obtain_samples(self, log=False, log_prefix=""): ...
    def update_tasks(self): ...

class SampleProcessor:
    def __init__(self, baseline, discount=0.99, gae_lambda=1, normalize_adv=False, positive_adv=False): ...
    def process_samples(self, paths, log=False, log_prefix=""): ...

class DiceSampleProcessor(samplers.base.SampleProcessor):
    def __init__(self, baseline, max_path_length, discount=0.99, gae_lambda=1, normalize_adv=True,
                 positive_adv=False, return_baseline=None): ...
    def process_samples(self, paths, log=False, log_prefix=""): ...

class MetaSampleProcessor(samplers.base.SampleProcessor):
    def __init__(self, baseline, discount=0.99, gae_lambda=1, normalize_adv=False, positive_adv=False): ...
    def process_samples(self, paths_meta_batch, log=False, log_prefix=""): ...
""",
    "samplers.vectorized_env_executor": """
class MetaIterativeEnvExecutor:
    def __init__(self, env, meta_batch_size, envs_per_task, max_path_length): ...
    @property
    def num_envs(self): ...
    def reset(self): ...
    def set_tasks(self, tasks): ...
    def step(self, actions): ...

class MetaParallelEnvExecutor:
    def __init__(self, env, meta_batch_size, envs_per_task, max_path_length): ...
    @property
    def num_envs(self): ...
    def reset(self): ...
    def set_tasks(self, tasks=None): ...
    def step(self, actions): ...
""",
    "meta_trainer": """
class Trainer:
    def __init__(self, algo, env, sampler, sample_processor, policy, n_itr, start_itr=0, num_inner_grad_steps=1,
                 sess=None): ...
    def get_itr_snapshot(self, itr): ...
    def train(self): ...
""",
    "np.algos": """
class RLAlgorithm:
    def train(self, runner): ...

class CEM(np.algos.rl_algorithm.RLAlgorithm):
    def __init__(self, env_spec, policy, baseline, n_samples, discount=0.99, max_path_length=500, init_std=1,
                 best_frac=0.05, extra_std=1.0, extra_decay_time=100): ...
    def train(self, runner): ...
    def train_once(self, itr, paths): ...

class CMAES(np.algos.rl_algorithm.RLAlgorithm):
    def __init__(self, env_spec, policy, baseline, n_samples, discount=0.99, max_path_length=500, sigma0=1.0): ...
    def train(self, runner): ...
    def train_once(self, itr, paths): ...

class MetaRLAlgorithm(np.algos.rl_algorithm.RLAlgorithm):
    def adapt_policy(self, exploration_policy, exploration_trajectories): ...
    def get_exploration_policy(self): ...

class NOP(np.algos.rl_algorithm.RLAlgorithm):
    def init_opt(self): ...
    def optimize_policy(self, paths): ...
    def train(self, runner): ...

class OffPolicyRLAlgorithm(np.algos.rl_algorithm.RLAlgorithm):
    def __init__(self, env_spec, policy, qf, replay_buffer, *, use_target=False, discount=0.99, steps_per_epoch=20,
                 max_path_length=None, max_eval_path_length=None, n_train_steps=50, buffer_batch_size=64,
                 min_buffer_size=10000, rollout_batch_size=1, reward_scale=1.0, smooth_return=True,
                 exploration_policy=None): ...
    def init_opt(self): ...
    def log_diagnostics(self, paths): ...
    def process_samples(self, itr, paths): ...
    def train(self, runner): ...
    def train_once(self, itr, paths): ...
""",
}

REQUIRED = inspect.Parameter.empty
STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class DocumentedClass:
    """A documented class: its bases, the parameters of each method, and its properties."""

    def __init__(self, module, node):
        self.module, self.name = module, node.name
        self.bases = [ast.unparse(base) for base in node.bases]
        functions = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
        self.properties = [name for name, f in functions.items() if f.decorator_list]
        signatures = {name: eval(f"lambda {ast.unparse(f.args)}: 0") for name, f in functions.items()}
        self.methods = {name: list(inspect.signature(f).parameters.values())[1:] for name, f in signatures.items()
                        if name not in self.properties}
        self.init = self.methods.pop("__init__", [])


CLASSES = {node.name: DocumentedClass(module, node) for module, source in DOCUMENTED.items()
           for node in ast.parse(source).body}


def load(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)


def class_of(documented):
    return load(f"{documented.module}.{documented.name}")


def accepted_parameters(cls):
    """Returns the constructor's parameters by name; follows `*args` and `**kwargs` into the bases."""
    found = {}
    for base in cls.__mro__:
        if base is not object and "__init__" in vars(base):
            parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
            for parameter in parameters:
                found.setdefault(parameter.name, parameter)
            if not any(parameter.kind in STARS for parameter in parameters):
                break
    return {name: parameter for name, parameter in found.items() if parameter.kind not in STARS}


def documented_parameters(documented):
    """Returns the documented parameters; replaces `*args` and `**kwargs` by the parameters of the bases."""
    parameters = {p.name: p for p in documented.init if p.kind not in STARS}
    if any(p.kind in STARS for p in documented.init):
        for base in documented.bases:
            if base.rsplit(".", 1)[1] in CLASSES:
                parameters = {**documented_parameters(CLASSES[base.rsplit(".", 1)[1]]), **parameters}
    return parameters


def assert_default(where, parameter, documented):
    if documented is ...:
        assert parameter.default is not REQUIRED, f"{where}: expected a default"
    else:
        assert parameter.default == documented, f"{where}: documented default {documented!r}, got {parameter.default!r}"


@pytest.mark.parametrize("documented", CLASSES.values(), ids=CLASSES)
def test_classes_have_the_documented_signatures(documented):
    cls = class_of(documented)
    for base in documented.bases:
        assert issubclass(cls, load(base)), f"expected the base {base}"

    accepted, expected = accepted_parameters(cls), documented_parameters(documented)
    for name, parameter in expected.items():
        assert name in accepted, f"{documented.name}: the constructor does not take {name}"
        assert_default(f"{documented.name}({name})", accepted[name], parameter.default)
    own = [p.name for p in documented.init if p.kind not in STARS]
    if own and not any(p.kind in STARS for p in documented.init):
        assert [name for name in accepted if name in own] == own, "expected the documented order"
        assert all(accepted[p.name].kind in (p.kind, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in documented.init)
    if documented.init:
        needed = {name for name, p in accepted.items() if p.default is REQUIRED}
        assert needed <= set(expected) | ({"meta_batch_size"} if documented.name == "MetaPolicy" else set())

    for method, parameters in documented.methods.items():
        have = [p for p in list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
                if p.kind not in STARS]
        assert [p.name for p in have[:len(parameters)]] == [p.name for p in parameters], method
        for parameter, wanted in zip(have, parameters):
            assert_default(f"{documented.name}.{method}({wanted.name})", parameter, wanted.default)
        assert all(p.default is not REQUIRED for p in have[len(parameters):]), method
    for name in documented.properties:
        assert isinstance(inspect.getattr_static(cls, name), property), f"{documented.name}.{name} is no property"


# Calls of every method of every class, with two tasks

M, P, T, O, A = 2, 3, 5, 2, 2
B = 4  # observations per call


class Watched:
    """Wraps an object and records which of its methods and properties are used."""

    def __init__(self, watched):
        self._watched, self.used = watched, set()

    def __getattr__(self, name):
        self.used.add(name)
        return getattr(self._watched, name)


def build(documented, *args, **kwargs):
    """Builds an object of a documented class and its graph, unless the constructor builds the graph."""
    cls = class_of(documented)
    if "build_graph" not in documented.methods or documented.module == "optimizers":
        return Watched(cls(*args, **kwargs))
    with mock.patch.object(cls, "build_graph", autospec=True, side_effect=cls.build_graph) as build_graph:
        watched = Watched(cls(*args, **kwargs))
    assert build_graph.call_count == 1
    watched.used.add("build_graph")
    return watched


@pytest.fixture(scope="module")
def world():
    """Returns an environment, a policy, and samples `[2][M]` of one adaptation step."""
    with tf.Graph().as_default():
        env = MetaPointEnvCorner(reward_type="dense")
        policy = load("policies.MetaGaussianMLPPolicy")(M, O, A, hidden_sizes=(4,))
        sampler = load("samplers.MetaSampler")(env, policy, P, M, T)
        processor = load("samplers.MetaSampleProcessor")(load("baselines.LinearFeatureBaseline")())
        sampler.update_tasks()
        paths = [sampler.obtain_samples() for _ in range(2)]
        yield {"env": env, "policy": policy, "sampler": sampler, "processor": processor, "paths": paths[0],
               "samples": [processor.process_samples(p) for p in paths]}


def call_baseline(documented, world):
    baseline = build(documented)
    paths = world["paths"][0]
    if documented.name == "Baseline":  # the interface
        for method, *args in (("fit", paths), ("predict", paths[0]), ("set_params", None)):
            with pytest.raises(NotImplementedError):
                getattr(baseline, method)(*args)
        assert baseline.get_param_values() is None and baseline.log_diagnostics(paths, "Step_0-") is None
        return baseline
    assert baseline.fit(paths, target_key="returns") is None
    predictions = baseline.predict(paths[0])
    assert predictions.shape == (T,) and predictions.dtype == np.float64
    params = baseline.get_param_values()
    assert isinstance(params, np.ndarray) and params.ndim == 1
    other = class_of(documented)()
    other.set_params(params)
    np.testing.assert_array_equal(other.predict(paths[0]), predictions)
    baseline.set_params(params)
    assert baseline.log_diagnostics(paths, "Step_0-") is None
    return baseline


def call_env(documented, world):
    interface, env = build(documented), Watched(world["env"])
    for method, *args in (("sample_tasks", 1), ("set_task", None), ("get_task",)):
        with pytest.raises(NotImplementedError):
            getattr(interface, method)(*args)
    assert interface.log_diagnostics([], "Step_0-") is None
    tasks = env.sample_tasks(M)
    assert isinstance(tasks, list) and len(tasks) == M
    env.set_task(tasks[1])
    np.testing.assert_array_equal(env.get_task(), tasks[1])
    return interface


def call_algo(documented, world):
    if documented.name == "MAMLAlgo":  # the frame
        with pytest.raises(TypeError, match="abstract"):
            class_of(documented)(world["policy"], meta_batch_size=M)
        return None
    policy = load("policies.MetaGaussianMLPPolicy")(M, O, A, hidden_sizes=(4,))
    algo = build(documented, policy, 0.1, M, 1, False)
    before = policy.get_flat_params()
    assert algo.optimize_policy(world["samples"], log=False) is None
    assert (policy.get_flat_params() != before).any()
    placeholders = algo.make_vars(prefix="some_")
    assert isinstance(placeholders, tuple) and all(isinstance(phs, list) and len(phs) == M for phs in placeholders)
    return algo


def call_optimizer(documented, world):
    optimizer = build(documented)
    w = tf.Variable([1.0, 2.0], use_resource=True)
    target = mock.Mock(spec=["get_params"], get_params=lambda: {"w": w})
    x = tf.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_mean(tf.reduce_sum((w - x) ** 2, axis=1))
    values = {"x": np.zeros((B, 2))}
    if documented.name == "ConjugateGradientOptimizer":
        constraint = tf.reduce_sum((w - tf.constant([1.0, 2.0])) ** 2)
        assert optimizer.build_graph(loss, target, {"x": x}, (constraint, 0.01)) is None
        np.testing.assert_allclose(optimizer.gradient(values), [2.0, 4.0])
        assert optimizer.constraint_val(values) == 0.0
    else:
        assert optimizer.build_graph(loss, target, {"x": x}) is None
    assert isinstance(optimizer.loss(values), float)
    assert optimizer.optimize(values) == pytest.approx(5.0)  # the loss before the update
    assert optimizer.loss(values) < 5.0
    return optimizer


def call_policy(documented, world):
    cls = class_of(documented)
    if inspect.isabstract(cls):
        with pytest.raises(TypeError, match="abstract"):
            cls(*([M] if documented.name == "MetaPolicy" else []), O, A)
        return None
    is_meta = documented.name.startswith("Meta")
    policy = build(documented, *([M] if is_meta else []), O, A, "name", (4,), True, tf.tanh, None)
    assert isinstance(policy.distribution, DiagonalGaussian)
    # parameters
    values, variables = policy.get_param_values(), policy.get_params()
    assert list(values) == list(variables)
    assert policy.set_params(values) is None and policy.load_params(values) is None
    # actions
    observations = np.zeros((M, B, O)) if is_meta else np.zeros((B, O))
    actions, infos = policy.get_actions(observations)
    assert np.shape(actions) == observations.shape[:-1] + (A,)
    if is_meta:
        assert len(infos) == M and all(len(task_infos) == B for task_infos in infos)
        action, info = policy.get_action(np.zeros(O), task=1)
    else:
        assert infos["mean"].shape == infos["log_std"].shape == (B, A)
        action, info = policy.get_action(np.zeros(O))
    assert action.shape == info["mean"].shape == info["log_std"].shape == (A,)
    # graph functions
    obs, act = tf.zeros([B, O]), tf.zeros([B, A])
    info = policy.distribution_info_sym(obs, params=variables)
    assert policy.distribution_info_sym(obs)["mean"].shape == info["mean"].shape == (B, A)
    assert policy.distribution_info_keys(obs, {})["mean"].shape == (B, A)
    assert policy.likelihood_ratio_sym(obs, act, info, variables).shape == (B,)
    assert policy.log_likelihood_sym(obs, act, variables).shape == (B,)
    assert policy.log_diagnostics(world["paths"][0], prefix="Step_0-") is None
    if is_meta:
        assert policy.update_task_parameters([values] * M) is None
        feed = policy.policies_params_feed_dict
        assert len(feed) == len(values) and all(value.shape[0] == M for value in feed.values())
        assert policy.switch_to_pre_update() is None
    return policy


def call_sampler(documented, world):
    if documented.name == "Sampler":  # the interface
        sampler = build(documented, world["env"], world["policy"], P, T)
        with pytest.raises(NotImplementedError):
            sampler.obtain_samples()
        return sampler
    sampler = build(documented, world["env"], world["policy"], P, M, T, P, False)
    assert sampler.update_tasks() is None
    paths = sampler.obtain_samples(log=True, log_prefix="Step_0-")
    assert list(paths) == list(range(M))
    for task_paths in paths.values():
        assert [path["observations"].shape for path in task_paths] == [(T, O)] * P
    return sampler


def call_processor(documented, world):
    baseline = load("baselines.LinearTimeBaseline")()
    is_dice = documented.name.startswith("Dice")
    processor = build(documented, baseline, *([T] if is_dice else []), 0.99, 1, False, False)
    if documented.name == "MetaSampleProcessor":
        samples = processor.process_samples(world["paths"], log=True, log_prefix="Step_0-")
        assert isinstance(samples, list) and len(samples) == M
        samples = samples[0]
    else:
        samples = processor.process_samples(world["paths"][0], log=True, log_prefix="Step_0-")
    assert samples["observations"].shape == ((P, T, O) if is_dice else (P * T, O))
    assert samples["adjusted_rewards" if is_dice else "advantages"].shape == ((P, T) if is_dice else (P * T,))
    return processor


def call_executor(documented, world):
    executor = build(documented, world["env"], M, P, T)
    try:
        assert executor.num_envs == M * P
        executor.set_tasks(world["env"].sample_tasks(M))
        observations = executor.reset()
        assert isinstance(observations, list) and [obs.shape for obs in observations] == [(O,)] * (M * P)
        answer = executor.step([np.zeros(A)] * (M * P))
        assert isinstance(answer, tuple) and len(answer) == 4
        assert all(isinstance(part, list) and len(part) == M * P for part in answer)
        observations, rewards, dones, env_infos = (part[0] for part in answer)
        assert observations.shape == (O,) and isinstance(rewards, float)
        assert isinstance(dones, bool) and isinstance(env_infos, dict)
    finally:
        executor._watched.close()
    return executor


def call_trainer(documented, world):
    algo = mock.Mock(spec=["num_inner_grad_steps", "adapt", "optimize_policy"], num_inner_grad_steps=1)
    trainer = build(documented, algo, world["env"], world["sampler"], world["processor"], world["policy"], 1, 0, 1,
                    None)
    assert trainer.train() is None
    assert algo.adapt.call_count == algo.optimize_policy.call_count == 1
    ((all_samples,), _) = algo.optimize_policy.call_args
    assert [len(samples) for samples in all_samples] == [M, M]
    snapshot = trainer.get_itr_snapshot(0)
    assert {"itr", "policy", "env", "baseline"} <= set(snapshot)
    return trainer


def call_np_algo(documented, world):
    if inspect.isabstract(class_of(documented)):
        with pytest.raises(TypeError, match="abstract"):
            class_of(documented)()
        return None
    runner, env = load("local_runner.LocalRunner")(), world["env"]
    if documented.name == "NOP":
        algo = build(documented)
        assert algo.init_opt() is None and algo.optimize_policy(world["paths"][0]) is None
        runner.setup(algo._watched, env)
        assert runner.train(1) is None and algo.train(runner) is None
        return algo
    policy = load("np.policies.DeterministicMLPPolicy")(O, A, (4,))
    spec, baseline = load("envs.env_spec.EnvSpec").of(env), load("baselines.LinearFeatureBaseline")()
    own = {"CEM": [1, 0.5, 1.0, 100], "CMAES": [1.0]}[documented.name]
    algo = build(documented, spec, policy, baseline, B, 0.99, T, *own)
    before = policy.get_flat_params()
    assert isinstance(algo.train_once(0, world["paths"][0]), float)
    policy.set_flat_params(before)
    runner.setup(algo._watched, env)
    runner.train(1, T)
    assert (policy.get_flat_params() != before).any()
    assert isinstance(algo.train(runner), float)  # no epochs left: returns the average of the last epoch
    return algo


CALLS = {"baselines": call_baseline, "envs.base": call_env, "meta_algos": call_algo, "optimizers": call_optimizer,
         "policies": call_policy, "samplers": call_sampler, "samplers.vectorized_env_executor": call_executor,
         "meta_trainer": call_trainer, "np.algos": call_np_algo}


@pytest.mark.parametrize("documented", CLASSES.values(), ids=CLASSES)
def test_every_class_can_be_built_and_every_method_called(documented, world):
    call = call_processor if documented.name.endswith("Processor") else CALLS[documented.module]
    watched = call(documented, world)
    if watched is not None:  # None: an abstract base class
        assert set(documented.methods) | set(documented.properties) <= watched.used
