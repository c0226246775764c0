"""What goes wrong in an environment, with the environments to blame."""
from typing import Sequence


class EnvWorkerError(RuntimeError):
    """An environment raised an exception, or the process that ran it died.

    In the process itself the environment's exception is the `__cause__`; from a worker process its traceback is
    part of the message.

    Attributes:
        env_ids: numbers of the environments that are to blame, or among which the one to blame is.
    """

    def __init__(self, message: str, env_ids: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.env_ids = list(env_ids)


class EnvValueError(EnvWorkerError, ValueError):
    """An environment was given, or returned, a value that does not fit."""


def tasks_text(first: int, last: int) -> str:
    """Names tasks by their numbers."""
    return f"task {first}" if first == last else f"tasks {first} to {last}"

