"""Checks that several functions make against the ledger."""

from chaincode.common import Role, call_json
from chaincode.common.calls import IMAGE, MODEL
from chaincode.shim import Context
from protocol.agreement.lifecycle import ImageState
from protocol.agreement.process import Specification
from protocol.errors import StateError

STAFF = (Role.DATA_SCIENTIST, Role.ADMIN)
"""Who acts for an organisation."""


def owner_of(nodes: dict[str, str], node: str, process: str) -> str:
    """Return the organisation of a node, or refuse a node that the process does not have."""
    if node not in nodes:
        raise StateError("NODE_UNKNOWN", f"{node[:64]} is not a node of {process}")
    return nodes[node]


def check_images(ctx: Context, specification: Specification) -> None:
    """Refuse a specification with an image version that is not registered, or retired."""
    for name, version in sorted({(step.image_name, step.image_version) for step in specification.steps}):
        check_image(ctx, name, version)


def check_image(ctx: Context, name: str, version: str) -> None:
    """Refuse an image version that is not registered, or retired."""
    if call_json(ctx, IMAGE, "Get", name, version)["status"] != ImageState.REGISTERED:
        raise StateError("IMAGE_RETIRED", f"{name} {version} is retired")


def check_initial_model(ctx: Context, specification: Specification) -> None:
    """Refuse a model to start from that is not published, is another one, or is closed to the caller."""
    wanted = specification.initial_model
    if wanted is None:
        return
    found = call_json(ctx, MODEL, "Members", wanted.process, wanted.node)
    if found["digest"] != str(wanted.digest):
        raise StateError(
            "MODEL_DIGEST", f"the model of {wanted.node} in {wanted.process} has digest {found['digest']}"
        )
