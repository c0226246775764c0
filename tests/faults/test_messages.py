"""Messages that name the cause and the remedy, in a line or two."""
import pytest

from meta_policy_search.envs import MetaPointEnvCorner, normalize
from meta_policy_search.policies import MetaGaussianMLPPolicy
from tests.helpers.trainers import build_trainer


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
