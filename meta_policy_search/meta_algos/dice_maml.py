"""DICE-MAML (arXiv:1802.05098): not available in this version."""
from typing import Any

from meta_policy_search.meta_algos.base import MAMLAlgo


class DICEMAML(MAMLAlgo):
    """MAML with DiCE objectives; not available in this version.

    Raises:
        NotImplementedError: always; names what is available.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "DICEMAML":
        """Says what is available."""
        raise NotImplementedError(
            f"{cls.__name__} is not available in this version; TRPOMAML, VPGMAML and ProMP are"
        )
