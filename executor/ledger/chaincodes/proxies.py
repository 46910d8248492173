"""The ledger as the executor sees it: one transport, a typed proxy per chaincode."""

from functools import cached_property
from typing import TYPE_CHECKING, Self

from executor.ledger.chaincodes.proxy import Submitted
from executor.ledger.transport import Transport

if TYPE_CHECKING:
    from executor.ledger.chaincodes.execution import ExecutionRecord
    from executor.ledger.chaincodes.images import Images
    from executor.ledger.chaincodes.models import Models
    from executor.ledger.chaincodes.orchestration import Orchestration

__all__ = ["Ledger", "Submitted"]


class Ledger:
    """The four chaincodes of the channel; a context manager that closes its transport.

    The records of a chaincode are loaded when it is first asked: those of tasks and models take numpy along.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @cached_property
    def images(self) -> "Images":
        """Which code is registered."""
        from executor.ledger.chaincodes.images import Images  # noqa: PLC0415

        return Images(self.transport)

    @cached_property
    def orchestration(self) -> "Orchestration":
        """What was agreed on, and how far it is."""
        from executor.ledger.chaincodes.orchestration import Orchestration  # noqa: PLC0415

        return Orchestration(self.transport)

    @cached_property
    def execution(self) -> "ExecutionRecord":
        """The evidence of every task."""
        from executor.ledger.chaincodes.execution import ExecutionRecord  # noqa: PLC0415

        return ExecutionRecord(self.transport)

    @cached_property
    def models(self) -> "Models":
        """What completed processes left."""
        from executor.ledger.chaincodes.models import Models  # noqa: PLC0415

        return Models(self.transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the transport's connections back."""
        self.transport.close()
