"""The execution-record chaincode: the evidence of every task."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from executor.ledger.chaincodes.proxy import PAGE, Proxy, R, Submitted
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.challenges import (
    AnswerRecord,
    ChallengeEvidence,
    ChallengeRecord,
    Replayed,
    VerdictRecord,
)
from protocol.ledger.common import MAX_PAGE, HistoryEntry
from protocol.ledger.estimators import EstimatorEvidence, Lineage, SharedDigests, SharedEstimators, TwinRecord
from protocol.ledger.record import LedgerRecord
from protocol.ledger.tasks import (
    HISTORIES,
    CompletionReceipt,
    FirstShare,
    ImageUseRecord,
    InitialRecord,
    Offers,
    RefusalRecord,
    ResultRecord,
    ShareReceipt,
    SlotRecord,
    Standing,
    TaskEvidence,
    TaskRecord,
)
from protocol.task.opening import Opening, TaskId

ANY_ITERATION = -1


class ExecutionRecord(Proxy):
    """What tasks committed to, what they signed, what that put on the ledger."""

    chaincode = "execution-record"

    def get_task(self, task: TaskId) -> TaskEvidence:
        """Return a task with what it offered (`offered`) and what it came to (`outcome`)."""
        return self._agreed(TaskEvidence, "GetTask", *_parts(task))

    def first_share(self, task: TaskId) -> FirstShare:
        """Return who first shared in a task, and when: from then on its node is silent until it completes."""
        return self._agreed(FirstShare, "FirstShare", *_parts(task))

    def list_tasks(self, process: str, node: str = "") -> Iterator[TaskRecord]:
        """Iterate over the tasks of a process, or of one node, by node and iteration."""
        return self._items(TaskRecord, "ListTasks", process, node)

    def list_refusals(self, process: str, node: str = "") -> Iterator[RefusalRecord]:
        """Iterate over the refused starts of a process, or of one node, with their evidence."""
        return self._items(RefusalRecord, "ListRefusals", process, node)

    def artifacts(self, process: str, iteration: int = ANY_ITERATION) -> Iterator[ResultRecord]:
        """Iterate over the results of a process's completed tasks, or of those of one iteration."""
        return self._agreed_items(ResultRecord, "Artifacts", process, iteration)

    def artifacts_of(
        self, process: str, organisation: str, node: str = "", iteration: int = ANY_ITERATION
    ) -> Iterator[ResultRecord]:
        """Iterate over the results of one organisation (MSP id), of one of its nodes or tasks."""
        return self._agreed_items(ResultRecord, "ArtifactsOf", process, organisation, node, iteration)

    def slots(self, process: str, node: str) -> Iterator[SlotRecord]:
        """Iterate over the slots of a node as they are now: what each sender offered it last."""
        return self._agreed_items(SlotRecord, "Slots", process, node)

    def offers(self, task: TaskId) -> Offers:
        """Return what the neighbours offered in exactly this iteration, and who is missing."""
        return self._agreed(Offers, "Offers", *_parts(task))

    def standing(self, process: str, node: str) -> Standing:
        """Return a node's last completed iteration, state digest and next counter; null before."""
        return self._agreed(Standing, "Standing", process, node)

    def last_result(self, process: str, node: str) -> ResultRecord:
        """Return the result of a node's last completed task."""
        return self._agreed(ResultRecord, "LastResult", process, node)

    def estimator(self, process: str, estimator: EstimatorId) -> EstimatorEvidence:
        """Return an estimator with its tree in base64 and its origin."""
        return self._agreed(EstimatorEvidence, "Estimator", process, estimator)

    def estimators(self, process: str, ids: Sequence[EstimatorId]) -> SharedEstimators:
        """Return estimators by id, and the ids of those that were never shared."""
        parts = [
            self._agreed(
                SharedEstimators, "Estimators", process, [str(id_) for id_ in ids[first : first + MAX_PAGE]]
            )
            for first in range(0, len(ids), MAX_PAGE)
        ]
        return SharedEstimators(
            tuple(estimator for part in parts for estimator in part.estimators),
            tuple(id_ for part in parts for id_ in part.missing),
        )

    def digests(self, process: str, ids: Sequence[EstimatorId]) -> SharedDigests:
        """Return the digests of estimators by id, and the ids of those that were never shared."""
        parts = [
            self._agreed(
                SharedDigests, "Digests", process, [str(id_) for id_ in ids[first : first + MAX_PAGE]]
            )
            for first in range(0, len(ids), MAX_PAGE)
        ]
        return SharedDigests(
            tuple(member for part in parts for member in part.estimators),
            tuple(id_ for part in parts for id_ in part.missing),
        )

    def initial_model(self, process: str) -> InitialRecord:
        """Return which model a process started from, and who had access to it at the start."""
        return self._agreed(InitialRecord, "InitialModel", process)

    def image_uses(self, name: str, version: str) -> Iterator[ImageUseRecord]:
        """Iterate over the launches of tasks that committed to an image version."""
        return self._items(ImageUseRecord, "ImageUses", name, version)

    def twins(self, process: str, digest: Digest | None = None) -> Iterator[TwinRecord]:
        """Iterate over the shared trees of a process by digest, or over those of one digest."""
        return self._items(TwinRecord, "Twins", process, "" if digest is None else digest)

    def lineage(self, process: str, estimator: EstimatorId) -> Lineage:
        """Trace an estimator: its origin, every SHARE that offered it, its takers, its models."""

        def ask(bookmark: str) -> Lineage:
            return self._evaluate(Lineage, "Lineage", process, estimator, PAGE, bookmark)

        pages = list(self._pages("Lineage", ask, lambda page: page.bookmark))
        return replace(
            pages[-1],
            offers=tuple(offer for page in pages for offer in page.offers),
            taken=tuple(taken for page in pages for taken in page.taken),
        )

    def history(self, kind: str, parts: Sequence[str]) -> Iterator[HistoryEntry[LedgerRecord]]:
        """Iterate over the changes of a task, slot, share, result or head, newest first."""
        return self._history(HISTORIES.get(kind, LedgerRecord), "History", kind, list(parts))

    def open_task(
        self, task: TaskId, opening: Opening, proof: bytes, profile: bytes
    ) -> Submitted[TaskRecord]:
        """Commit to the key, code, parameters and inputs of a task before anything runs.

        `proof` is the signature of the opening's key (`protocol.task.possession`), `profile` the record whose
        digest is the opening's `sandbox`, for auditors.
        """
        said = (*_parts(task), opening.to_dict(), proof.hex())
        return self._submit(TaskRecord, "OpenTask", *said, profile.decode())

    def share(
        self, task: TaskId, share: bytes, signature: bytes, audience: Container[str] | None = None
    ) -> Submitted[ShareReceipt]:
        """SHARE: put the node's new estimators on the ledger and overwrite its neighbours' slots.

        The trees of a confidential process are for an audience, its organisations.
        """
        return self._signed(ShareReceipt, "Share", task, share, signature, audience)

    def complete(self, task: TaskId, result: bytes, signature: bytes) -> Submitted[CompletionReceipt]:
        """Complete a task by its signed result, and advance the node in the process."""
        return self._signed(CompletionReceipt, "Complete", task, result, signature)

    def fail(self, task: TaskId, code: str, reason: str) -> Submitted[TaskRecord]:
        """Close a task that came to nothing."""
        return self._submit(TaskRecord, "Fail", *_parts(task), code, reason)

    def expire(self, task: TaskId) -> Submitted[TaskRecord]:
        """Close a task whose time is over."""
        return self._submit(TaskRecord, "Expire", *_parts(task))

    def refuse(self, task: TaskId, code: str, evidence: Mapping[str, Any]) -> Submitted[TaskRecord]:
        """Record that the node refused to run a task, and what it found."""
        return self._submit(TaskRecord, "Refuse", *_parts(task), code, dict(evidence))

    def list_challenges(self, process: str, node: str = "") -> Iterator[ChallengeEvidence]:
        """Iterate over the challenges of a process's tasks, or of one node's, with answers and verdicts."""
        return self._agreed_items(ChallengeEvidence, "ListChallenges", process, node)

    def challenge(
        self, task: TaskId, auditors: Sequence[str] = (), reason: str = ""
    ) -> Submitted[ChallengeRecord]:
        """Doubt a task of another organisation; `auditors` (MSP ids) are those whose verdict is accepted."""
        return self._submit(ChallengeRecord, "Challenge", *_parts(task), list(auditors), reason)

    def answer_challenge(
        self, task: TaskId, organisation: str, auditor: str, evidence: Digest
    ) -> Submitted[AnswerRecord]:
        """Open a challenged task's inputs to an auditor (MSP id), by the digest of the file it is given."""
        return self._submit(AnswerRecord, "AnswerChallenge", *_parts(task), organisation, auditor, evidence)

    def judge_challenge(
        self, task: TaskId, organisation: str, replayed: Replayed | None
    ) -> Submitted[VerdictRecord]:
        """Record what running a challenged task again came to; None if its inputs were not opened."""
        found = {} if replayed is None else replayed.to_dict()
        return self._submit(VerdictRecord, "JudgeChallenge", *_parts(task), organisation, found)

    def _signed(  # noqa: PLR0917
        self,
        kind: type[R],
        function: str,
        task: TaskId,
        raw: bytes,
        signature: bytes,
        audience: Container[str] | None = None,
    ) -> Submitted[R]:
        """Send a payload as transient data: it is in the write set anyway, and its digest is signed."""
        field = "share" if kind is ShareReceipt else "result"
        arguments = (*_parts(task), Digest.of(raw), signature.hex())
        return self._submit(kind, function, *arguments, transient={field: raw}, audience=audience)


def _parts(task: TaskId) -> tuple[str, str, int]:
    return task.process, task.node, task.iteration
