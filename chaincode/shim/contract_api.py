"""A contract described as Fabric's contract API describes one, for tools that ask every chaincode alike."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contract import Contract, Function

FUNCTION = "org.hyperledger.fabric:GetMetadata"
"""What tools call, whatever the chaincode is written with."""

_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "bytes": {"type": "string", "format": "binary"},
    "int": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "list[str]": {"type": "array", "items": {"type": "string"}},
    "list[int]": {"type": "array", "items": {"type": "integer", "format": "int64"}},
    "dict[str, Any]": {"type": "object"},
}


def describe(contract: "Contract") -> dict[str, Any]:
    """Return the contract's functions in the form that the contract API answers with."""
    info = {"title": contract.name, "version": contract.version}
    transactions = [_transaction(contract.functions[name]) for name in sorted(contract.functions)]
    described = {"name": contract.name, "info": info, "default": True, "transactions": transactions}
    return {"info": info, "contracts": {contract.name: described}, "components": {"schemas": {}}}


def _transaction(function: "Function") -> dict[str, Any]:
    # Tools read either spelling, according to the language that they know best.
    return {
        "name": function.name,
        "tag": [function.kind, function.kind.upper()],
        "parameters": [
            {"name": parameter.name, "schema": _SCHEMAS[parameter.type]} for parameter in function.parameters
        ],
        "returns": {"type": "string"},
    }
