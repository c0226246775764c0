"""Command line of the package: `python -m meta_policy_search COMMAND`, or `meta-policy-search COMMAND`.

* `main`: finds the command and runs its module;
* `flags`: flags from settings, and one-line errors;
* `train`: starts and resumes runs;
* `evaluate`, `plot`, `render`, `runs`, `sweep`: tools for runs.

Training scripts call `make_main` of `train`.
"""
