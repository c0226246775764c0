"""A vectorized method is used only if the methods it replaces are not overridden."""
from unittest import mock

import pytest

from meta_policy_search.utils.fast_paths import fast_path, replaces


class Policy:
    """Has a vectorized method for `act` that uses the property `scale`."""

    def act(self, x):
        return self.scale * x

    @property
    def scale(self):
        return 2

    @replaces("act", "scale")
    def make_actor(self):
        return "vectorized"


class Inheriting(Policy):
    """Overrides an unrelated method."""

    def other(self):
        return 0


class Overriding(Policy):
    def act(self, x):
        return -x


class OverridingProperty(Policy):
    scale = 3


class Declaring(Overriding):
    """Overrides `act` and its vectorized method."""

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
    """Overrides `act` through its first base class."""


class Undeclared(Policy):
    def make_actor(self):
        return "without a decorator"


class Delegating:
    """Forwards all attributes to the wrapped object."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def __getattr__(self, name):
        return getattr(self._wrapped, name)


@pytest.mark.parametrize("cls, expected", [(Policy, "vectorized"), (Inheriting, "vectorized"), (Declaring, "its own")])
def test_vectorized_method_of_an_unchanged_object_is_used(cls, expected):
    assert fast_path(cls(), "make_actor")() == expected


@pytest.mark.parametrize("cls", [Overriding, OverridingProperty, OverridingDeclared, Mixed])
def test_class_that_overrides_a_replaced_method_has_no_vectorized_method(cls):
    assert fast_path(cls(), "make_actor") is None
    assert cls().make_actor() in ("vectorized", "its own")  # a direct call still works


def test_object_without_vectorized_method():
    assert fast_path(object(), "make_actor") is None


def test_patched_instance_has_no_vectorized_method_while_patched():
    policy, other = Policy(), Policy()
    policy.act = lambda x: x
    assert fast_path(policy, "make_actor") is None and fast_path(other, "make_actor") is not None
    del policy.act
    assert fast_path(policy, "make_actor")() == "vectorized"


def test_patched_class_has_no_vectorized_method_while_patched():
    policy = Inheriting()
    with mock.patch.object(Policy, "act", lambda self, x: x):
        assert fast_path(policy, "make_actor") is None
    assert fast_path(policy, "make_actor")() == "vectorized"
    with mock.patch.object(policy, "act", autospec=True):
        assert fast_path(policy, "make_actor") is None
    with mock.patch.object(Policy, "scale", new_callable=mock.PropertyMock):
        assert fast_path(policy, "make_actor") is None
    assert fast_path(policy, "make_actor")() == "vectorized"


def test_method_added_later_to_a_subclass_is_detected():
    class Later(Policy):
        pass

    assert fast_path(Later(), "make_actor") is not None
    Later.act = lambda self, x: x
    assert fast_path(Later(), "make_actor") is None


def test_attributes_forwarded_by_a_wrapper_are_ignored():
    wrapper = Delegating(Policy())
    assert wrapper.make_actor() == "vectorized" and fast_path(wrapper, "make_actor") is None


def test_object_with_slots_can_have_a_vectorized_method():
    class Slots:
        __slots__ = ()

        def act(self, x):
            return x

        @replaces("act")
        def make_actor(self):
            return "vectorized"

    assert fast_path(Slots(), "make_actor")() == "vectorized"


def test_vectorized_method_without_declaration_is_refused():
    with pytest.raises(TypeError, match=r"^Undeclared\.make_actor: expected a method decorated with @replaces"):
        fast_path(Undeclared(), "make_actor")


def test_declaration_of_an_unknown_method_is_refused_with_the_class():
    with pytest.raises((AttributeError, RuntimeError)):  # before Python 3.12 it is wrapped in a RuntimeError
        class Misspelt:
            @replaces("get_action")
            def make_actor(self):
                return None
