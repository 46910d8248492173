"""The contracts this package can serve, by name; each is imported only when it is served."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from chaincode.shim import Contract

CONTRACTS = {
    "probe": "chaincode.probe:Probe",
    "image": "chaincode.image:ImageContract",
    "orchestration": "chaincode.orchestration:OrchestrationContract",
    "execution-record": "chaincode.execution_record:ExecutionRecordContract",
    "model": "chaincode.model:ModelContract",
}


def contract(name: str) -> "Contract":
    """Make the contract of that name; raises KeyError when there is none."""
    module, _, attribute = CONTRACTS[name].partition(":")
    return cast("Contract", getattr(import_module(module), attribute)())
