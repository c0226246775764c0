"""A vectorized method is used only while the methods that it replaces are those it was written for."""
from unittest import mock

import pytest

from meta_policy_search.utils.fast_paths import fast_path, replaces


class Policy:
    """Has a vectorized method for `act`, which uses the property `scale`."""

    def act(self, x):
        return self.scale * x

    @property
    def scale(self):
        return 2

    @replaces("act", "scale")
    def make_actor(self):
        return "vectorized"


class Inheriting(Policy):
    """Changes something else."""

    def other(self):
        return 0


class Overriding(Policy):
    def act(self, x):
        return -x


class OverridingProperty(Policy):
    scale = 3


class Declaring(Overriding):
    """Overrides `act`, and has a vectorized method for its own version."""

    @replaces("act")
    def make_actor(self):
        return "its own"


class OverridingDeclared(Declaring):
    def act(self, x):
        return 0


class Mixin:
    def act(self, x):
        return 7


class Mixed(Mixin, Policy):
    """Overrides `act` through a base class that comes first."""


class Undeclared(Policy):
    def make_actor(self):
        return "without a decorator"


class Delegating:
    """Hands everything on to the wrapped object."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def __getattr__(self, name):
        return getattr(self._wrapped, name)


@pytest.mark.parametrize("cls, expected", [(Policy, "vectorized"), (Inheriting, "vectorized"), (Declaring, "its own")])
def test_the_vectorized_method_of_an_unchanged_object_is_used(cls, expected):
    assert fast_path(cls(), "make_actor")() == expected


@pytest.mark.parametrize("cls", [Overriding, OverridingProperty, OverridingDeclared, Mixed])
def test_a_class_that_overrides_a_replaced_method_has_none(cls):
    assert fast_path(cls(), "make_actor") is None
    assert cls().make_actor() in ("vectorized", "its own")  # the method itself can still be called


def test_an_object_without_such_a_method_has_none():
    assert fast_path(object(), "make_actor") is None


def test_a_patched_instance_has_none_until_the_patch_is_removed():
    policy, other = Policy(), Policy()
    policy.act = lambda x: x
    assert fast_path(policy, "make_actor") is None and fast_path(other, "make_actor") is not None
    del policy.act
    assert fast_path(policy, "make_actor")() == "vectorized"


def test_a_patched_class_has_none_until_the_patch_ends():
    policy = Inheriting()
    with mock.patch.object(Policy, "act", lambda self, x: x):
        assert fast_path(policy, "make_actor") is None
    assert fast_path(policy, "make_actor")() == "vectorized"
    with mock.patch.object(policy, "act", autospec=True):
        assert fast_path(policy, "make_actor") is None
    with mock.patch.object(Policy, "scale", new_callable=mock.PropertyMock):
        assert fast_path(policy, "make_actor") is None
    assert fast_path(policy, "make_actor")() == "vectorized"


def test_a_method_that_is_added_to_a_subclass_later_counts():
    class Later(Policy):
        pass

    assert fast_path(Later(), "make_actor") is not None
    Later.act = lambda self, x: x
    assert fast_path(Later(), "make_actor") is None


def test_attributes_that_a_wrapper_hands_on_do_not_count():
    wrapper = Delegating(Policy())
    assert wrapper.make_actor() == "vectorized" and fast_path(wrapper, "make_actor") is None


def test_an_object_with_slots_may_have_one():
    class Slots:
        __slots__ = ()

        def act(self, x):
            return x

        @replaces("act")
        def make_actor(self):
            return "vectorized"

    assert fast_path(Slots(), "make_actor")() == "vectorized"


def test_a_vectorized_method_without_declaration_is_refused():
    with pytest.raises(TypeError, match=r"^Undeclared\.make_actor: expected a method decorated with @replaces"):
        fast_path(Undeclared(), "make_actor")


def test_a_declaration_of_an_unknown_method_is_refused_with_the_class():
    with pytest.raises((AttributeError, RuntimeError)):  # RuntimeError from it before Python 3.12
        class Misspelt:
            @replaces("get_action")
            def make_actor(self):
                return None
