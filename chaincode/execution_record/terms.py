"""The terms of a task: what the process on the ledger says about it, asked of the orchestration chaincode."""

from dataclasses import dataclass
from typing import Any, Self

from chaincode.common.calls import ORCHESTRATION, call_json
from chaincode.shim import Context
from protocol.agreement.lifecycle import PROCESS, ImageState, ProcessState
from protocol.errors import StateError
from protocol.task.opening import Opening, TaskId
from protocol.trees.limits import TreeLimits


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for one node in one iteration."""

    status: ProcessState
    organisation: str
    active: bool
    next_iteration: int | None
    iterations: int
    synchronous: bool
    neighbours: tuple[str, ...]
    image: dict[str, Any]
    n_new: int
    n_max: int
    n_share: int
    limits: TreeLimits
    parameters_digest: str
    schema_digest: str
    task_seconds: int
    consortium: tuple[str, ...]
    initial_model: dict[str, Any] | None

    @classmethod
    def of(cls, ctx: Context, task: TaskId) -> Self:
        """Ask orchestration, which refuses an unknown process or node with its own code."""
        return cls.from_dict(
            call_json(ctx, ORCHESTRATION, "TaskContext", task.process, task.node, task.iteration)
        )

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Self:
        """Read orchestration's answer."""
        parameters = found["parameters"]
        return cls(
            status=PROCESS.state(found["status"]),
            organisation=found["organisation"],
            active=found["active"],
            next_iteration=found["next"],
            iterations=found["iterations"],
            synchronous=found["synchronous"],
            neighbours=tuple(found["neighbours"]),
            image=found["image"],
            n_new=parameters["n_new"],
            n_max=parameters["n_max"],
            n_share=parameters["n_share"],
            limits=TreeLimits(**found["limits"]),
            parameters_digest=found["parameters_digest"],
            schema_digest=found["schema_digest"],
            task_seconds=found["task_seconds"],
            consortium=tuple(found["consortium"]),
            initial_model=parameters.get("initial_model"),
        )

    def check_running(self, task: TaskId) -> None:
        """Return if the process runs and the node takes part in this iteration."""
        if self.status is not ProcessState.RUNNING:
            raise StateError("PROCESS_NOT_RUNNING", f"process {task.process} is {self.status}")
        if not self.active:
            raise StateError("NODE_INACTIVE", f"{task.node} takes no part in iteration {task.iteration}")

    def check_next(self, task: TaskId) -> None:
        """Return if the iteration is the one the node has to do next."""
        if task.iteration != self.next_iteration:
            following = "nothing" if self.next_iteration is None else f"iteration {self.next_iteration}"
            raise StateError(
                "ITERATION_ORDER",
                f"{task.node} does {following} of {self.iterations} next, not {task.iteration}",
            )

    def check_opening(self, opening: Opening) -> None:
        """Return if the task commits to the code, the parameters and the features the process fixes."""
        if self.image["status"] != ImageState.REGISTERED:
            raise StateError(
                "IMAGE_RETIRED", f"image {self.image['name']} {self.image['version']} is retired"
            )
        for what, expected, found, code in (
            ("image id", self.image["image_id"], opening.image_id, "IMAGE_MISMATCH"),
            ("manifest digest", self.image["manifest_digest"], opening.manifest_digest, "IMAGE_MISMATCH"),
            ("parameter hash", self.parameters_digest, opening.parameter_hash, "PARAMETERS_MISMATCH"),
            ("schema digest", self.schema_digest, opening.schema_digest, "SCHEMA_MISMATCH"),
        ):
            if str(found) != expected:
                raise StateError(code, f"{what} is {expected} on the ledger, not {found}")
