"""A channel in memory with three organisations, their people and nodes, an image and a specification."""

import copy

from chaincode.common import LedgerContract, Role, allow
from chaincode.image import ImageContract
from chaincode.orchestration import OrchestrationContract
from chaincode.shim import Context, evaluate, submit
from protocol.ledger.models import Unpublished
from support.memory.ledger import Ledger

DIGESTS = [f"sha256:{digit * 64}" for digit in "0123456789abcdef"]
IMAGE = ("attestree/learner", "1.0.0")
ORGANISATIONS = ("Org1MSP", "Org2MSP", "Org3MSP")
NODES = {"node01": "Org1MSP", "node02": "Org1MSP", "node03": "Org2MSP", "node04": "Org2MSP"}

SPECIFICATION = {
    "version": 2,
    "process": "fraud-2026",
    "organisations": ["Org1MSP", "Org2MSP"],
    "nodes": NODES,
    "topology": {"kind": "ring"},
    # Most trees of the tests are made by hand, in the first format; test_estimator_formats has both.
    "estimator_format": 1,
    "steps": [
        {
            "name": "train",
            "image": {
                "name": IMAGE[0],
                "version": IMAGE[1],
                "image_id": DIGESTS[2],
                "manifest_digest": DIGESTS[1],
            },
            "iterations": 4,
            "parameters": {
                "n_new": 10,
                "n_max": 50,
                "n_share": 10,
                "seed": 42,
                "limits": {"n_features": 30},
                "schema_digest": DIGESTS[5],
            },
        }
    ],
}


class ExecutionRecord(LedgerContract):
    """Stands where execution-record stands: a chaincode of that name that advances a node."""

    name = "execution-record"

    @submit
    @allow(*Role)
    def complete(self, ctx: Context, process: str, node: str, iteration: int) -> None:
        ctx.invoke("orchestration", ["Advance", process, node, str(iteration)])


class Relay(ExecutionRecord):
    """Another chaincode that tries to do the same."""

    name = "relay"


class Model(LedgerContract):
    """Stands where model stands, in tests whose nodes have no results: nothing is unpublished."""

    name = "model"

    @evaluate
    def unpublished(self, ctx: Context, process: str, nodes: list[str]) -> Unpublished:
        return Unpublished(())


class Channel(Ledger):
    """The ledger with image, orchestration and callers of both kinds, and people of three organisations."""

    def __init__(self, *contracts):
        super().__init__(
            *(contracts or (ImageContract(), OrchestrationContract(), ExecutionRecord(), Relay(), Model()))
        )
        for number in (1, 2, 3):
            organisation = f"Org{number}MSP"
            for role in ("admin", "data-scientist", "auditor"):
                title = role.removeprefix("data-")
                setattr(self, f"{title}{number}", self.member(role, organisation, role=role))
        self.nodes = {
            node: self.member(node, organisation, role="node", node=node)
            for node, organisation in (NODES | {"node05": "Org3MSP", "node06": "Org1MSP"}).items()
        }

    def register(self, name=IMAGE[0], version=IMAGE[1], **more):
        return self.scientist1.submit(
            "image",
            "Register",
            name,
            version,
            DIGESTS[1],
            DIGESTS[2],
            "registry.example:5000/attestree/learner",
            **more,
        )

    def create(self, specification=SPECIFICATION):
        return self.scientist1.submit("orchestration", "Create", specification)

    def running(self, specification=SPECIFICATION):
        """Register, create, accept by every organisation and start."""
        self.register()
        process = self.create(specification)["process"]
        self.admin1.submit("orchestration", "Accept", process)
        for organisation in specification["organisations"][1:]:
            member = getattr(self, f"scientist{ORGANISATIONS.index(organisation) + 1}")
            member.submit("orchestration", "Accept", process)
        self.scientist1.submit("orchestration", "Start", process)
        return process

    def agree(self, member, ask, **more):
        """Agree to what was asked for, as it was answered."""
        return member.submit(*self.agreement(ask), **more)

    @staticmethod
    def agreement(ask):
        """What to call to agree to what was asked for."""
        return ("orchestration", "Agree", ask["process"], ask["asked"], ask["number"], ask["digest"])

    def advance(self, node, iteration, process="fraud-2026"):
        """Complete an iteration of a node through execution-record."""
        return self.nodes[node].submit("execution-record", "Complete", process, node, iteration)

    def context(self, node, iteration, process="fraud-2026"):
        return self.nodes[node].evaluate("orchestration", "TaskContext", process, node, iteration)


def changed(*path_and_value, base=SPECIFICATION):
    """Copy the specification with one place set to another value, or removed when the value is `...`."""
    *path, last, value = path_and_value
    made = copy.deepcopy(base)
    place = made
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made
