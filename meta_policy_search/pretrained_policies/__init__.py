"""Trained policies that are part of the package, with their settings and test returns."""
