"""Tests seeds, statistics of the sample processors, and settings as JSON."""
import enum
import functools
import json
import random
import sys
import types

import numpy as np
import pytest

from meta_policy_search.utils import seeding
from meta_policy_search.utils.utils import (
    ClassEncoder,
    discount_cumsum,
    draw_index,
    explained_variance_1d,
    normalize_advantages,
    set_seed,
)


def draw_from_every_source():
    return (
        random.random(), np.random.uniform(), seeding.rng_for(seeding.Stream.ROLLOUT, 0, 1).uniform(),
        seeding.next_rng(seeding.Stream.WEIGHTS).uniform(),
    )


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**40 + 1])
def test_equal_seeds_give_equal_numbers_from_every_source(seed):
    set_seed(seed)
    first = draw_from_every_source()
    set_seed(seed)
    assert draw_from_every_source() == first
    set_seed(int(seed) + 1)
    assert all(other != number for other, number in zip(draw_from_every_source(), first, strict=True))


@pytest.mark.parametrize("seed, error", [(-1, ValueError), (1.5, TypeError), ("1", TypeError), (True, TypeError)])
def test_seeds_are_non_negative_integers(seed, error):
    with pytest.raises(error, match=r"seed: expected an integer of at least 0, got "):
        set_seed(seed)


def test_tensorflow_is_seeded_if_loaded(monkeypatch):
    seeds = []
    v1 = types.SimpleNamespace(set_random_seed=seeds.append)
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(compat=types.SimpleNamespace(v1=v1)))
    set_seed(np.int32(3))
    assert seeds == [3]


def test_discounted_sums_refuse_a_negative_discount():
    with pytest.raises(ValueError, match=r"discount: expected a finite number of at least 0, got -0.1"):
        discount_cumsum([1.0], -0.1)


def test_explained_variance():
    target = np.array([1.0, 2.0, 3.0, 4.0])
    assert explained_variance_1d(target, target) == 1.0
    assert explained_variance_1d(target + 5.0, target) == 1.0
    assert explained_variance_1d(np.zeros(4), target) == 0.0
    assert explained_variance_1d(-target, target) == -3.0  # Var[2 y] = 4 Var[y]
    assert explained_variance_1d(target / 2, target) == 0.75
    assert explained_variance_1d(1e-6 * target / 2, 1e-6 * target) == pytest.approx(0.75)


@pytest.mark.parametrize("prediction, target", [(np.ones(3), np.ones(4)), (np.ones((3, 1)), np.ones((3, 1))), ([], [])])
def test_explained_variance_requires_two_equally_long_vectors(prediction, target):
    with pytest.raises(ValueError, match=r"prediction and target: expected .* got shapes"):
        explained_variance_1d(prediction, target)


def test_normalized_advantages_have_mean_zero_and_deviation_one():
    normalized = normalize_advantages(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(normalized, np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5), rtol=1e-7)
    for equal in (np.full(3, 5.0), np.full(3000, 1e8 + 0.1)):  # the sum of the latter is rounded
        np.testing.assert_array_equal(normalize_advantages(equal), np.zeros(len(equal)))


class Color(enum.Enum):
    RED = "red"


class Settings:
    pass


def test_settings_are_written_with_names_and_plain_numbers():
    settings = {
        "class": Settings, "function": set_seed, "partial": functools.partial(max, 1), "integer": np.int64(3),
        "float": np.float32(0.5), "boolean": np.bool_(True), "array": np.array([[1.0, 2.0]]), "color": Color.RED,
    }
    assert json.loads(json.dumps(settings, cls=ClassEncoder)) == {
        "class": {"$class": f"{__name__}.Settings"},
        "function": {"function": "meta_policy_search.utils.utils.set_seed"},
        "partial": {"function": "functools.partial"}, "integer": 3, "float": 0.5, "boolean": True,
        "array": [[1.0, 2.0]], "color": "red",
    }


def test_draw_index_never_returns_an_index_of_probability_zero():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(7), size=10000).astype(np.float32)
    probabilities[:, -1] = 0.0  # rounding makes the sum of the other entries smaller than one
    uniform = np.full(10000, np.nextafter(np.float32(1), np.float32(0)))  # the largest number that generators return
    assert draw_index(probabilities, uniform).max() < 6
