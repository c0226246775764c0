"""Arguments that classes share are stated once, and shown, documented and checked by every class."""
import copy
import inspect
import pydoc
import re
import typing
from typing import Any, TypedDict

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search import envs, meta_algos, policies
from meta_policy_search.envs import mujoco_envs
from meta_policy_search.meta_algos import DICEMAML, TRPOMAML, VPG_DICEMAML, VPGMAML, ProMP
from meta_policy_search.policies import MetaCategoricalMLPPolicy, MetaGaussianMLPPolicy
from meta_policy_search.samplers.vectorized_env_executor import MetaParallelEnvExecutor
from meta_policy_search.utils.signatures import SharedArguments, Unpack, merged_parameters
from tests.test_top_level import NAMES


class RobotArguments(TypedDict, total=False):
    engine: str
    mass: float


class Robot(SharedArguments):
    """A robot.

    Args:
        engine: what moves it.
        mass: how heavy it is,
            kg.
        inner: not for subclasses to pass on.

    Raises:
        ValueError: a negative mass.
    """

    def __init__(self, engine: str = "steam", mass: float = 1.0, inner: int = 0):
        self.arguments = engine, mass, inner


class Ant(Robot):
    """An ant.

    Args:
        legs: how many.
        mass: how heavy it is, mg.

    References:
        None.
    """

    def __init__(self, legs: int = 6, *, mass: float = 2.0, **robot: Unpack[RobotArguments]):
        super().__init__(mass=mass, inner=legs, **robot)


class Passing(Robot):
    """One that passes everything on."""

    def __init__(self, legs, *args: Any, **kwargs: Unpack[RobotArguments]):
        super().__init__(*args, **kwargs)


class Taking(Robot):
    def __init__(self, *args, **kwargs):
        self.wings = kwargs.pop("wings", 0)
        super().__init__(*args, **kwargs)


class Engine(SharedArguments):
    """What the environment below is made of.

    Args:
        count: how many, given by the environment.
        speed: how fast.
    """

    def __init__(self, count, *, speed: int = 3):
        self.speed = speed


class Wrapping(SharedArguments):
    """Passes arguments on to another class.

    Args:
        color: red.
    """

    def __init__(self, color="red", **kwargs: Any):
        self.engine = Engine(1, **kwargs)

    @classmethod
    def _delegate(cls):
        return Engine


def test_the_signature_has_own_arguments_then_those_that_are_passed_on():
    assert str(inspect.signature(Ant)) == "(legs: int = 6, *, mass: float = 2.0, engine: str = 'steam')"
    assert str(inspect.signature(Passing)) == "(legs, engine: str = 'steam', mass: float = 1.0)"
    assert str(inspect.signature(Wrapping)) == "(color='red', *, speed: int = 3)"
    assert str(inspect.signature(Taking)) == "(engine: str = 'steam', mass: float = 1.0, inner: int = 0)"


def test_the_docstring_describes_each_argument_once_by_the_nearest_description():
    assert Ant.__doc__ == (
        "An ant.\n\nArgs:\n    legs: how many.\n    mass: how heavy it is, mg.\n    engine: what moves it.\n\n"
        "Raises:\n    ValueError: a negative mass.\n\nReferences:\n    None.")
    assert Passing.__doc__ == (
        "One that passes everything on.\n\n"
        "Args:\n    engine: what moves it.\n    mass: how heavy it is,\n        kg.\n\n"
        "Raises:\n    ValueError: a negative mass.")
    assert Wrapping.__doc__.endswith("Args:\n    color: red.\n    speed: how fast.")
    assert Taking.__doc__ is None and inspect.getdoc(Taking) == inspect.getdoc(Robot)


def test_help_shows_both():
    text = pydoc.plain(pydoc.render_doc(Ant))
    assert "Ant(legs: int = 6, *, mass: float = 2.0, engine: str = 'steam')" in text
    assert "__init__(self, /, legs: int = 6, *, mass: float = 2.0, engine: str = 'steam')" in text
    assert "engine: what moves it." in text


DOCUMENTED = {name: getattr(mps, name) for name in NAMES
              if inspect.isclass(getattr(mps, name)) and not issubclass(getattr(mps, name), Exception)}
RECORDS = {"EnvSpec", "Evaluation", "RayOptions", "Recording", "Run", "SearchPolicy", "TrajectoryBatch"}  # made here


@pytest.mark.parametrize("name", sorted(set(DOCUMENTED) - {"BatchableMetaEnv"}))  # which takes what its subclass does
def test_no_signature_hides_an_argument(name):
    assert "*args" not in str(inspect.signature(DOCUMENTED[name]))
    assert "**" not in str(inspect.signature(DOCUMENTED[name]))


