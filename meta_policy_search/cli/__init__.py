"""Command line of the package: `python -m meta_policy_search COMMAND`, or `meta-policy-search COMMAND`.

* `main`: finds the command and runs its module;
* `settings`, `algorithms`: settings of the training commands, with types, defaults and descriptions;
* `flags`: command line flags and one-line errors;
* `training`: starts, resumes and trains a run;
* `record`: finds and reads run folders;
* `single_task`: algorithms that learn a single task;
* `evaluate`, `plot`, `render`, `runs`, `sweep`: tools for runs.

Training scripts call `make_main` of `training`.
"""
