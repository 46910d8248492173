"""A task's container, made while its task is being opened, and removed while its node goes on.

Both take the engine a while in which the node would only wait. Neither runs any code: what was created is
started by whoever knows that the task is on the ledger, and what is removed has given its result.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from executor.errors import host_failed
from executor.sandbox.container import Container
from protocol.errors import AttestreeError


class ContainerCreation:
    """Creates and compares one container aside; leaving the context removes it unless it was handed over."""

    def __init__(self, create: Callable[[], Container], note: Callable[[AttestreeError], None]) -> None:
        """Take who creates it, and who hears why that failed where something else failed first."""
        self._create, self._note = create, note
        self._pool = ThreadPoolExecutor(1, "create")
        self._made: Future[Container] | None = None
        self._asked = self._handed_over = False

    def __enter__(self) -> Self:
        self._made = self._pool.submit(self._create)
        return self

    def container(self) -> Container:
        """Return it, once it is there and is what was asked for."""
        assert self._made is not None  # noqa: S101
        self._asked = True
        return self._made.result()

    def hand_over(self) -> Container:
        """Return it to somebody who removes it."""
        self._handed_over = True
        return self.container()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        assert self._made is not None  # noqa: S101
        failure = self._made.exception()
        if failure is None:
            if not self._handed_over:
                self._made.result().remove()
        elif not self._asked:  # whoever asked has heard of it
            self._note(_told(failure))


class ContainerRemoval:
    """Removes the container of a node's completed task aside, one at a time."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    def begin(self, remove: Callable[[], None]) -> None:
        """Have it done while the node goes on."""
        self.finish()
        self._pool = self._pool or ThreadPoolExecutor(1, "remove")
        self._pending = self._pool.submit(remove)

    def finish(self) -> None:
        """Wait until nothing of it is left, and raise if that failed; it is told once."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self, note: Callable[[AttestreeError], None]) -> None:
        """End with the node's session; what fails is told, and the next start sees to what is left."""
        try:
            self.finish()
        except (AttestreeError, OSError) as error:
            note(_told(error))
        finally:
            if self._pool is not None:
                self._pool.shutdown()


def _told(failure: BaseException) -> AttestreeError:
    """Return a failure as it is told; one that nobody foresaw goes on as it is."""
    if isinstance(failure, AttestreeError):
        return failure
    if isinstance(failure, OSError):
        return host_failed(failure)
    raise failure
