"""Tests the Adam step of VPG-MAML, its logged values and its arguments."""
import numpy as np
import pytest

from meta_policy_search.meta_algos import VPGMAML
from meta_policy_search.utils import logger
from tests.helpers.numpy_reference import Objective, central_differences
from tests.helpers.small_world import M, draw_data, make_policy, set_theta, shapes_of


def test_update_is_one_adam_step_on_the_log_likelihood_objective():
    algo = VPGMAML(make_policy(), meta_batch_size=M, learning_rate=0.004)
    data, before = draw_data(), set_theta(algo.policy)
    loss = Objective(shapes_of(algo.policy), data).policy_gradient("log_likelihood")

    algo.optimize_policy(data)
    after = algo.policy.get_flat_params().astype(float)
    # the first step of Adam has the length of the learning rate in every direction
    np.testing.assert_allclose(after, before - 0.004 * np.sign(central_differences(loss, before)), atol=1e-5)
    logged = logger.getkvs()
    assert logged["LossBefore"] == pytest.approx(loss(before), rel=1e-4)
    assert logged["LossAfter"] == pytest.approx(loss(after), rel=1e-4)
    assert logged["LossAfter"] < logged["LossBefore"]

    logger.dumpkvs()
    algo.optimize_policy(data, log=False)
    assert logger.getkvs() == {}
