"""What a record says, in a sentence and in named facts, for people."""

from collections.abc import Callable
from typing import Any

from executor.audit.replay.view import Written
from protocol.identifiers import EstimatorId
from protocol.ledger.tasks import TaskRecord

SHOWN = 5
"""How many names of a list are shown."""


def sentence_of(item: Written) -> str:
    """Say what a record says; empty for those that only repeat another."""
    make = _SENTENCES.get(item.key.kind)
    return "" if make is None else make(item.record, item.key.parts)


def facts_of(item: Written) -> dict[str, str]:
    """Return what an auditor compares, by name."""
    make = _FACTS.get(item.key.kind)
    return {} if make is None else make(item.record)


def _process(record: Any, _: Any) -> str:
    accepted = ", ".join(sorted(record.accepted)) or "nobody yet"
    return f"process {record.process} is {record.status}; accepted by {accepted}"


def _result(record: Any, _: Any) -> str:
    taken = sum(len(slot.taken) for slot in record.slots)
    return f"{record.node} created {len(record.created)} trees, took {taken} and keeps {len(record.ensemble)}"


def _access(record: Any, _: Any) -> str:
    names = ", ".join(sorted(record.organisations))
    return f"access: {record.change.action} {record.change.organisation}; open to {names}"


def _share(record: Any, _: Any) -> str:
    return f"{record.node} offers {_ids(record.ids)} to {', '.join(record.recipients) or 'nobody'}"


def _ids(ids: tuple[EstimatorId, ...]) -> str:
    shown = ", ".join(map(str, ids[:SHOWN]))
    return shown + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")


_SENTENCES: dict[str, Callable[[Any, Any], str]] = {
    "process": _process,
    "task": lambda record, _: f"task {record.id} is {record.state}, attempt {record.attempt}",
    "share": _share,
    "result": _result,
    "estimator": lambda record, _: f"{record.id} is put on the ledger in iteration {record.iteration}",
    "offer": lambda _, parts: f"{parts[3]} offers it in iteration {parts[4]}",
    "member": lambda _, parts: f"it is in the model of {parts[3]}",
    "model": lambda record, _: f"{record.node} publishes a model of {len(record.estimators)} trees",
    "access": _access,
    "challenge": lambda record, _: f"{record.organisation} challenges task {record.task}",
    "answer": lambda record, _: (
        f"its inputs are opened to {record.auditor}, after {record.organisation} challenged"
    ),
    "verdict": lambda record, _: (
        f"{record.auditor} ran task {record.node}/{record.iteration} again: {record.verdict}"
    ),
    "refusal": lambda record, _: f"{record.node} refuses iteration {record.iteration}: {record.code}",
}


def _task_facts(record: TaskRecord) -> dict[str, str]:
    opening = record.opening
    if opening is None:
        return {}
    return {
        "image id": str(opening.image_id),
        "parameter hash": str(opening.parameter_hash),
        "data commitment": str(opening.data),
        "state before": str(opening.state or "none: its first task"),
        "sandbox": str(opening.sandbox),
        "key": str(opening.public_key),
    }


_FACTS: dict[str, Callable[[Any], dict[str, str]]] = {
    "process": lambda record: {"specification": str(record.specification_digest)},
    "task": _task_facts,
    "result": lambda record: {"ensemble": str(record.ensemble_digest), "state after": str(record.state)},
    "estimator": lambda record: {"creator": record.id.creator, "digest": str(record.digest)},
    "model": lambda record: {"owner": record.owner, "digest": str(record.digest)},
}
