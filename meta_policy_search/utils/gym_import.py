"""Imports gym without the notice that it prints on import."""
import importlib

importlib.import_module("gym_notices.notices").notices.clear()

import gym  # noqa: E402

__all__ = ["gym"]
