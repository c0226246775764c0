"""Distributions over actions."""
from meta_policy_search.policies.distributions.base import Categorical as Categorical
from meta_policy_search.policies.distributions.base import DiagonalGaussian as DiagonalGaussian
from meta_policy_search.policies.distributions.base import DistInfo as DistInfo
from meta_policy_search.policies.distributions.base import DistInfoSym as DistInfoSym
from meta_policy_search.policies.distributions.base import Distribution as Distribution
