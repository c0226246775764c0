"""Messages that name the cause and the remedy, in a line or two."""
import numpy as np
import pytest

from meta_policy_search.baselines import LinearTimeBaseline, ZeroBaseline
from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.meta_algos import VPG_DICEMAML
from meta_policy_search.policies import MetaGaussianMLPPolicy
from meta_policy_search.samplers import DiceMetaSampleProcessor
from tests.helpers.trainers import build_trainer

T = 4  # maximum path length


class EnvWithoutPrefix(MetaPointEnvCorner):
    def log_diagnostics(self, paths):
        pass


class PolicyWithoutPrefix(MetaGaussianMLPPolicy):
    def log_diagnostics(self, paths):
        pass


@pytest.mark.parametrize("make_part, named", [
    (lambda: {"env": normalize(EnvWithoutPrefix())}, "EnvWithoutPrefix"),
    (lambda: {"policy": PolicyWithoutPrefix(2, 2, 2, hidden_sizes=())}, "PolicyWithoutPrefix"),
])
def test_diagnostics_without_a_prefix_are_refused(make_part, named):
    """Given a `log_diagnostics(paths)`, whose figures would overwrite each other, then the error names it."""
    with pytest.raises(TypeError, match=rf"{named}.log_diagnostics\(\) takes 2 positional arguments but 3 were given"):
        build_trainer(**make_part()).train()


def test_vpg_dice_maml_without_advantages_names_the_return_baseline():
    processor = DiceMetaSampleProcessor(LinearTimeBaseline(), max_path_length=T)
    with pytest.raises(ValueError) as error:
        build_trainer(VPG_DICEMAML, processor=processor, max_path_length=T).train()
    assert str(error.value) == ("step1: task 0: expected samples with an entry 'advantages', got none; pass "
                                "return_baseline, such as LinearFeatureBaseline(), to the sample processor")


@pytest.mark.parametrize("value", [np.zeros(5000), np.zeros((30, 30)), {"coeffs": np.zeros((99, 2))}, list(range(99))])
def test_parameters_that_a_zero_baseline_does_not_have_are_not_printed(value):
    with pytest.raises(ValueError, match="expected None, because a ZeroBaseline has no parameters, got ") as error:
        ZeroBaseline().set_params(value)
    assert len(str(error.value)) < 150 and "\n" not in str(error.value)
