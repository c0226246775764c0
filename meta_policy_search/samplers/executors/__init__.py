"""Executors: many copies of a meta-environment, one group per task, reset and stepped together."""
