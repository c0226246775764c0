"""Training scripts with published settings, and tools for their runs.

A training script derives its settings from those of an algorithm in `meta_policy_search.cli.algorithms` and replaces
defaults by published values. `evaluate`, `plot`, `render`, `runs` and `sweep` are commands of the package.
`reproduce` and `metaworld_evaluation` repeat published results.
"""
