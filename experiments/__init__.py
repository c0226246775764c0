"""Scripts that train the algorithms of the package on its environments, and what they share.

A script defines its settings (a dataclass) and builds its algorithm. All scripts share `settings` (types, defaults and
files of settings), `parts` (builds environment, policy, sampler, processor and trainer), `flags` (command lines),
`record` (run folders) and `command` (starts, resumes and trains). `single_task` has the settings and parts of
algorithms that learn a single task.
"""
