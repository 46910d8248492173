"""The model chaincode: a node's last ensemble, published once, read by those its owner allows."""

import json
from typing import Any, ClassVar

from chaincode.common import (
    DEFAULT_PAGE,
    LedgerContract,
    Role,
    allow,
    call_json,
    caller_of,
    history_page,
    page,
    provenance,
    read,
    write,
)
from chaincode.common.calls import EXECUTION_RECORD, ORCHESTRATION
from chaincode.common.records import VERSION, parse
from chaincode.model import access, documentation
from chaincode.model.publishing import (
    Publication,
    check_finished,
    check_same,
    trees_to_store,
    write_members,
    write_trees,
)
from chaincode.shim import Context, RefusalError, evaluate, submit
from protocol.errors import StateError
from protocol.fields import Fields
from protocol.identifiers import EstimatorId, parse_process
from protocol.ledger import keys
from protocol.task.result import MAX_METRICS

STAFF = (Role.DATA_SCIENTIST, Role.ADMIN)
MAX_TREES = 1000


class Models(LedgerContract):
    """Models by process and node, each with the organisations that may read it."""

    name = "model"
    events: ClassVar[dict[str, str]] = documentation.EVENTS
    values: ClassVar[dict[str, dict[str, str]]] = documentation.VALUES

    @submit
    @allow(Role.NODE)
    def publish(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        estimators: list[str],
        digest: str,
        metrics: dict[str, Any],
        trees_digest: str = "",
        trees: str = "",
    ) -> dict[str, Any]:
        """Publish the node's model: the ensemble of its last completed task, once; returns the record.

        `estimators` are its ids, ascending, and `digest` is the ensemble digest that the last round signed.
        Trees of it that were never shared come along as a share (docs/formats/share-v1.md) in the transient
        field `trees` or the last argument in base64, with their SHA-256 in `trees_digest`. The consortium
        has access from the beginning.
        """
        context = call_json(ctx, ORCHESTRATION, "ModelContext", process)
        owner = _owner(context, process, node)
        caller_of(ctx).need_node(node, owner)
        if read(ctx, keys.model(process, node)) is not None:
            raise StateError("MODEL_EXISTS", f"{node} has published its model of {process}")
        result = call_json(ctx, EXECUTION_RECORD, "LastResult", process, node)
        check_finished(context, result)
        publication = Publication(process, node, estimators, digest, trees_digest, trees)
        check_same(publication, result)
        figures = Fields({"metrics": metrics}, "the model", ("metrics",)).metrics("metrics", MAX_METRICS)
        stored = trees_to_store(ctx, publication, result)
        record = {
            "version": VERSION,
            "process": process,
            "node": node,
            "owner": owner,
            "iteration": result["iteration"],
            "image": result["image"],
            "result": result["signed"]["payload_digest"],
            "estimators": result["ensemble"],
            "digest": digest,
            "metrics": figures,
            "stored": [str(estimator.id) for estimator in stored],
            "published": provenance(ctx),
        }
        write(ctx, keys.model(process, node), record)
        access.open_to_consortium(ctx, process, node, owner, context["consortium"])
        write_trees(ctx, process, node, stored)
        write_members(ctx, process, node, estimators)
        payload = {"process": process, "node": node, "organisation": owner, "digest": digest}
        self.announce(ctx, "ModelPublished", {"version": VERSION, **payload, "estimators": len(estimators)})
        return record

    @submit
    @allow(*STAFF)
    def grant(
        self, ctx: Context, process: str, node: str, organisation: str, expires: str = ""
    ) -> dict[str, Any]:
        """Let an organisation read a model, by its owner; returns who has access.

        `expires` is a time in UTC such as 2027-01-31T00:00:00Z; without it the grant holds until revoked.
        The time of a read is what its reader claims, so an expiry is a rule for honest readers, and a
        revocation one for all.
        """
        record = access.grant(ctx, access.find_access(ctx, process, node), organisation, expires)
        return self._changed(ctx, "AccessGranted", record)

    @submit
    @allow(*STAFF)
    def revoke(self, ctx: Context, process: str, node: str, organisation: str) -> dict[str, Any]:
        """Take an organisation's access to a model away, by its owner; returns who has access."""
        record = access.revoke(ctx, access.find_access(ctx, process, node), organisation)
        return self._changed(ctx, "AccessRevoked", record)

    @evaluate
    def get(self, ctx: Context, process: str, node: str) -> dict[str, Any]:
        """Return a model without its trees; refused without access."""
        access.need_access(ctx, process, node)
        return _model(ctx, process, node)

    @evaluate
    def trees(
        self, ctx: Context, process: str, node: str, first: int = 0, count: int = 100
    ) -> dict[str, Any]:
        """Return trees of a model in base64, in the model's order, `count` of them from `first` on."""
        access.need_access(ctx, process, node)
        if first < 0 or not 1 <= count <= MAX_TREES:
            raise RefusalError("BAD_ARGUMENT", f"first is from 0 on and count from 1 to {MAX_TREES}")
        model = _model(ctx, process, node)
        ids = [entry["id"] for entry in model["estimators"][first : first + count]]
        return {"items": _trees(ctx, model, ids), "total": len(model["estimators"])}

    @evaluate
    def members(self, ctx: Context, process: str, node: str) -> dict[str, Any]:
        """Return the ids and digests of a model's estimators; refused without access."""
        access.need_access(ctx, process, node)
        model = _model(ctx, process, node)
        return {name: model[name] for name in ("process", "node", "digest", "estimators")}

    @evaluate
    def list(
        self, ctx: Context, process: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List models, all or those of one process, in brief: that a model exists is no secret."""
        prefix = ("model", parse_process(process)) if process else ("model",)
        return page(ctx, prefix, size, bookmark, _brief)

    @evaluate
    def access(self, ctx: Context, process: str, node: str) -> dict[str, Any]:
        """Return who may read a model, since when, and until when."""
        return access.find_access(ctx, process, node)

    @evaluate
    def access_history(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the changes of a model's access, newest first; `change` in each value says what was done."""
        access.find_access(ctx, process, node)
        return history_page(ctx, keys.access(process, node), size, bookmark)

    @evaluate
    def uses(self, ctx: Context, process: str, estimator: str) -> dict[str, Any]:
        """Return the nodes whose published models hold an estimator."""
        wanted = EstimatorId.parse(estimator)
        counter = f"{wanted.counter:0{keys.COUNTER_DIGITS}d}"
        found = ctx.partial("member", (parse_process(process), wanted.creator, counter))
        return {"models": [parse(item.value)["node"] for item in found]}

    def _changed(self, ctx: Context, event: str, record: dict[str, Any]) -> dict[str, Any]:
        process, node = record["process"], record["node"]
        write(ctx, keys.access(process, node), record)
        change = {name: record["change"][name] for name in ("organisation", "expires")}
        payload = {"process": process, "node": node, "owner": record["owner"], **change}
        self.announce(ctx, event, {"version": VERSION, **payload})
        return record


def _owner(context: dict[str, Any], process: str, node: str) -> str:
    if node not in context["nodes"]:
        raise StateError("NODE_UNKNOWN", f"{node[:64]} is not a node of {process}")
    return str(context["nodes"][node])


def _model(ctx: Context, process: str, node: str) -> dict[str, Any]:
    record = read(ctx, keys.model(process, node))
    if record is None:
        raise StateError("MODEL_UNKNOWN", f"{node} has published no model of {process}")
    return record


def _brief(record: dict[str, Any]) -> dict[str, Any]:
    names = ("process", "node", "owner", "iteration", "digest", "published")
    return {**{name: record[name] for name in names}, "size": len(record["estimators"])}


def _trees(ctx: Context, model: dict[str, Any], ids: list[str]) -> list[dict[str, Any]]:
    """Read the trees where they are: with the model, or with the execution record."""
    process, node = model["process"], model["node"]
    stored = set(model["stored"])
    shared = [text for text in ids if text not in stored]
    found: dict[str, dict[str, Any]] = {}
    if shared:
        answer = call_json(ctx, EXECUTION_RECORD, "Estimators", process, json.dumps(shared))
        found = {entry["id"]: entry for entry in answer["estimators"]}
    kept = [text for text in ids if text in stored]
    for text, raw in zip(
        kept, ctx.get_many([keys.tree(process, EstimatorId.parse(text), node) for text in kept]), strict=True
    ):
        if raw is not None:
            record = parse(raw)
            found[text] = {name: record[name] for name in ("id", "digest", "tree")}
    return [found[text] for text in ids]
