"""Proof that whoever opens a task holds the key that the opening names (docs/formats/possession-v1.md).

The signature covers the task, the organisation of its node and the whole opening. Whoever copies a public key
from somebody's transaction cannot make it, and a copy of the signature serves nobody but that node.
"""

from protocol import canonical
from protocol.digest import Digest
from protocol.identifiers import parse_organisation
from protocol.signing import SigningKey, sign, verify
from protocol.task.opening import Opening, TaskId

OPENING_DOMAIN = "attestree/opening"
VERSION = 1


def possession_digest(task: TaskId, organisation: str, opening: Opening) -> Digest:
    """Return what the key signs: which node of which organisation opens which task, and how."""
    return canonical.digest(
        {
            "version": VERSION,
            **task.to_dict(),
            "organisation": parse_organisation(organisation),
            "opening": opening.to_dict(),
        }
    )


def prove_possession(key: SigningKey, task: TaskId, organisation: str, opening: Opening) -> bytes:
    """Sign the opening with the key that it names."""
    return sign(key, OPENING_DOMAIN, possession_digest(task, organisation, opening))


def check_possession(task: TaskId, organisation: str, opening: Opening, proof: bytes) -> None:
    """Return if the key of the opening signed it for this task of this organisation's node."""
    verify(opening.public_key, OPENING_DOMAIN, possession_digest(task, organisation, opening), proof)
