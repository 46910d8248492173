"""Whether a result was signed for exactly this task, and whether it is on the ledger already."""

from chaincode.execution_record.records import Signed, Task
from protocol.digest import Digest
from protocol.errors import SignatureError, StateError
from protocol.signing import SIGNATURE_SIZE
from protocol.task.opening import statement
from protocol.task.statement import Action, verify_statement


def verify(task: Task, action: Action, digest: Digest, signature: str) -> None:
    """Return if the key of the task, as it is open now, signed this payload for this action."""
    if task.opening is None:
        raise StateError("TASK_UNKNOWN", f"task {task.id} was refused before it had a key")
    verify_statement(
        task.opening.public_key, statement(task.id, task.opening, action, digest), _from_hex(signature)
    )


def is_replay(known: Signed | None, signed: Signed) -> bool:
    """Whether this very result is on the ledger already."""
    return known is not None and known.payload_digest == signed.payload_digest


def _from_hex(text: str) -> bytes:
    if len(text) != 2 * SIGNATURE_SIZE or not set(text) <= set("0123456789abcdef"):
        raise SignatureError("SIGNATURE_INPUT", f"a signature is {2 * SIGNATURE_SIZE} lower-case hex digits")
    return bytes.fromhex(text)
