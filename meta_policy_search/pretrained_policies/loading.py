"""Builds the evaluator of a pretrained policy."""
from meta_policy_search.envs import make_env
from meta_policy_search.evaluation import MetaEvaluator
from meta_policy_search.evaluation.trial_evaluator import make_evaluator
from meta_policy_search.pretrained_policies.listing import DATA, find_pretrained
from meta_policy_search.registry import get_algorithm
from meta_policy_search.run import make_trainer
from meta_policy_search.tf_compat import tf
from meta_policy_search.utils import seeding


def load_pretrained(name: str) -> MetaEvaluator:
    """Loads a pretrained policy, with environment and algorithm as in its training. Runs no code from files.

    The result has the attributes `policy`, `env` (normalized), `algo` (such as `algo.inner_lr`), `sample_processor`,
    `rollouts_per_meta_task` and `max_path_length`. `evaluate()` repeats the mean returns in `pretrained()`.

    Args:
        name: name of the policy, such as `"half_cheetah_direction/promp"`. Case, hyphens and underscores are ignored.

    Returns:
        The evaluator.

    Raises:
        ValueError: no policy has this name.
        ImportError: the environment needs a package that is not installed, such as metaworld.
    """
    record = find_pretrained(name)
    with seeding.evaluation_seed(0), tf.Graph().as_default():  # keeps the caller's random generators unchanged
        trainer = make_trainer(make_env(record.env, **record.env_kwargs), get_algorithm(record.algo), 1, (),
                               {name: value for name, value in record.settings.items() if value is not None})
        trainer.policy.load_npz(DATA / f"{record.name}.npz")
        trainer.sampler.close()
        return make_evaluator(trainer, rollouts_per_meta_task=record.rollouts_per_meta_task, name=record.name)
