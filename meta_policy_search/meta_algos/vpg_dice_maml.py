"""VPG-DICE-MAML (arXiv:1802.05098): not available in this version."""
from meta_policy_search.meta_algos.dice_maml import DICEMAML


class VPG_DICEMAML(DICEMAML):
    """MAML with a DiCE inner objective and a plain policy gradient; not available in this version.

    Raises:
        NotImplementedError: always; names what is available.
    """
