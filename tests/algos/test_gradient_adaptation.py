"""Adaptation of `meta_algos` through the `MetaRLAlgorithm` interface gives the same numbers as `adapt`."""
import pickle

import numpy as np
import pytest

from meta_policy_search import EnvSpec, GradientAdaptation, MetaRLAlgorithm, TrajectoryBatch
from meta_policy_search.baselines import LinearFeatureBaseline, LinearTimeBaseline, ZeroBaseline
from meta_policy_search.envs import MetaPointEnvCorner, MetaTabularMDPEnv
from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy, TaskPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor, MetaSampleProcessor, MetaSampler, SingleTaskSampler
from meta_policy_search.tf_compat import tf
from tests.helpers.sampling import SlowBaseline, algo_of
from tests.meta_algos.test_inner_update import MomentumMAML

M, P, T = 3, 4, 5
ALGOS = {
    "ProMP": (ProMP, {}), "TRPO-MAML": (TRPOMAML, {"inner_type": "log_likelihood"}),
    "E-MAML": (TRPOMAML, {"exploration": True}), "VPG-MAML": (VPGMAML, {"inner_type": "dice", "max_path_length": T}),
    "DiCE-MAML": (DICEMAML, {"max_path_length": T}), "VPG-DiCE-MAML": (VPG_DICEMAML, {"max_path_length": T}),
}


def make_env(is_discrete=False):
    return MetaTabularMDPEnv() if is_discrete else MetaPointEnvCorner(reward_type="dense")


def make(name="VPG-MAML", is_discrete=False, processor=None, **arguments):
    cls, own = ALGOS[name]
    spec = EnvSpec.of(make_env(is_discrete))
    policy_class = MetaCategoricalMLPPolicy if is_discrete else MetaGaussianMLPPolicy
    policy = policy_class(M, spec.obs_dim, spec.action_dim, hidden_sizes=(4,), **arguments)
    if processor is None:
        processor = {
            DICEMAML: lambda: DiceMetaSampleProcessor(LinearTimeBaseline(), T),
            VPG_DICEMAML: lambda: DiceMetaSampleProcessor(LinearTimeBaseline(), T, return_baseline=ZeroBaseline()),
        }.get(cls, lambda: MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True))()
    algo = cls(policy=policy, inner_lr=0.5, meta_batch_size=M, **own)
    return GradientAdaptation(algo, processor)


def sample(algo, is_discrete=False):
    env = make_env(is_discrete)
    sampler = MetaSampler(env, algo.policy, P, M, T)
    sampler.update_tasks()
    return EnvSpec.of(env), sampler


def explore(policy, env, itr=0):
    sampler = SingleTaskSampler(algo_of(policy, T), env)
    return TrajectoryBatch.from_paths(EnvSpec.of(env), sampler.obtain_samples(itr, P * T))


def flat(params):
    return np.concatenate([np.ravel(value) for value in params.values()])


@pytest.mark.parametrize("is_discrete", [False, True], ids=["gaussian", "categorical"])
@pytest.mark.parametrize("name", ALGOS)
@pytest.mark.thorough(but=("ProMP-gaussian", "VPG-DiCE-MAML-gaussian", "TRPO-MAML-categorical"),
                      ci=("E-MAML-gaussian", "VPG-MAML-categorical"))
def test_adaptation_of_each_task_equals_joint_adaptation(name, is_discrete):
    """After two steps on the same paths, the policy of a task has the parameters of `MAMLAlgo.adapt`."""
    adaptation = make(name, is_discrete)
    algo = adaptation.algo
    spec, sampler = sample(algo, is_discrete)
    policies = [adaptation.get_exploration_policy() for _ in range(M)]
    start = algo.policy.get_flat_params()
    for _ in range(2):
        paths = sampler.obtain_samples()
        algo.adapt(adaptation.sample_processor.process_samples(paths))
        policies = [adaptation.adapt_policy(policy, TrajectoryBatch.from_paths(spec, paths[task]))
                    for task, policy in enumerate(policies)]
        assert [adaptation.next_exploration_policy(policy) for policy in policies] == policies
        for policy, expected in zip(policies, algo.policy.policies_params_vals, strict=True):
            assert isinstance(policy, TaskPolicy)
            moved, ours = flat(expected) - start, policy.get_flat_params() - start
            np.testing.assert_allclose(ours, moved, rtol=1e-3, atol=1e-4 * np.abs(moved).max())
            assert np.abs(moved).max() > 1e-3
    np.testing.assert_array_equal(algo.policy.get_flat_params(), start)


