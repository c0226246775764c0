"""Training scripts with published settings, and the reproduction of published results.

A training script has the settings of an algorithm (`meta_policy_search train ALGORITHM --help`) and replaces
defaults by published values: `python experiments/pro_mp.py`. `metaworld_evaluation` and `reproduce` repeat published
results. `reproduction` contains their settings, data and figures. They are started from the checkout: `python -m
experiments.reproduce`.
"""