@pytest.mark.parametrize("name", sorted(name for name in set(DOCUMENTED) - RECORDS - {"BatchableMetaEnv"}
                                        if not inspect.isabstract(DOCUMENTED[name])
                                        and inspect.signature(DOCUMENTED[name]).parameters))
def test_a_misspelt_argument_is_refused_by_the_class_that_was_called_with_the_nearest_name(name):
    argument = next(iter(inspect.signature(DOCUMENTED[name]).parameters))
    with pytest.raises(TypeError) as raised:
        DOCUMENTED[name](**{f"{argument}_": 1})
    assert str(raised.value) == (f"{DOCUMENTED[name].__name__}: unknown argument '{argument}_'; did you mean "
                                 f"'{argument}'?")


class Cart(SharedArguments):
    def __init__(self, horse, wheels=4, name="cart", cargo=None):
        self.horse, self.wheels, self._name = horse, wheels, name

    @property
    def cargo(self):
        return 3 * self.wheels


def test_an_object_says_what_it_is_by_the_arguments_that_differ_from_their_defaults():
    assert repr(Ant()) == "Ant()"
    assert repr(Ant(8, engine="diesel")) == "Ant(legs=8, engine='diesel')"  # which it does not keep: as given
    cart = Cart(Ant(8))
    assert repr(cart) == "Cart(horse=Ant(legs=8), cargo=12)"
    cart.wheels = 2  # kept, and changed since
    assert repr(cart) == "Cart(horse=Ant(legs=8), wheels=2, cargo=6)"
    assert repr(Cart(np.ones(2), [1], min)) == "Cart(horse=array([1., 1.]), wheels=[1], name=min, cargo=[1, 1, 1])"
    assert repr(Cart.__new__(Cart)) == "Cart()"  # half built
    assert repr(copy.deepcopy(cart)) == repr(cart) == str(cart)


def test_what_does_not_fit_into_a_line_is_shown_by_its_class():
    cart = Cart(Cart(Ant(legs=123456789), wheels=1234567890123456789), 2, name="a cart with a long name, " * 4)
    assert repr(cart) == "Cart(horse=Cart(...), wheels=2, name='a cart with ...a long name, ', cargo=6)"
    cart.horse, cart.wheels = "a horse with a name of some length", 12345678901234567890
    assert repr(cart) == (
        "Cart(\n    horse='a horse with a name of some length',\n    wheels=12345678901234567890,\n"
        "    name='a cart with ...a long name, ',\n    cargo=37037036703703703670,\n)")


def test_the_parts_of_a_training_say_what_they_are():
    env = envs.normalize(envs.MetaPointEnvCorner(reward_type="dense"))
    assert repr(env) == str(env) == "NormalizedEnv(env=MetaPointEnvCorner(reward_type='dense'))"
    policy = MetaGaussianMLPPolicy(2, 2, 2, hidden_sizes=(4,))
    assert repr(policy) == "MetaGaussianMLPPolicy(meta_batch_size=2, obs_dim=2, action_dim=2, hidden_sizes=(4,))"
    sampler = mps.MetaSampler(env, policy, 1, 2, 3, parallel=False)
    assert f"    env={env},\n    policy=MetaGaussianMLPPolicy(...),\n" in repr(sampler)
    processor = mps.MetaSampleProcessor(mps.LinearFeatureBaseline(), discount=0.9)
    assert repr(processor) == "MetaSampleProcessor(baseline=LinearFeatureBaseline(), discount=0.9)"
    algo = ProMP(policy, meta_batch_size=2, learning_rate=0.01)
    assert repr(algo) == "ProMP(policy=MetaGaussianMLPPolicy(...), meta_batch_size=2, learning_rate=0.01)"
    trainer = mps.Trainer(algo, env, sampler, processor, policy, n_itr=3)
    assert repr(trainer).startswith("Trainer(\n    algo=ProMP(...),\n") and "    n_itr=3,\n)" in repr(trainer)
    assert repr(mps.ConjugateGradientOptimizer(cg_iters=5)).startswith("ConjugateGradientOptimizer(cg_iters=5")


@pytest.mark.parametrize("cls, name, message", [
    (Ant, "engin", "Ant: unknown argument 'engin'; did you mean 'engine'?"),
    (Ant, "inner", "Ant: unknown argument 'inner'"),
    (Robot, "wings", "Robot: unknown argument 'wings'"),
    (Taking, "mas", "Taking: unknown argument 'mas'; did you mean 'mass'?"),
    (ProMP, "inner_step", "ProMP: unknown argument 'inner_step'; did you mean 'target_inner_step'?"),
    (VPGMAML, "exploration_coef", "VPGMAML: unknown argument 'exploration_coef'; did you mean 'exploration_coeff'?"),
    (mujoco_envs.HalfCheetahRandVelEnv, "min_velocity",
     "HalfCheetahRandVelEnv: unknown argument 'min_velocity'; did you mean 'max_velocity'?"),
    (mujoco_envs.HalfCheetahRandVelEnv, "contact_forces", "HalfCheetahRandVelEnv: unknown argument 'contact_forces'"),
    (envs.MetaPointEnvCorner, "reward_typ",
     "MetaPointEnvCorner: unknown argument 'reward_typ'; did you mean 'reward_type'?"),
])
def test_an_unknown_name_is_refused_by_the_class_that_was_called(cls, name, message):
    with pytest.raises(TypeError) as raised:
        cls(**{name: 1})
    assert str(raised.value) == message


