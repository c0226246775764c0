"""Tests; the folders are those of the package, `helpers` holds what several tests use."""
