"""What a task of a step that does not learn says of its rows and its ensemble, and all that it says."""

from learner.task import Task
from learning import measurement
from learning.actions import NodeState
from learning.held_out import held_out
from learning.rows import Rows
from protocol.agreement.step_kind import StepKind, held_out_of, ranges_digest, ranges_of
from protocol.task.output import Output, SchemaOutput


def output_of(task: Task, rows: Rows, state: NodeState) -> Output:
    """Look at rows and ensemble as the kind of the step says."""
    agreed = task.agreed.agreed
    if task.agreed.kind is StepKind.PREPARE:
        ranges = ranges_of(agreed.options, agreed.limits.n_features)
        holding = measurement.columns_holding(rows, ranges)
        return SchemaOutput(agreed.schema_digest, ranges_digest(agreed.options), len(ranges), holding)
    part = held_out_of(agreed.options)
    held = None if part is None else held_out(rows, part, task.seed, task.id.node)
    return measurement.metrics(task.id.node, state.ensemble, task.parameters, held)
