"""Executors: reset and step many copies of a meta-environment together, in one group per task."""
from meta_policy_search.samplers.errors import EnvValueError, EnvWorkerError
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor

__all__ = ["EnvValueError", "EnvWorkerError", "MetaBatchedEnvExecutor", "MetaEnvExecutor", "MetaIterativeEnvExecutor",
           "MetaParallelEnvExecutor"]
