"""Calls from one chaincode to another."""

import re
from collections.abc import Sequence

from . import wire
from .errors import CallError, MisuseError
from .transaction import Transaction

# Fabric's own grammar; a leading underscore belongs to its system chaincodes, a slash would name a channel.
CHAINCODE = re.compile(r"_?[A-Za-z0-9]+([_-][A-Za-z0-9]+)*")
CHANNEL = re.compile(r"[a-z][a-z0-9.-]{0,248}")
ERROR_STATUS = 400
LIFECYCLE = "_lifecycle"


def invoke(transaction: Transaction, chaincode: str, arguments: Sequence[str | bytes], channel: str) -> bytes:
    """Run another chaincode in the same transaction; return its payload or raise its refusal."""
    payload = transaction.call(wire.Message.INVOKE_CHAINCODE, _specification(chaincode, arguments, channel))
    message = wire.parse(wire.Message, payload)
    if message.type != wire.Message.COMPLETED:
        raise CallError(chaincode, 500, message.payload.decode("utf-8", "replace"))
    answer = wire.parse(wire.response.Response, message.payload)
    if answer.status >= ERROR_STATUS:
        raise CallError(chaincode, answer.status, answer.message)
    return bytes(answer.payload)


def organisations(transaction: Transaction, chaincode: str) -> tuple[str, ...]:
    """Ask the lifecycle chaincode who is on the channel: a definition says of each whether it approved."""
    asked = wire.lifecycle.QueryChaincodeDefinitionArgs(name=chaincode).SerializeToString()
    answer = invoke(transaction, LIFECYCLE, ["QueryChaincodeDefinition", asked], "")
    found = wire.parse(wire.lifecycle.QueryChaincodeDefinitionResult, answer)
    return tuple(sorted(found.approvals))


def _specification(chaincode: str, arguments: Sequence[str | bytes], channel: str) -> bytes:
    """Build the message whose absent fields a v3.1 peer dereferences without looking, and dies of."""
    if not CHAINCODE.fullmatch(chaincode):
        raise MisuseError("a chaincode name has letters and digits, and single dashes or underscores between")
    if channel and not CHANNEL.fullmatch(channel):
        raise MisuseError("a channel name begins with a lower-case letter, then a-z, 0-9, dot and dash")
    if not arguments:
        raise MisuseError("a call needs at least the name of a function")
    raw = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    name = f"{chaincode}/{channel}" if channel else chaincode
    specification = wire.chaincode.ChaincodeSpec(
        chaincode_id=wire.chaincode.ChaincodeID(name=name), input=wire.chaincode.ChaincodeInput(args=raw)
    )
    return bytes(specification.SerializeToString())
