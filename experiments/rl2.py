"""RL^2 (arXiv:1611.02779): trains a recurrent policy that adapts to a task within a trial of several episodes.

    python experiments/rl2.py                                                      # bandits: 10 pulls, 5 arms
    python experiments/rl2.py --episodes_per_trial 100 --n_itr 300                 # bandits: 100 pulls, 5 arms
    python experiments/rl2.py --env MetaTabularMDPEnv --episodes_per_trial 10 --max_path_length 10

`evaluate.py` prints the mean return of each episode of a trial, and of the whole trial.
"""
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional

import meta_policy_search as mps
from experiments.command import Experiment, make_main
from experiments.parts import first_order_arguments
from experiments.settings import BASELINES, SMOKE, FirstOrderSettings, RunConfig, arguments_for, setting
from meta_policy_search.plotting import plot_learning_curve, read_progress
from meta_policy_search.utils import logger
from meta_policy_search.utils.utils import set_seed


@dataclass(frozen=True)
class Config(FirstOrderSettings, RunConfig):
    """Settings for bandits with 10 pulls and 5 arms."""

    smoke: ClassVar[Mapping[str, Any]] = {
        **{name: value for name, value in SMOKE.items() if name != "hidden_sizes"}, "max_path_length": 2,
        "hidden_size": 8, "num_minibatches": 2, "episodes_per_trial": 3}

    env: str = setting("MetaBernoulliBanditEnv", "class of the environment", mps.available_envs())
    n_itr: int = setting(100, "meta-updates")
    learning_rate: float = setting(3e-3, "step size on the meta-objective")
    normalization_scale: float = setting(10.0, "bound of the policy's actions, which are scaled to the environment's")
    episodes_per_trial: int = setting(10, "episodes of a trial")
    max_path_length: int = setting(1, "steps of an episode, at most")
    meta_batch_size: int = setting(250, "tasks per iteration")
    rollouts_per_meta_task: int = setting(10, "trials per task")
    envs_per_task: Optional[int] = setting(None, "trials of a task that are sampled at the same time; none for all")
    hidden_size: int = setting(64, "gated recurrent units of the policy")
    init_std: float = setting(1.0, "initial standard deviation; actions span +- normalization_scale")
    min_std: float = setting(1e-6, "smallest standard deviation, in the same unit")
    baseline: Optional[str] = setting(None, "class of the baseline of the rewards; none for the policy's value head",
                                      BASELINES)
    discount: float = setting(0.99, "discount factor per step, in [0, 1]")
    gae_lambda: float = setting(0.3, "lambda of the advantage estimation, in [0, 1]")
    normalize_adv: bool = setting(True, "give advantages mean zero and standard deviation one")
    positive_adv: bool = setting(False, "shift advantages to positive values")
    num_ppo_steps: int = setting(8, "passes over the same trials per meta-update")
    num_minibatches: int = setting(4, "random parts of the trials per pass, with one step each")
    clip_eps: float = setting(0.1, "half-width of the interval that likelihood ratios are clipped to")
    value_coef: float = setting(0.5, "coefficient of the loss of the value head")
    entropy_coef: float = setting(0.0, "coefficient of the entropy bonus")


class TrialExperiment(Experiment):
    """Experiment without inner gradient steps: draws and summarizes returns instead of adaptation gains."""

    def draw(self, folder: str, config: Config) -> None:
        """Draws the learning curve."""
        plot_learning_curve(folder)

    def summarize(self, trainer: Any, config: Config) -> str:
        """Returns a sentence with the mean return of trials, first and last episodes over the last iterations."""
        progress = read_progress(str(logger.get_dir()))
        last = slice(-10, None)
        names = ("AverageReturn", "FirstEpisodeReturn", "LastEpisodeReturn")
        whole, first, end = (progress[f"Step_0-{name}"][last].mean() for name in names)
        return (f"The return of a trial is {whole:.2f}, that of its first episode {first:.2f}, of its last {end:.2f}: "
                f"mean of the last {len(progress['Itr'][last])} iterations")


def build(config: Config) -> "mps.Trainer":
    """Builds RL^2 and its trainer."""
    set_seed(config.seed)
    env = mps.normalize(mps.make_env(config.env, **config.env_kwargs), normalization_scale=config.normalization_scale)
    env = mps.TrialEnv(env, config.episodes_per_trial, config.max_path_length)
    policy_class = mps.CategoricalGRUPolicy if hasattr(env.action_space, "n") else mps.GaussianGRUPolicy
    policy = policy_class.for_env(env, **arguments_for(policy_class, config))
    sampler = mps.MetaSampler(**arguments_for(mps.MetaSampler, config, env=env, policy=policy,
                                              max_path_length=env.trial_length, parallel=config.parallel_option()))
    baseline = None if config.baseline is None else getattr(mps, config.baseline)()
    processor = mps.TrialSampleProcessor(**arguments_for(mps.TrialSampleProcessor, config, baseline=baseline))
    algo = mps.RL2(**arguments_for(mps.RL2, config, policy=policy, **first_order_arguments(config)))
    return mps.Trainer(algo, env, sampler, processor, policy, config.n_itr, num_inner_grad_steps=0,
                       progress_bar=config.progress_bar)


main = make_main(Config, TrialExperiment)

if __name__ == "__main__":
    sys.exit(main())
