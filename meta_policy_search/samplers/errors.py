"""Errors of environments, and their conversion for transfer from worker processes."""
import traceback
from typing import Sequence

ENV_EXCEPTIONS = (Exception, SystemExit)
"""Exceptions of environment code that are reported as `EnvWorkerError`; `sys.exit` must not end training silently."""


class EnvWorkerError(RuntimeError):
    """An environment raised an exception or called `sys.exit`, or its process died.

    If the environment runs in this process, its exception is the first in the chain of `__cause__`. If it runs in a
    worker process, the message contains the worker's traceback.

    Args:
        message: the error message.
        env_ids: see Attributes.

    Attributes:
        env_ids: list of the indices of the environments that failed or may have failed.
    """

    def __init__(self, message: str, env_ids: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.env_ids = list(env_ids)


class EnvValueError(EnvWorkerError, ValueError):
    """An environment received or returned an invalid value."""


class WorkerDiedError(EnvWorkerError):
    """A worker process ended without an answer."""


class NotFiniteError(FloatingPointError, ValueError):
    """An observation, action or reward is not finite."""


def worker_error(error: BaseException) -> EnvWorkerError:
    """Converts an exception to an error with traceback text that a worker process can pickle and send."""
    cause = error.__cause__ or error
    text = str(error) if isinstance(error, EnvWorkerError) else f"{type(error).__name__}: {error}"
    lines = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__)).rstrip()
    kind = EnvValueError if isinstance(error, ValueError) else EnvWorkerError
    return kind(f"{text}\n\nThe worker's traceback:\n{lines}",
                error.env_ids if isinstance(error, EnvWorkerError) else ())


def tasks_text(tasks: range) -> str:
    """Returns `"task i"` or `"tasks i to j"`."""
    return f"task {tasks[0]}" if len(tasks) == 1 else f"tasks {tasks[0]} to {tasks[-1]}"
