"""Executors: many copies of a meta-environment, one group for each task, reset and stepped together."""
