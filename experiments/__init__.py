"""Training scripts for the algorithms of the package, and tools for their runs.

Each training script defines its settings (a dataclass) and builds its algorithm. Shared modules:

* `settings`: types, defaults and files of settings;
* `parts`: builds environment, policy, sampler, sample processor and trainer;
* `flags`: command line flags;
* `record`: run folders;
* `command`: starts, resumes and trains a run;
* `single_task`: settings and parts of algorithms that learn a single task.
"""
