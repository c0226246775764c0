"""Sampling on a Ray cluster: workers that collect whole paths.

Ray starts the workers, finds out when one is lost, and moves objects between machines; what is done about it is here.
A worker has no state that matters: each call tells it the environment, the tasks and what to collect, so any worker
can do any call, and a call whose worker was lost is given to another one. As every random number belongs to its path,
the paths are the same then, too.

What a call needs travels through Ray's object store: the environment once for each sampler, the policy's parameters
once for each round. What it returns comes back as arrays. What the user may have made travels as `cloudpickle` bytes,
as to the processes of `MetaParallelEnvExecutor`. Workers do not load TensorFlow.
"""
