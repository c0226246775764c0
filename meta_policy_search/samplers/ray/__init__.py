"""Sampling on a Ray cluster."""
