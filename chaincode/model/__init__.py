"""The published models of completed processes, and who may read them."""

from chaincode.model.contract import ModelContract

__all__ = ["ModelContract"]
