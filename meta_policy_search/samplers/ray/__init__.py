"""Sampling on a Ray cluster, whose workers collect whole paths.

Ray starts workers, detects lost workers and transfers objects between machines. This package handles lost workers.
Workers are stateless: each call passes the environment, the tasks and the request, so any worker can execute any call.
If a worker is lost, another worker repeats its call. Each path has a separate generator, so the repeated call collects
the same paths.

Ray's object store transfers the environment once per sampler. Each call contains the part of the actor that acts in
its tasks. Requests and results are `cloudpickle` bytes, as in `MetaParallelEnvExecutor`, whose worker processes run the
same code (`vectorized_env_executor.worker`). Workers do not import TensorFlow.
"""
