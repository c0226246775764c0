"""Helpers shared by several test files: small environments, policies, NumPy references, fast-starting processes."""
