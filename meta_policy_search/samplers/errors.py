"""What goes wrong in an environment: the errors, and the form in which they come out of another process."""
import traceback
from typing import Sequence

FAULTS = (Exception, SystemExit)
"""What the code of an environment may raise, to be told as its fault: `sys.exit` in it must not end training."""


class EnvWorkerError(RuntimeError):
    """An environment raised an exception or called `sys.exit`, or the process that ran it died.

    In the process itself the environment's exception is the `__cause__`; from a worker process its traceback is
    part of the message.

    Attributes:
        env_ids: numbers of the environments that are to blame, or among which the one to blame is.
    """

    def __init__(self, message: str, env_ids: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.env_ids = list(env_ids)

    def by(self, who: str, env_ids: Sequence[int] = ()) -> "EnvWorkerError":
        """Returns this error of worker `who`; `env_ids` are its environments, to blame where nothing more is known."""
        return type(self)(f"{who}: {self}", self.env_ids or env_ids)


class EnvValueError(EnvWorkerError, ValueError):
    """An environment was given, or returned, a value that does not fit."""


class WorkerDiedError(EnvWorkerError):
    """A worker process ended without an answer."""


class NotFiniteError(FloatingPointError, ValueError):
    """An observation, action or reward is not finite."""


class PatchedEnvError(EnvWorkerError, TypeError):
    """A method of an environment was replaced, and its copies do not have the replacement."""


def worker_error(error: BaseException) -> EnvWorkerError:
    """Returns the error that a worker process sends for an exception, with its traceback; it can be pickled."""
    if isinstance(error, PatchedEnvError):
        return error
    cause = error.__cause__ or error
    text = str(error) if isinstance(error, EnvWorkerError) else f"{type(error).__name__}: {error}"
    lines = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__)).rstrip()
    kind = EnvValueError if isinstance(error, ValueError) else EnvWorkerError
    return kind(f"{text}\n\nThe worker's traceback:\n{lines}",
                error.env_ids if isinstance(error, EnvWorkerError) else ())


def tasks_text(first: int, last: int) -> str:
    """Names tasks by their numbers."""
    return f"task {first}" if first == last else f"tasks {first} to {last}"