def test_a_subclass_may_take_arguments_out_of_what_it_passes_on():
    taking = Taking("diesel", mass=3.0, wings=2)
    assert taking.wings == 2 and taking.arguments == ("diesel", 3.0, 0)


PUBLIC = {cls for module in (meta_algos, policies, mujoco_envs, envs) for cls in vars(module).values()
          if inspect.isclass(cls) and issubclass(cls, SharedArguments)} | {MetaParallelEnvExecutor}


@pytest.mark.parametrize("cls", sorted(PUBLIC, key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_every_argument_of_every_class_is_documented(cls):
    """Given all public classes of a family, then each argument has its line in the docstring, and no other has."""
    entries = [line.split(":")[0].split(" (")[0].strip()
               for line in inspect.getdoc(cls).partition("Args:\n")[2].partition("\n\n")[0].split("\n")
               if line.startswith("    ") and line[4] != " "]
    assert sorted(entries) == sorted(str(p) if p.kind is p.VAR_KEYWORD else p.name for p in merged_parameters(cls)
                                     ) or "**kwargs" in entries


@pytest.mark.parametrize("cls", sorted(PUBLIC, key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_the_names_that_editors_know_are_those_that_the_constructors_take(cls):
    """Given a class that passes arguments on, then each name of its `TypedDict` belongs to a base, with its type."""
    hints = [typing.get_args(hint) for name, hint in
             getattr(cls.__init__, "__annotations__", {}).items()]
    shared = [args[0] for args in hints if args and typing.is_typeddict(args[0])]
    taken = {p.name: p for p in merged_parameters(cls)}
    for names in shared:
        for name, kind in names.__annotations__.items():
            assert taken[name].annotation == kind, name


MAML = "policy, inner_lr, meta_batch_size, num_inner_grad_steps, trainable_inner_step_size, first_order"
EXPLORING = "inner_type, exploration, exploration_coeff, max_path_length"
STEPS = "learning_rate, tf_optimizer_cls, tf_optimizer_args"
NETWORK = "obs_dim, action_dim, name, hidden_sizes, learn_std, hidden_nonlinearity, output_nonlinearity"


@pytest.mark.parametrize("cls, by_position, by_name", [
    (ProMP, MAML, "name, num_ppo_steps, num_minibatches, clip_eps, target_inner_step, init_inner_kl_penalty, "
                  f"adaptive_inner_kl_penalty, anneal_factor, {STEPS}"),
    (TRPOMAML, MAML, f"name, step_size, optimizer, {EXPLORING}"),
    (VPGMAML, MAML, f"name, {EXPLORING}, {STEPS}"),
    (DICEMAML, f"max_path_length, {MAML}", f"name, {STEPS}"),
    (VPG_DICEMAML, f"max_path_length, {MAML}", f"name, {STEPS}"),
    (MetaGaussianMLPPolicy, f"meta_batch_size, {NETWORK}", "init_std, min_std"),
    (MetaCategoricalMLPPolicy, f"meta_batch_size, {NETWORK}", ""),
    (mujoco_envs.AntRandGoalEnv, "goal", "engine, inertials, num_threads, render_mode, contact_forces"),
    (mujoco_envs.SwimmerRandVelEnv, "min_velocity, max_velocity", "engine, inertials, num_threads, render_mode"),
    (mujoco_envs.HopperRandParamsEnv, "log_scale_limit, rand_params", "engine, inertials, num_threads, render_mode"),
])
def test_the_order_is_the_documented_one(cls, by_position, by_name):
    parameters = inspect.signature(cls).parameters.values()
    assert ", ".join(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD) == by_position
    assert ", ".join(p.name for p in parameters if p.kind is p.KEYWORD_ONLY) == by_name


def test_the_robot_s_tables_are_in_the_docstring_of_each_of_its_environments():
    for name in mujoco_envs.__all__:
        text = getattr(mujoco_envs, name).__doc__
        for title in ("Observation", "Action", "Reward", "Tasks", "Start", "End", "Logs", "Args", "Raises"):
            assert text.count(f"\n{title}:\n") == 1, (name, title)
        assert re.search("index +observation", text), name
