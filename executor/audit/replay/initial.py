"""The model that a process starts from: agreed on, fixed whole at the start, open to all members by then."""

from functools import partial

from executor.audit.findings import Findings
from executor.audit.replay.view import View, Written
from protocol.agreement.origin import check_origin
from protocol.agreement.parameters import InitialModel
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.common import EnsembleMember
from protocol.ledger.models import AccessRecord, ModelRecord
from protocol.ledger.task_rules import next_counters
from protocol.ledger.tasks import InitialRecord, InitialTreeRecord


def check_initial(findings: Findings, view: View, item: Written) -> None:
    """The model that a process starts from is the one that was agreed on, fixed once."""
    record, key = item.record, item.key
    assert isinstance(record, InitialRecord)  # noqa: S101
    fresh = view.before(item.raw_key, InitialRecord) is None
    findings.check("estimators", fresh, f"{key} was overwritten", view.where)
    process = view.process(record.process)
    agreed = process.specification.initial_model
    findings.check("estimators", record.model == agreed, f"{key} is another model", view.where)
    started = process.started is not None and keys.process(record.process) in view.written
    findings.check("estimators", started, f"{key} was fixed without a start", view.where)
    members = _initial_members(view, agreed)
    counters = record.next_counters == next_counters(members)
    findings.check("estimators", counters, f"{key} continues at other counters than the model's", view.where)
    fixed = all(keys.initialtree(record.process, member.id) in view.written for member in members)
    findings.check("estimators", fixed, f"{key} leaves out trees of the model", view.where)
    creators = [member.id.creator for member in members]
    origin = partial(check_origin, process.specification, creators, view.plan)
    findings.allows("estimators", origin, str(key), view.where)
    place = keys.access(record.model.process, record.model.node)
    access, names = view.before(place, AccessRecord), process.specification.organisations
    may = access is not None and all(access.allows(name, record.by.time) for name in names)
    right = may and record.organisations == tuple(sorted(names))
    findings.check("access", right, f"{key} was fixed for some who had no access to the model", view.where)


def check_initial_tree(findings: Findings, view: View, item: Written) -> None:
    """What is fixed of a model is what its record has."""
    record, (process, creator, counter) = item.record, item.key.parts
    assert isinstance(record, InitialTreeRecord)  # noqa: S101
    members = initial_members(view, view.process(str(process)).specification.initial_model)
    same = members.get(EstimatorId(str(creator), int(counter))) == record.digest
    findings.check("estimators", same, f"{item.key} is not in the model", view.where)


RULES = {"initial": (check_initial,), "initialtree": (check_initial_tree,)}


def is_member(view: View, initial: InitialModel, estimator_id: EstimatorId) -> bool:
    """Whether an estimator belongs to the model that a process began with."""
    return estimator_id in initial_members(view, initial)


def initial_members(view: View, initial: InitialModel | None) -> dict[EstimatorId, Digest]:
    """Return the estimators of the model that a process began with, with their digests."""
    return {member.id: member.digest for member in _initial_members(view, initial)}


def _initial_members(view: View, initial: InitialModel | None) -> tuple[EnsembleMember, ...]:
    if initial is None:
        return ()
    model = view.before(keys.model(initial.process, initial.node), ModelRecord)
    return model.estimators if model is not None and model.digest == initial.digest else ()
