"""Objects of a user's own, which need not derive from the interfaces here."""
from typing import Any


def call_optional(given: Any, method: str, *arguments: Any) -> Any:
    """Calls a method that an object may lack; where it does, nothing is done.

    Interfaces such as `Sampler` document what each of these methods is for, and have it do nothing by default.

    Returns:
        What the method returns; None where there is none.
    """
    return getattr(given, method)(*arguments) if hasattr(given, method) else None
