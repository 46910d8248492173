"""Calls of the engine about one container: what it refuses is the sandbox's matter, not the engine's."""

from collections.abc import Iterator
from contextlib import contextmanager

from docker.errors import APIError, ImageNotFound, NotFound

from executor.engine import asking
from executor.errors import EngineError, SandboxError

_LONGEST = 500


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Turn a refusal into a SandboxError and every other failure into an EngineError."""
    with asking(what):
        try:
            yield
        except ImageNotFound as error:
            raise EngineError(
                "IMAGE_UNAVAILABLE",
                f"the engine could not {what}: {_said(error)}",
                case="run",
            ) from error
        except NotFound as error:
            raise EngineError(
                "CONTAINER_GONE",
                f"the engine could not {what}: {_said(error)}",
            ) from error
        except APIError as error:
            if not error.is_client_error():
                raise
            raise SandboxError(
                "SANDBOX_REFUSED",
                f"the engine refused to {what}: {_said(error)}",
            ) from error


def _said(error: APIError) -> str:
    return str(error.explanation or error)[:_LONGEST]
