"""How a task ends here: by an exit code of the broker protocol, and words for people."""

from collections.abc import Iterator
from contextlib import contextmanager

from protocol.broker.exit_codes import LearnerExit as Exit
from protocol.errors import AttestreeError

__all__ = ["Exit", "StopError", "ends_with", "need"]


class StopError(Exception):
    """The task ends here, with this exit code and these words."""

    def __init__(self, exit_code: Exit, words: str) -> None:
        super().__init__(exit_code, words)
        self.exit_code, self.words = exit_code, words


@contextmanager
def ends_with(exit_code: Exit) -> Iterator[None]:
    """Let whatever is refused, or cannot be read, within this block end the task with one code."""
    try:
        yield
    except AttestreeError as error:
        raise StopError(exit_code, str(error)) from error
    except OSError as error:
        raise StopError(exit_code, f"{type(error).__name__}: {error.strerror}") from error


def need(condition: bool, exit_code: Exit, words: str) -> None:
    """Return if the condition holds; end the task otherwise."""
    if not condition:
        raise StopError(exit_code, words)
