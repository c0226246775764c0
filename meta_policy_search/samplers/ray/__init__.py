"""Sampling on a Ray cluster, whose workers collect whole paths.

Ray starts workers, detects lost workers and transfers objects between machines. This package handles lost workers.
Workers are stateless: each call passes the environment, the tasks and the request, so any worker can execute any call.
If a worker is lost, another worker repeats its call. Each path has a separate generator, so the repeated call collects
the same paths.

Ray's object store transfers the environment once per sampler and the policy's parameters once per round of sampling.
Workers return arrays. Objects defined by the user are transferred as `cloudpickle` bytes, as in
`MetaParallelEnvExecutor`. Workers do not import TensorFlow.
"""
