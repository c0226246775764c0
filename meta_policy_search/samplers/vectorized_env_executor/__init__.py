"""Executors: many copies of a meta-environment, one group per task, reset and stepped together."""
from meta_policy_search.samplers.errors import EnvValueError, EnvWorkerError
from meta_policy_search.samplers.vectorized_env_executor.base import MetaEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.local import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.samplers.vectorized_env_executor.parallel import MetaParallelEnvExecutor

__all__ = ["EnvValueError", "EnvWorkerError", "MetaBatchedEnvExecutor", "MetaEnvExecutor", "MetaIterativeEnvExecutor",
           "MetaParallelEnvExecutor"]
