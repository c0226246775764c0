"""Scripts that train the algorithms of the package on its environments, and what they share.

A script holds its own settings and builds its own algorithm. What all scripts share: `settings` (names, types, files),
`parts` (environment, policy, sampler, processor, trainer), `flags` (command lines), `times`, `record` (run folders) and
`command` (starts, resumes and trains); `single_task` has the settings and parts of algorithms for one task.
"""
