"""Reading processes: records, lists, status, history, and the contexts of the other chaincodes."""

from typing import Any

from chaincode.common import DEFAULT_PAGE, LedgerContract, call_json, history_page, page, read
from chaincode.common.calls import IMAGE
from chaincode.orchestration import views
from chaincode.orchestration.checks import owner_of
from chaincode.orchestration.process import Process, Progress
from chaincode.shim import Context, evaluate
from protocol.agreement.lifecycle import PROCESS
from protocol.errors import StateError
from protocol.ledger import keys


class Queries(LedgerContract):
    """What anyone on the channel may ask."""

    @evaluate
    def get(self, ctx: Context, process: str) -> dict[str, Any]:
        """Return the record of a process."""
        return Process.load(ctx, process).record

    @evaluate
    def list(
        self, ctx: Context, status: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List processes by id, all or those of one status: `items` in brief, `bookmark`."""
        if status:
            PROCESS.state(status)

        def show(record: dict[str, Any]) -> dict[str, Any] | None:
            return views.brief(record) if status in ("", record["status"]) else None

        return page(ctx, ("process",), size, bookmark, show)

    @evaluate
    def status(self, ctx: Context, process: str) -> dict[str, Any]:
        """Return where a process stands: status, acceptances, current iteration, and each node's progress."""
        found = Process.load(ctx, process)
        return views.status(found, Progress(ctx, process, found.plan))

    @evaluate
    def history(
        self, ctx: Context, process: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the changes of a process, newest first: `items` of tx, time and value, `bookmark`."""
        Process.load(ctx, process)
        return history_page(ctx, keys.process(process), size, bookmark)

    @evaluate
    def task_context(self, ctx: Context, process: str, node: str, iteration: int) -> dict[str, Any]:
        """Return all that a task of a node in an iteration is checked against; execution-record reads it."""
        found = Process.load(ctx, process)
        owner_of(found.plan.nodes, node, process)
        if not 0 <= iteration < found.specification.iterations:
            raise StateError("ITERATION_RANGE", f"{process} has no iteration {iteration}")
        image = call_json(ctx, IMAGE, "Get", *found.plan.image(iteration))
        return views.task_context(found, node, iteration, image, read(ctx, keys.progress(process, node)))

    @evaluate
    def model_context(self, ctx: Context, process: str) -> dict[str, Any]:
        """Return who takes part in a process and whether it has ended; the model chaincode reads it."""
        return views.model_context(Process.load(ctx, process))
