"""Imports gym without the notice that it prints on import."""
import importlib

try:
    importlib.import_module("gym_notices.notices").notices.clear()
except (ImportError, AttributeError):  # a version of gym without notices
    pass

import gym  # noqa: E402

__all__ = ["gym"]
