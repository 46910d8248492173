"""The model chaincode: what a completed process left, and who may read it."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from executor.ledger.chaincodes.proxy import PAGE, Proxy, Submitted
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import HistoryEntry
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.models import (
    AccessRecord,
    ModelBrief,
    ModelMembers,
    ModelRecord,
    ModelTrees,
    ModelUses,
    Unpublished,
)
from protocol.ledger.requests import CatalogueEntry, RequestStatus


class Models(Proxy):
    """Models by process and node, each with the organisations that may read it."""

    chaincode = "model"

    def get(self, process: str, node: str) -> ModelRecord:
        """Return a model without its trees."""
        return self._agreed(ModelRecord, "Get", process, node)

    def list(self, process: str = "") -> Iterator[ModelBrief]:
        """Iterate over all models, or over those of one process, in brief."""
        return self._items(ModelBrief, "List", process)

    def members(self, process: str, node: str) -> ModelMembers:
        """Return the ids and digests of a model's estimators."""
        return self._agreed(ModelMembers, "Members", process, node)

    def trees(self, process: str, node: str, used_by: str = "") -> Iterator[SharedEstimator]:
        """Iterate over a model's trees in its order; `used_by` is a running process that started from it."""
        first, total = 0, 1
        while first < total:
            answer = self._agreed(ModelTrees, "Trees", process, node, first, PAGE, used_by)
            due = min(PAGE, answer.total - first)
            if len(answer.items) != due:
                # Else a peer that promises trees and brings none would be asked for ever.
                raise self._odd("Trees", f"{len(answer.items)} trees came where {due} were due")
            yield from answer.items
            first, total = first + PAGE, answer.total

    def access(self, process: str, node: str) -> AccessRecord:
        """Return who may read a model, since when, and until when."""
        return self._agreed(AccessRecord, "Access", process, node)

    def access_history(self, process: str, node: str) -> Iterator[HistoryEntry[AccessRecord]]:
        """Iterate over the changes of a model's access, newest first."""
        return self._history(AccessRecord, "AccessHistory", process, node)

    def history(self, process: str, node: str) -> Iterator[HistoryEntry[ModelRecord]]:
        """Iterate over what was published as a node's model, newest first."""
        return self._history(ModelRecord, "History", process, node)

    def catalogue(self, process: str = "") -> Iterator[CatalogueEntry]:
        """Iterate over all models, or over those of one process, with the terms of a request."""
        return self._agreed_items(CatalogueEntry, "Catalogue", process)

    def requests(self, process: str, node: str = "") -> Iterator[RequestStatus]:
        """Iterate over the requests about models of a process, or about one, with the votes on each."""
        return self._agreed_items(RequestStatus, "Requests", process, node)

    def unpublished(self, process: str, nodes: Sequence[str]) -> Unpublished:
        """Return those of these nodes that have published no model."""
        return self._agreed(Unpublished, "Unpublished", process, [*nodes])

    def uses(self, process: str, estimator: EstimatorId) -> ModelUses:
        """Return the nodes whose published models hold an estimator."""
        return self._evaluate(ModelUses, "Uses", process, estimator)

    def publish(  # noqa: PLR0917
        self,
        process: str,
        node: str,
        estimators: Sequence[EstimatorId],
        digest: Digest,
        metrics: Mapping[str, Any],
        trees: bytes | None = None,
        audience: Container[str] | None = None,
    ) -> Submitted[ModelRecord]:
        """Publish the node's last ensemble, with a share (share-v1) of those trees that were never shared.

        The trees of a confidential process are for an audience, its organisations.
        """
        ids = [str(estimator) for estimator in estimators]
        values = (process, node, ids, digest, dict(metrics))
        if trees is None:
            return self._submit(ModelRecord, "Publish", *values)
        payload = {"trees": trees}
        return self._submit(
            ModelRecord, "Publish", *values, Digest.of(trees), transient=payload, audience=audience
        )

    def publish_for(self, process: str, node: str) -> Submitted[ModelRecord]:
        """Publish what the ledger has of the model of another's node that did the last iteration."""
        return self._submit(ModelRecord, "PublishFor", process, node)

    def grant(self, process: str, node: str, organisation: str, expires: str = "") -> Submitted[AccessRecord]:
        """Let an organisation (MSP id) read a model, by its owner."""
        return self._submit(AccessRecord, "Grant", process, node, organisation, expires)

    def request(
        self, process: str, node: str, purpose: str, licence: Digest | None = None, expires: str = ""
    ) -> Submitted[RequestStatus]:
        """Ask to read a model for the caller's organisation, on the licence with this digest."""
        accepted = "" if licence is None else licence
        return self._submit(RequestStatus, "Request", process, node, purpose, accepted, expires)

    def decide(self, status: RequestStatus, agrees: bool) -> Submitted[RequestStatus]:
        """Vote on exactly the request that was read."""
        asked = status.request
        place = (asked.process, asked.node, asked.organisation, asked.number)
        return self._submit(RequestStatus, "Decide", *place, asked.digest, agrees)

    def revoke(self, process: str, node: str, organisation: str) -> Submitted[AccessRecord]:
        """Take an organisation's access to a model away, by its owner."""
        return self._submit(AccessRecord, "Revoke", process, node, organisation)

    def request_revocation(
        self, process: str, node: str, organisation: str, purpose: str
    ) -> Submitted[RequestStatus]:
        """Ask those who decide to take an organisation's access to a model away."""
        return self._submit(RequestStatus, "RequestRevocation", process, node, organisation, purpose)
