"""How many cores a process may use."""
import os

import pytest

from meta_policy_search.utils.cores import VARIABLE, available_cores


def test_is_what_the_operating_system_allows(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert available_cores() == 3


def test_an_environment_variable_overrides_it(monkeypatch):
    monkeypatch.setenv(VARIABLE, "7")
    assert available_cores() == 7


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_what_is_no_positive_integer_is_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=VARIABLE):
        available_cores()
