"""The published models of completed processes, and who may read them."""

from chaincode.model.contract import Models

__all__ = ["Models"]
