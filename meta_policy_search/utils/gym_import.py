"""Imports gym without the notice that it prints at import."""
import importlib

try:
    importlib.import_module("gym_notices.notices").notices.clear()
except (ImportError, AttributeError):  # a gym that has no notices has none to silence
    pass

import gym  # noqa: E402

__all__ = ["gym"]
