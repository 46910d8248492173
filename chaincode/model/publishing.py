"""Whether what a node publishes is the ensemble its last round signed, tree by tree."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from chaincode.common import call_json, write
from chaincode.common.calls import EXECUTION_RECORD, ORCHESTRATION
from chaincode.common.records import VERSION
from chaincode.shim import Context
from protocol.agreement.lifecycle import PROCESS, ProcessState
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.task.payload import read_payload
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share, ShareLimits

MAX_TREES_BYTES = 16 << 20
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Publication:
    """The call of a node that publishes: the ids and the digest of its model, and how its trees come."""

    process: str
    node: str
    ids: list[str]
    digest: str
    payload_digest: str
    payload: str


def check_finished(context: dict[str, Any], result: dict[str, Any]) -> None:
    """Return if the node has done its last iteration, or the process is completed without it."""
    status = PROCESS.state(context["status"])
    if status not in (ProcessState.RUNNING, ProcessState.COMPLETED):
        raise StateError("PROCESS_NOT_RUNNING", f"process {context['process']} is {status}")
    if status is ProcessState.RUNNING and result["iteration"] + 1 < context["iterations"]:
        raise StateError(
            "MODEL_UNFINISHED",
            f"{result['node']} has done iteration {result['iteration']} of {context['iterations']}",
        )


def check_same(publication: Publication, result: dict[str, Any]) -> None:
    """Return if the model is the ensemble of the last result."""
    if publication.ids != [entry["id"] for entry in result["ensemble"]]:
        raise StateError("MODEL_ESTIMATORS", "the estimators are not those of the node's last ensemble")
    if publication.digest != result["ensemble_digest"]:
        raise StateError(
            "MODEL_DIGEST", f"the last round signed {result['ensemble_digest']}, not {publication.digest}"
        )


def trees_to_store(ctx: Context, publication: Publication, result: dict[str, Any]) -> tuple[Estimator, ...]:
    """Return the trees of the model that the process never shared: those its readers find nowhere else."""
    missing = _missing(ctx, publication)
    if not missing:
        return ()
    context = call_json(
        ctx, ORCHESTRATION, "TaskContext", publication.process, publication.node, result["iteration"]
    )
    digest = Digest.parse(publication.payload_digest)
    raw = read_payload(ctx.transient.get("trees"), publication.payload, digest, MAX_TREES_BYTES)
    limits = ShareLimits(len(missing), MAX_TREES_BYTES)
    share = Share.from_bytes(raw, limits, TreeLimits(**context["limits"]))
    if [str(estimator_id) for estimator_id in share.ids] != missing:
        raise StateError("MODEL_TREES", f"{len(missing)} trees were never shared, from {missing[0]} on")
    digests = {entry["id"]: entry["digest"] for entry in result["ensemble"]}
    for estimator in share.estimators:
        if str(estimator.tree.digest) != digests[str(estimator.id)]:
            raise StateError(
                "MODEL_TREES", f"{estimator.id} is {digests[str(estimator.id)]} in the last ensemble"
            )
    return share.estimators


def write_trees(ctx: Context, process: str, node: str, trees: tuple[Estimator, ...]) -> None:
    """Store trees beside the model."""
    for estimator in trees:
        raw = estimator.tree.to_bytes()
        record = {
            "version": VERSION,
            "id": str(estimator.id),
            "digest": str(estimator.tree.digest),
            "tree": base64.b64encode(raw).decode(),
        }
        write(ctx, keys.tree(process, estimator.id, node), record)


def write_members(ctx: Context, process: str, node: str, ids: list[str]) -> None:
    """Note for each estimator that it is in this model, for its lineage."""
    for text in ids:
        key = keys.member(process, EstimatorId.parse(text), node)
        write(ctx, key, {"version": VERSION, "node": node})


def _missing(ctx: Context, publication: Publication) -> list[str]:
    missing: list[str] = []
    for first in range(0, len(publication.ids), CHUNK):
        asked = json.dumps(publication.ids[first : first + CHUNK])
        missing += call_json(ctx, EXECUTION_RECORD, "Estimators", publication.process, asked)["missing"]
    return missing
