"""The documented executors; they are written in `samplers.executors`."""
from meta_policy_search.samplers.errors import EnvValueError, EnvWorkerError
from meta_policy_search.samplers.executors.base import MetaEnvExecutor
from meta_policy_search.samplers.executors.local import MetaBatchedEnvExecutor, MetaIterativeEnvExecutor
from meta_policy_search.samplers.executors.parallel import MetaParallelEnvExecutor

__all__ = ["EnvValueError", "EnvWorkerError", "MetaBatchedEnvExecutor", "MetaEnvExecutor", "MetaIterativeEnvExecutor",
           "MetaParallelEnvExecutor"]
