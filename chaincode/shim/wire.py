"""Fabric's protobuf messages, named once.

The generated modules carry no types, so they pass the type checker as `Any`, here and nowhere else.
"""

from typing import Any

from fabric_protos.common import common_pb2, policies_pb2
from fabric_protos.ledger.queryresult import kv_query_result_pb2
from fabric_protos.msp import identities_pb2, msp_principal_pb2
from fabric_protos.peer import (
    chaincode_event_pb2,
    chaincode_pb2,
    chaincode_shim_pb2,
    proposal_pb2,
    proposal_response_pb2,
)
from fabric_protos.peer.lifecycle import lifecycle_pb2
from google.protobuf.message import DecodeError

from .errors import ShimError

common: Any = common_pb2
policies: Any = policies_pb2
principals: Any = msp_principal_pb2
queryresult: Any = kv_query_result_pb2
msp: Any = identities_pb2
event: Any = chaincode_event_pb2
chaincode: Any = chaincode_pb2
lifecycle: Any = lifecycle_pb2
shim: Any = chaincode_shim_pb2
proposal: Any = proposal_pb2
response: Any = proposal_response_pb2

Message: Any = shim.ChaincodeMessage

CONNECT_SERVICE = "protos.Chaincode"
CONNECT_METHOD = "Connect"


class FormatError(ShimError):
    """Bytes that should be a message of Fabric's protocol are not one."""

    code = "MALFORMED"


def parse(kind: Any, raw: bytes) -> Any:
    """Decode one message, or say which kind it should have been."""
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise FormatError(f"{len(raw)} bytes are not a {kind.DESCRIPTOR.name}") from error


def type_name(message: Any) -> str:
    """Name a message's type, also one that this protocol version does not know."""
    found = Message.Type.DESCRIPTOR.values_by_number.get(message.type)
    return str(found.name) if found else f"type {message.type}"
