"""Whoever acts on a stream's messages."""

from typing import Protocol

from .errors import ShimError

CLOSED = "the peer closed the stream"


class Listener(Protocol):
    """Called by a stream, always in the same thread."""

    def receive(self, raw: bytes) -> None:
        """Act on one message; an error ends the stream."""
        ...

    def lose(self, reason: str) -> None:
        """Hear that nothing more comes, and close the stream."""
        ...


def failure(error: Exception) -> str:
    """Say why a stream ends, for the log: an error of another package may quote a value."""
    return str(error) if isinstance(error, ShimError) else f"the stream broke ({type(error).__name__})"
