"""What goes wrong in an environment: the errors, and the form in which they come out of another process."""
import traceback
from typing import List, NamedTuple, NoReturn, Sequence

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


class EnvValueError(EnvWorkerError, ValueError):
    """An environment was given, or returned, a value that does not fit."""


class Failure(NamedTuple):
    """An exception that was raised in a worker, in a form that can always be pickled."""

    message: str  # type and text of the exception; the text alone if it is one of the errors above
    traceback: str  # as Python would print it, of the exception that the environment raised
    env_ids: List[int]  # the environments to blame, by their numbers among all of the executor's, where known
    is_value_error: bool

    def raise_as(self, who: str, env_ids: Sequence[int] = ()) -> NoReturn:
        """Raises the error of worker `who`, an `EnvValueError` for a `ValueError`, with the worker's traceback.

        `env_ids` are its environments, to blame where nothing more is known.
        """
        kind = EnvValueError if self.is_value_error else EnvWorkerError
        raise kind(f"{who}: {self.message}\n\nThe worker's traceback:\n{self.traceback}", self.env_ids or env_ids)


def failure_of(error: BaseException) -> Failure:
    """Returns the `Failure` that tells about an exception."""
    cause = error.__cause__ or error
    is_told = isinstance(error, EnvWorkerError)
    return Failure(message=str(error) if is_told else f"{type(error).__name__}: {error}",
                   traceback="".join(traceback.format_exception(type(cause), cause, cause.__traceback__)).rstrip(),
                   env_ids=error.env_ids if isinstance(error, EnvWorkerError) else [],
                   is_value_error=isinstance(error, ValueError))


def tasks_text(first: int, last: int) -> str:
    """Names tasks by their numbers."""
    return f"task {first}" if first == last else f"tasks {first} to {last}"
