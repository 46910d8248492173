"""The model that a process starts from, fixed when it starts: nothing of it is asked for again later."""

from typing import Any

from chaincode.common import STAFF, LedgerContract, allow, provenance, time_text, write
from chaincode.common.calls import ORCHESTRATION, model_access, model_members
from chaincode.execution_record.store import find_initial
from chaincode.shim import Context, evaluate, submit
from protocol.agreement.parameters import InitialModel
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys
from protocol.ledger.task_rules import next_counters
from protocol.ledger.tasks import InitialRecord, InitialTreeRecord


class InitialModels(LedgerContract):
    """BindInitial and InitialModel."""

    @submit
    @allow(*STAFF, through=ORCHESTRATION)
    def bind_initial(
        self, ctx: Context, process: str, model: dict[str, Any], consortium: list[str]
    ) -> InitialRecord:
        """Fix the estimators of the model a process starts from; for orchestration's Start, not for clients.

        Every organisation of the consortium must have access to the model by then. What its owner revokes
        later does not touch the process.
        """
        wanted = InitialModel.from_dict(model)
        found = model_members(ctx, wanted.process, wanted.node)
        if found.digest != wanted.digest:
            raise StateError("MODEL_DIGEST", f"the model has digest {found.digest}, not {wanted.digest}")
        _check_open_to(ctx, wanted, consortium)
        record = InitialRecord(
            process=process,
            model=wanted,
            organisations=tuple(sorted(consortium)),
            next_counters=next_counters(found.estimators),
            by=provenance(ctx),
        )
        write(ctx, keys.initial(process), record)
        for member in found.estimators:
            write(ctx, keys.initialtree(process, member.id), InitialTreeRecord(member.digest))
        return record

    @evaluate
    def initial_model(self, ctx: Context, process: str) -> InitialRecord:
        """Return which model a process started from, and who had access to it at the start."""
        found = find_initial(ctx, process)
        if found is None:
            raise StateError("MODEL_UNKNOWN", f"{process} did not start from a model")
        return found


def _check_open_to(ctx: Context, model: InitialModel, consortium: list[str]) -> None:
    access = model_access(ctx, model.process, model.node)
    now = time_text(ctx.time)
    closed = [name for name in consortium if not access.allows(parse_organisation(name), now)]
    if closed:
        raise AccessError(
            "ACCESS_GRANT", f"no access to the model of {model.node} for {', '.join(sorted(closed)[:10])}"
        )
