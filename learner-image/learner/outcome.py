"""How a round ends: one exit code per outcome (docs/formats/broker-v1.md)."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from protocol.errors import AttestreeError


class Exit(IntEnum):
    """What the executor learns from the container's exit code alone."""

    DONE = 0
    TASK = 64
    """The task, its parameters or its opening cannot be used."""
    ROWS = 65
    """The rows cannot be used."""
    STATE = 66
    """The state does not fit the task."""
    TREES = 67
    """The offered trees are refused."""
    BROKER = 68
    """The broker is gone, speaks another protocol, or answered with an error."""
    KEY = 69
    """The key is missing, short, long or not the opening's."""
    INTERNAL = 70
    """An error of the learner itself."""


class StopError(Exception):
    """The round ends here, with this exit code and these words."""

    def __init__(self, exit_code: Exit, words: str) -> None:
        super().__init__(exit_code, words)
        self.exit_code, self.words = exit_code, words


@contextmanager
def ends_with(exit_code: Exit) -> Iterator[None]:
    """Let whatever is refused, or cannot be read, within this block end the round with one code."""
    try:
        yield
    except AttestreeError as error:
        raise StopError(exit_code, str(error)) from error
    except OSError as error:
        raise StopError(exit_code, f"{type(error).__name__}: {error.strerror}") from error


def need(condition: bool, exit_code: Exit, words: str) -> None:
    """Return if the condition holds; end the round otherwise."""
    if not condition:
        raise StopError(exit_code, words)
