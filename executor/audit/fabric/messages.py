"""Fabric's protobuf messages, named once, and read with care: their bytes may be anybody's.

The generated modules carry no types, so they pass the type checker as `Any`, here and nowhere else. None of
them imports gRPC.
"""

from typing import Any

from fabric_protos.common import common_pb2, configtx_pb2, configuration_pb2, policies_pb2
from fabric_protos.ledger.rwset import rwset_pb2
from fabric_protos.ledger.rwset.kvrwset import kv_rwset_pb2
from fabric_protos.msp import identities_pb2, msp_config_pb2, msp_principal_pb2
from fabric_protos.orderer import configuration_pb2 as orderer_configuration_pb2
from fabric_protos.peer import (
    chaincode_event_pb2,
    chaincode_pb2,
    collection_pb2,
    policy_pb2,
    proposal_pb2,
    proposal_response_pb2,
    transaction_pb2,
)
from fabric_protos.peer.lifecycle import chaincode_definition_pb2, db_pb2
from google.protobuf.message import DecodeError

from executor.audit.fabric.wire import WireError, usual_form

common: Any = common_pb2
configtx: Any = configtx_pb2
configuration: Any = configuration_pb2
policies: Any = policies_pb2
rwset: Any = rwset_pb2
kvrwset: Any = kv_rwset_pb2
identities: Any = identities_pb2
msp_config: Any = msp_config_pb2
principal: Any = msp_principal_pb2
orderer: Any = orderer_configuration_pb2
event: Any = chaincode_event_pb2
chaincode: Any = chaincode_pb2
collection: Any = collection_pb2
policy: Any = policy_pb2
proposal: Any = proposal_pb2
response: Any = proposal_response_pb2
transaction: Any = transaction_pb2
definition: Any = chaincode_definition_pb2
lifecycle: Any = db_pb2


class MalformedError(Exception):
    """Bytes that should be a message of Fabric are not one."""


def parse(kind: Any, raw: bytes) -> Any:
    """Decode one message as peers do, or say which kind it should have been."""
    try:
        found = kind.FromString(raw)
        found.DiscardUnknownFields()
        if found.SerializeToString() == raw:
            return found  # in the usual form, which all decoders read alike
    except (DecodeError, RecursionError):
        pass
    try:
        return kind.FromString(usual_form(kind.DESCRIPTOR, raw))
    except (DecodeError, RecursionError, WireError) as error:
        raise MalformedError(f"{len(raw)} bytes are not a {kind.DESCRIPTOR.name}") from error
