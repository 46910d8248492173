"""Fabric's protobuf messages, named once.

The generated modules carry no types, so they pass the type checker as `Any`, here and nowhere else.
"""

from typing import Any

from fabric_protos.common import common_pb2, ledger_pb2
from fabric_protos.gateway import gateway_pb2, gateway_pb2_grpc
from fabric_protos.msp import identities_pb2
from fabric_protos.orderer import ab_pb2
from fabric_protos.peer import chaincode_pb2, proposal_pb2, proposal_response_pb2, transaction_pb2

common: Any = common_pb2
ledger: Any = ledger_pb2
gateway: Any = gateway_pb2
gateway_service: Any = gateway_pb2_grpc
msp: Any = identities_pb2
orderer: Any = ab_pb2
chaincode: Any = chaincode_pb2
proposal: Any = proposal_pb2
response: Any = proposal_response_pb2
transaction: Any = transaction_pb2
