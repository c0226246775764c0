"""Tests the check that resumed runs equal uninterrupted runs, with planted faults."""
import re

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search import VPGMAML, LinearFeatureBaseline, MetaPointEnvCornerGoals, MetaSampler
from meta_policy_search.utils import seeding


@pytest.mark.parametrize("algo, settings", [
    ("promp", {"trainable_inner_step_size": True, "baseline": "GaussianMLPBaseline", "normalize_obs": True}),
    ("rl2", {"num_minibatches": 2, "max_path_length": 3}),
    ("rl2", {"env": "MetaTabularMDPEnv", "episodes_per_trial": 3, "num_ppo_steps": 2, "max_path_length": 4}),
    ("promp", {"adapt_params": "head"}),
    ("trpo_maml", {"adapt_params": ["context"], "context_dim": 2}),
    ("vpg_dice_maml", {"baseline": "GaussianMLPBaseline", "return_baseline": "GaussianMLPBaseline"}),
])
@pytest.mark.thorough(but=("promp-settings0", "rl2-settings2"),
                      ci=("rl2-settings1", "promp-settings3", "vpg_dice_maml-settings5"))
def test_algorithms_pass_and_generators_of_the_caller_do_not_change(algo, settings):
    mps.set_seed(5)
    before = np.random.get_state()[1].copy()
    mps.check_resume(**{"env": "MetaPointEnvCornerGoals", "algo": algo, "n_itr": 2, **settings})
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    assert seeding.get_root() == 5


@pytest.mark.thorough
def test_own_policies_are_checked():
    mps.check_resume("MetaPointEnvCornerGoals", policy=Bounded, n_itr=2, bound=0.5)


class Bounded(mps.MetaGaussianMLPPolicy):
    """A policy with an own setting and without `hidden_sizes`."""

    def __init__(self, meta_batch_size, obs_dim, action_dim, *, bound):
        super().__init__(meta_batch_size, obs_dim, action_dim, hidden_sizes=(3,), output_nonlinearity="tanh",
                         init_std=bound)


class Growing:
    """Loses the factor of its rewards when it is pickled, but not when it is copied."""

    factor = 1.0

    def __init__(self):
        self.env = MetaPointEnvCornerGoals()
        self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
        self.sample_tasks, self.get_task, self.set_task = self.env.sample_tasks, self.env.get_task, self.env.set_task
        self.reset = self.env.reset

    def __reduce__(self):
        return Growing, ()

    def __deepcopy__(self, memo):
        new = Growing()
        new.factor = self.factor
        return new

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, reward * self.factor, *rest


class Noisy(MetaPointEnvCornerGoals):
    """Adds noise from a generator of the module."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward + GENERATOR.random(), *rest


GENERATOR = np.random.default_rng(0)


class Forgetful(LinearFeatureBaseline):
    """Predicts larger values after every iteration. A snapshot lacks the number of iterations."""

    count = 0

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "count"}

    def train(self, paths, target_key="returns"):
        self.count += 1
        self.names = np.array(["time", None])  # equal after loading

    def predict(self, path):
        return super().predict(path) + self.count * np.arange(len(path["rewards"]))


class Restarting(VPGMAML):
    """Resumes with the initial state of the optimizer."""

    def get_state(self):
        return {**super().get_state(), "optimizer": self.initial}

    def build_graph(self):
        super().build_graph()
        self.initial = self.optimizer.get_state()


def grow(trainer, row):
    trainer.env.wrapped_env.factor = 2.0 + trainer.itr
    trainer.env = trainer.env  # the sampler copies it again


def set_all_but_steps(self, state):
    self.start_at(state["itr"] + 1)


@pytest.mark.parametrize("fault, arguments, message", [
    ("environment", {"env": Growing(), "callbacks": [grow]}, "these parts differ: environment$"),
    ("baseline", {"baseline": Forgetful()}, "these parts differ: baseline$"),
    ("optimizer", {"algo": Restarting}, "these parts differ: optimizer$"),
    ("sampler", {}, "these parts differ: sampler$"),
    ("random numbers", {"env": Noisy()}, "all parts are equal: .* a global variable or generator is used$"),
], ids=["environment", "baseline", "optimizer", "sampler", "random numbers"])
@pytest.mark.thorough(but=("environment", "optimizer"))
def test_planted_fault_is_found(fault, arguments, message, monkeypatch):
    if fault == "sampler":
        monkeypatch.setattr(MetaSampler, "set_state", set_all_but_steps)
    with pytest.raises(ValueError, match="after loading iteration 0, ") as error:
        mps.check_resume(**{"env": MetaPointEnvCornerGoals(), "n_itr": 2, **arguments})
    assert re.search(message, str(error.value))


@pytest.mark.parametrize("arguments, error, message", [
    ({"algo": "cem"}, TypeError, "algo: expected an algorithm that adapts to tasks, got 'cem', "),
    ({"n_itr": 1}, ValueError, "n_itr: expected an integer of at least 2, got 1"),
    ({"inner_rate": 0.1}, TypeError, "unknown setting 'inner_rate' for check_resume with ProMP"),
    ({"snapshot_mode": "all"}, TypeError, "unknown setting 'snapshot_mode'"),
])
def test_invalid_arguments_are_rejected(arguments, error, message):
    with pytest.raises(error, match=message):
        mps.check_resume("MetaPointEnvCornerGoals", **arguments)
