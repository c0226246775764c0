"""Objects are displayed, copied and pickled through the arguments of their constructor call."""
import copy
import pickle

import numpy as np
import pytest

import meta_policy_search as mps
from meta_policy_search.utils.serializable import Configurable, Serializable


class Base(Serializable):
    def __init__(self, size, *more, name="base", **options):
        self.size = size
        self.more = more
        self.name = name
        self.options = options
        self.learnt = 0


class Derived(Base):
    """Changes every argument before it calls the constructor of its base."""

    def __init__(self, size, scale=2, **kwargs):
        super().__init__(size * scale, name=kwargs.pop("name", "derived") + "!", **kwargs)
        self.scale = scale


class OldStyle(Base):
    """Calls `quick_init` in both of its published variants."""

    def __init__(self, size):
        Serializable.quick_init(self, locals())
        self.quick_init(locals())
        super().__init__(size)


class Learning(Base):
    """Saves its learned state like a policy."""

    def __getstate__(self):
        return {"init_args": Serializable.__getstate__(self), "learnt": self.learnt}

    def __setstate__(self, state):
        Serializable.__setstate__(self, state["init_args"])
        self.learnt = state["learnt"]


class WithNew(Base):
    """Defines `__new__`."""

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls, *args, **kwargs)
        self.tag = "new"
        return self


def attributes(obj):
    return {key: value for key, value in vars(obj).items() if not key.startswith("_")}


OBJECTS = {
    "positional": lambda: Base(3, 4, 5), "keywords": lambda: Base(size=3, name="other", extra=[1]),
    "mixed": lambda: Base(3, 4, name="other", extra=None), "derived": lambda: Derived(3, scale=4, name="d", extra=1),
    "old style": lambda: OldStyle(3), "own new": lambda: WithNew(3, name="n"),
}


@pytest.mark.parametrize("build", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o)), Base.clone])
def test_copy_is_built_from_the_same_arguments(build, again):
    original = build()
    copied = again(again(original))  # a copy can be copied
    assert type(copied) is type(original) and copied is not original
    assert attributes(copied) == attributes(original)


def test_subclass_saves_other_state_by_extending_getstate():
    plain, learning = Base(3), Learning(3, name="l")
    plain.learnt = learning.learnt = 7
    assert pickle.loads(pickle.dumps(plain)).learnt == 0
    restored = pickle.loads(pickle.dumps(learning))
    assert (restored.learnt, restored.size, restored.name) == (7, 3, "l")


def test_clone_accepts_other_arguments_by_name():
    original = Base(3, 4, name="a", extra=1)
    clone = original.clone(size=5, name="b", other=2)
    assert attributes(clone) == {"size": 5, "more": (4,), "name": "b", "options": {"extra": 1, "other": 2}, "learnt": 0}
    assert attributes(Serializable.clone(original, name="c")) == {**attributes(original), "name": "c"}
    assert Derived(3, 4).clone(scale=5).size == 15
    assert original.size == 3 and original.name == "a"


def test_keyword_only_argument_is_not_passed_by_position():
    clone = Base(3, 4, 5).clone(name="b")  # `name` is third in the signature, and three values were given
    assert (clone.more, clone.name) == ((4, 5), "b")


def test_class_without_a_constructor_takes_no_arguments():
    class Plain(Configurable):
        pass

    assert repr(Plain()) == "Plain()"
    with pytest.raises(TypeError, match=r"Plain\(\) takes no arguments"):
        Plain(2)


class Ant(Configurable):
    """Stores none of its arguments."""

    def __init__(self, legs=6, *, mass=2.0, engine="steam"):
        pass


class Cart(Configurable):
    def __init__(self, horse, wheels=4, name="cart", cargo=None):
        self.horse, self.wheels, self.label = horse, wheels, name

    @property
    def cargo(self):
        return 3 * self.wheels


def test_repr_shows_the_arguments_that_differ_from_their_defaults():
    assert repr(Ant()) == "Ant()"
    assert repr(Ant(8, engine="diesel")) == "Ant(legs=8, engine='diesel')"  # no attributes: shows the given values
    cart = Cart(Ant(8))
    assert repr(cart) == "Cart(horse=Ant(legs=8), cargo=12)"
    cart.wheels = 2  # a changed attribute
    assert repr(cart) == "Cart(horse=Ant(legs=8), wheels=2, cargo=6)"
    assert repr(Cart(np.ones(2), [1], min)) == "Cart(horse=array([1., 1.]), wheels=[1], name=min, cargo=[1, 1, 1])"
    assert repr(Cart.__new__(Cart)) == "Cart()"  # `__init__` was not called
    assert repr(copy.deepcopy(cart)) == repr(cart) == str(cart)


def test_repr_shortens_long_arguments():
    cart = Cart(Cart(Ant(legs=123456789), wheels=1234567890123456789), 2, name="a cart with a long name, " * 4)
    assert repr(cart) == "Cart(horse=Cart(...), wheels=2, name='a cart with ...a long name, ', cargo=6)"
    cart.horse, cart.wheels = "a horse with a name of some length", 12345678901234567890
    assert repr(cart) == (
        "Cart(\n    horse='a horse with a name of some length',\n    wheels=12345678901234567890,\n"
        "    name='a cart with ...a long name, ',\n    cargo=37037036703703703670,\n)")


def test_missing_call_of_the_base_constructor_is_suggested():
    """Given a baseline without `super().__init__()`, then its first use says so; other errors do not."""
    class Forgetful(mps.LinearFeatureBaseline):
        def __init__(self):
            pass

    with pytest.raises(AttributeError, match="'_coeffs'. Does the constructor of Forgetful call super...__init__"):
        Forgetful().get_param_values()
    with pytest.raises(AttributeError, match="has no attribute 'color'$"):
        print(mps.LinearFeatureBaseline().color)
