"""Builds small trainers."""
from meta_policy_search import VPGMAML, MetaGaussianMLPPolicy, MetaPointEnvCorner, Trainer, set_seed
from meta_policy_search.baselines import LinearFeatureBaseline
from meta_policy_search.samplers import MetaSampleProcessor, MetaSampler


def build_trainer(algo=VPGMAML, sizes=(2, 2, 4), n_itr=1, env=None, policy=None, processor=None,
                  sampler_cls=MetaSampler, seed=None, callbacks=(), sess=None, diagnostics=False, **arguments):
    """Builds a trainer in the default graph.

    Args:
        algo: an algorithm, or its class with `arguments`.
        sizes: number of tasks, paths per task and maximum path length.
        n_itr, callbacks, sess, diagnostics: arguments of the trainer.
        env: default: a point environment with dense rewards.
        policy: policy of an algorithm that is given as a class. Default: a linear Gaussian policy.
        processor: default: normalized advantages of a `LinearFeatureBaseline`.
        sampler_cls: class of the sampler.
        seed: seed to set first.
        **arguments: arguments of the algorithm.
    """
    if seed is not None:
        set_seed(seed)
    num_tasks, num_paths, max_path_length = sizes
    env = MetaPointEnvCorner(reward_type="dense") if env is None else env
    if isinstance(algo, type):
        policy = MetaGaussianMLPPolicy(num_tasks, 2, 2, hidden_sizes=()) if policy is None else policy
        algo = algo(policy=policy, **{"meta_batch_size": num_tasks, **arguments})
    sampler = sampler_cls(env, algo.policy, num_paths, num_tasks, max_path_length)
    processor = processor or MetaSampleProcessor(LinearFeatureBaseline(), normalize_adv=True)
    return Trainer(algo, env, sampler, processor, algo.policy, n_itr, callbacks=callbacks, sess=sess,
                   num_inner_grad_steps=algo.num_inner_grad_steps, diagnostics=diagnostics)
