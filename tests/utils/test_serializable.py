"""Objects are rebuilt from the arguments they were built with."""
import copy
import pickle

import cloudpickle
import pytest

from meta_policy_search.utils.serializable import Serializable


class Base(Serializable):
    def __init__(self, size, *more, name="base", **options):
        self.size = size
        self.more = more
        self.name = name
        self.options = options
        self.learnt = 0


class Derived(Base):
    """Its chain of constructors changes every argument on the way."""

    def __init__(self, size, scale=2, **kwargs):
        super().__init__(size * scale, name=kwargs.pop("name", "derived") + "!", **kwargs)
        self.scale = scale


class Extended(Base):
    """Takes a first argument of its own; the others are those of the base class, through `*args`."""

    def __init__(self, weight, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.weight = weight


class PassedOn(Extended):
    """Names an argument of its base class, and passes it on."""

    def __init__(self, weight, *args, depth=1, **kwargs):
        super().__init__(weight, *args, **kwargs)
        self.depth = depth


class OldStyle(Base):
    """Calls `quick_init` as older code does, in both of its forms."""

    def __init__(self, size):
        Serializable.quick_init(self, locals())
        self.quick_init(locals())
        super().__init__(size)


class Learning(Base):
    """Keeps what it learnt, as a policy does."""

    def __getstate__(self):
        return {"init_args": Serializable.__getstate__(self), "learnt": self.learnt}

    def __setstate__(self, state):
        Serializable.__setstate__(self, state["init_args"])
        self.learnt = state["learnt"]


class WithNew(Base):
    """Has a `__new__` of its own."""

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls, *args, **kwargs)
        self.tag = "new"
        return self


def attributes(obj):
    return {key: value for key, value in vars(obj).items() if not key.startswith("_")}


OBJECTS = {
    "positional": lambda: Base(3, 4, 5),
    "keywords": lambda: Base(size=3, name="other", extra=[1]),
    "mixed": lambda: Base(3, 4, name="other", extra=None),
    "derived": lambda: Derived(3, scale=4, name="d", extra=1),
    "old style": lambda: OldStyle(3),
    "own new": lambda: WithNew(3, name="n"),
    "through *args": lambda: PassedOn(2.0, 3, 4, 5, depth=6, name="n"),
}


@pytest.mark.parametrize("build", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o)), Base.clone])
def test_a_copy_is_built_from_the_same_arguments(build, again):
    original = build()
    copied = again(again(original))  # a copy can be copied
    assert type(copied) is type(original) and copied is not original
    assert attributes(copied) == attributes(original)


def test_what_was_learnt_is_the_subclass_s_to_keep():
    plain, learning = Base(3), Learning(3, name="l")
    plain.learnt = learning.learnt = 7
    assert pickle.loads(pickle.dumps(plain)).learnt == 0
    restored = pickle.loads(pickle.dumps(learning))
    assert (restored.learnt, restored.size, restored.name) == (7, 3, "l")


def test_a_class_of_a_script_survives():
    # given a class that no other process could import
    class Local(Base):
        def __init__(self, size):
            super().__init__(size + 1)

    # then cloudpickle rebuilds it, from its own arguments
    assert pickle.loads(cloudpickle.dumps(Local(3))).size == 4


def test_a_clone_takes_other_arguments_by_name():
    original = Base(3, 4, name="a", extra=1)
    clone = original.clone(size=5, name="b", other=2)
    assert attributes(clone) == {"size": 5, "more": (4,), "name": "b", "options": {"extra": 1, "other": 2}, "learnt": 0}
    assert attributes(Serializable.clone(original, name="c")) == {**attributes(original), "name": "c"}
    assert Derived(3, 4).clone(scale=5).size == 15
    assert original.size == 3 and original.name == "a"


def test_a_keyword_only_argument_is_not_taken_for_a_positional_one():
    clone = Base(3, 4, 5).clone(name="b")  # `name` comes third in the signature, and three values were given
    assert (clone.more, clone.name) == ((4, 5), "b")


@pytest.mark.parametrize("cls", [Extended, PassedOn])
def test_a_clone_replaces_arguments_that_went_through_args(cls):
    original = cls(2.0, 3, 4)
    unchanged = attributes(original)
    assert attributes(original.clone(size=5)) == {**unchanged, "size": 5}
    assert attributes(original.clone(weight=1.0)) == {**unchanged, "weight": 1.0}
    assert attributes(original.clone(name="n")) == {**unchanged, "name": "n"}
    assert attributes(original.clone(extra=1)) == {**unchanged, "options": {"extra": 1}}


def test_a_clone_is_built_afresh():
    original = Learning(3)
    original.learnt = 7
    assert original.clone().learnt == 0


def test_an_argument_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="width"):
        OldStyle(3).clone(width=2)