def test_state_of_the_update_rule_is_kept():
    """Two steps with momentum equal those of `MAMLAlgo.adapt`; steps from other parameters start anew."""
    policy = MetaGaussianMLPPolicy(M, 2, 2, hidden_sizes=(4,))
    adaptation = GradientAdaptation(MomentumMAML(policy, inner_lr=0.5, meta_batch_size=M),
                                    MetaSampleProcessor(ZeroBaseline()))
    spec, sampler = sample(adaptation.algo)
    adapted, batches = adaptation.get_exploration_policy(), [sampler.obtain_samples() for _ in range(2)]
    for paths in batches:
        adaptation.algo.adapt(adaptation.sample_processor.process_samples(paths))
        adapted = adaptation.adapt_policy(adapted, TrajectoryBatch.from_paths(spec, paths[0]))
    expected = flat(policy.policies_params_vals[0])
    np.testing.assert_allclose(adapted.get_flat_params(), expected, rtol=1e-4, atol=1e-6)
    assert adapted.inner_state and not adapted.with_params(adapted.get_param_values()).inner_state


def test_exploration_policies_are_independent():
    """After one is adapted and the meta-policy changes, another has the parameters at its creation."""
    adaptation = make()
    first, second = adaptation.get_exploration_policy(), adaptation.get_exploration_policy()
    start = adaptation.policy.get_flat_params()
    env = make_env()
    adapted = adaptation.adapt_policy(first, explore(first, env))
    adaptation.policy.set_flat_params(np.zeros_like(start))
    for policy in (first, second):
        np.testing.assert_array_equal(policy.get_flat_params(), start)
    assert (adapted.get_flat_params() != start).any()
    np.testing.assert_array_equal(adaptation.get_exploration_policy().get_flat_params(), 0.0)


def test_tasks_are_independent():
    adaptation = make(processor=MetaSampleProcessor(SlowBaseline()))
    policy = adaptation.get_exploration_policy()
    trajectories = explore(policy, make_env())
    first, second = (adaptation.adapt_policy(policy, trajectories) for _ in range(2))
    np.testing.assert_array_equal(first.get_flat_params(), second.get_flat_params())
    assert adaptation.sample_processor.baseline.slope == 0.0


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name == "ProMP" else pytest.mark.slow) for name in ALGOS])
@pytest.mark.thorough
def test_every_algorithm_can_be_pickled(name):
    """An algorithm and its copy, unpickled in another graph, perform equal updates."""
    algo = make(name).algo
    processor = make(name).sample_processor
    _, sampler = sample(algo)
    paths = [sampler.obtain_samples() for _ in range(2)]
    samples = [processor.process_samples(each) for each in paths]
    algo.optimize_policy(samples, log=False)
    pickled = pickle.dumps(algo)
    with tf.Graph().as_default():
        other = pickle.loads(pickled)
        assert type(other) is type(algo)
        np.testing.assert_array_equal(other.policy.get_flat_params(), algo.policy.get_flat_params())
        other.optimize_policy(samples, log=False)
        theirs = other.policy.get_flat_params()
    algo.optimize_policy(samples, log=False)
    np.testing.assert_array_equal(theirs, algo.policy.get_flat_params())


# Invalid arguments


def test_invalid_arguments_are_refused():
    adaptation = make()
    policy = adaptation.get_exploration_policy()
    env = make_env()
    trajectories = explore(policy, env)
    assert isinstance(adaptation, MetaRLAlgorithm)
    with pytest.raises(TypeError, match="algo: expected a MetaAlgo .*got 'ProMP'"):
        GradientAdaptation("ProMP", MetaSampleProcessor(ZeroBaseline()))
    with pytest.raises(TypeError, match="sample_processor: expected an object with process_samples, got None"):
        GradientAdaptation(adaptation.algo, None)
    with pytest.raises(TypeError, match="exploration_policy: expected a TaskPolicy, got "):
        adaptation.adapt_policy(adaptation.policy, trajectories)
    with pytest.raises(TypeError, match="exploration_trajectories: expected a TrajectoryBatch, got list"):
        adaptation.adapt_policy(policy, trajectories.to_paths())
    paths = [{**path, "agent_infos": {}} for path in trajectories.to_paths()]
    with pytest.raises(ValueError, match="expected samples with an entry 'agent_infos/mean'"):
        adaptation.adapt_policy(policy, TrajectoryBatch.from_paths(EnvSpec.of(env), paths))
