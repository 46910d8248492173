"""What a round will be, read and checked before anything is opened, run or written."""

import base64
import threading
from dataclasses import dataclass, field
from typing import Any

from docker import DockerClient

from executor.data import Dataset
from executor.image.check import RegisteredImage, obtain
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from executor.sandbox.profile import Limits, Profile
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.signing import VerifyKey
from protocol.task.commitment import data_commitment
from protocol.task.opening import Opening, TaskId
from protocol.task.state import StateRecord
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.tree import Tree


@dataclass(frozen=True)
class Bench:
    """What every round of a node works with."""

    ledger: Ledger
    client: DockerClient
    store: NodeStore
    labels: dict[str, str]
    seconds: float
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the operator wants the executor to end."""


@dataclass(frozen=True)
class Terms:
    """What the ledger says about a task: the process's agreement, and where the node stands."""

    task: TaskId
    context: dict[str, Any]
    image: RegisteredImage
    state: Digest | None

    @property
    def limits(self) -> TreeLimits:
        """What trees the process allows."""
        return TreeLimits(**self.context["limits"])

    @property
    def is_last(self) -> bool:
        """Whether the node's model is made by this task."""
        return bool(self.task.iteration + 1 == self.context["iterations"])


@dataclass(frozen=True)
class Plan:
    """Everything a task commits to except its key, and the bytes that go in."""

    terms: Terms
    dataset: Dataset
    salt: bytes
    state: bytes | None
    profile: Profile

    @property
    def commitment(self) -> Digest:
        """The salted commitment to the private data."""
        data = self.dataset
        return data_commitment(self.salt, data.file, data.table.digest, data.schema.digest)

    def opening(self, key: VerifyKey) -> Opening:
        """Return the commitment that goes on the ledger before anything runs."""
        return Opening(
            public_key=key,
            image_id=self.terms.image.image_id,
            manifest_digest=self.terms.image.manifest_digest,
            parameter_hash=Digest.parse(self.terms.context["parameters_digest"]),
            schema_digest=Digest.parse(self.terms.context["schema_digest"]),
            state=self.terms.state,
            data=self.commitment,
            sandbox=self.profile.digest,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as `--dry-run` prints it."""
        terms = self.terms
        return {
            **terms.task.to_dict(),
            "iterations": terms.context["iterations"],
            "synchronous": terms.context["synchronous"],
            "neighbours": terms.context["neighbours"],
            "image": {
                "name": terms.image.name,
                "version": terms.image.version,
                "repository": terms.image.repository,
                "manifest_digest": str(terms.image.manifest_digest),
                "image_id": str(terms.image.image_id),
            },
            "parameters": terms.context["parameters"],
            "parameters_digest": terms.context["parameters_digest"],
            "state": None if terms.state is None else str(terms.state),
            "data": {
                "file": str(self.dataset.path),
                "rows": len(self.dataset.table.y),
                "features": len(self.dataset.schema.features),
                "commitment": str(self.commitment),
            },
            "sandbox": {"digest": str(self.profile.digest), "profile": self.profile.to_record()},
        }


def read_terms(ledger: Ledger, process: str, node: str) -> Terms | None:
    """Read what the node has to do next; None when nothing is left to do."""
    standing = ledger.execution.standing(process, node)
    iteration = 0 if standing["iteration"] is None else standing["iteration"] + 1
    status = ledger.orchestration.status(process)
    upcoming = next((entry["next"] for entry in status["nodes"] if entry["node"] == node), iteration)
    if upcoming is None:
        return None
    task = TaskId(process, node, upcoming)
    context = ledger.orchestration.task_context(task)
    image = ledger.images.get(context["image"]["name"], context["image"]["version"])
    state = None if standing["state"] is None else Digest.parse(standing["state"])
    terms = Terms(task, context, RegisteredImage.from_record(image), state)
    _check_ready(terms)
    return terms


def make_plan(terms: Terms, bench: Bench, dataset: Dataset, limits: Limits) -> Plan:
    """Check data, state and image against the terms, the image last because it may have to be pulled."""
    wanted = terms.context["schema_digest"]
    if str(dataset.schema.digest) != wanted:
        raise StateError(
            "SCHEMA_MISMATCH",
            f"{dataset.path} has columns of schema {dataset.schema.digest}, the process agreed on {wanted}",
        )
    state = _state(terms, bench)
    obtain(bench.client, terms.image)
    profile = Profile.for_image(bench.client, terms.image.image_id, limits, has_state=state is not None)
    return Plan(terms, dataset, bench.store.salt(), state, profile)


def _check_ready(terms: Terms) -> None:
    context = terms.context
    if context["status"] != "running":
        raise StateError("PROCESS_NOT_RUNNING", f"process {terms.task.process} is {context['status']}")
    if not context["active"]:
        raise StateError(
            "NODE_INACTIVE", f"{terms.task.node} takes no part in iteration {terms.task.iteration}"
        )


def _state(terms: Terms, bench: Bench) -> bytes | None:
    if terms.state is not None:
        return bench.store.state(terms.state)
    initial = terms.context["parameters"]["initial_model"]
    return None if initial is None else _initial_state(terms, bench.ledger, initial).to_bytes()


def _initial_state(terms: Terms, ledger: Ledger, initial: dict[str, Any]) -> StateRecord:
    """Build the state a first round starts from when the process starts from a published model."""
    model = [
        Estimator(
            EstimatorId.parse(entry["id"]), Tree.from_bytes(base64.b64decode(entry["tree"]), terms.limits)
        )
        for entry in ledger.models.trees(initial["process"], initial["node"])
    ]
    return StateRecord.initial(terms.task, terms.context["parameters"]["seed"], model)
