"""The consortium's agreements: which process runs, with whom, on which images, and how far it is."""

from chaincode.orchestration.contract import OrchestrationContract

__all__ = ["OrchestrationContract"]
