"""The ledger as the executor sees it: one transport, a typed proxy per chaincode."""

from typing import Self

from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.chaincodes.images import Images
from executor.ledger.chaincodes.models import Models
from executor.ledger.chaincodes.orchestration import Orchestration
from executor.ledger.chaincodes.proxy import Submitted
from executor.ledger.transport import Transport

__all__ = ["Ledger", "Submitted"]


class Ledger:
    """The four chaincodes of the channel; a context manager that closes its transport."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.images = Images(transport)
        self.orchestration = Orchestration(transport)
        self.execution = ExecutionRecord(transport)
        self.models = Models(transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the transport's connections back."""
        self.transport.close()
