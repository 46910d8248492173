"""Whether a model is what a task signed: checked with the task's own key, on no peer's word."""

from executor.model.errors import altered
from protocol.digest import Digest
from protocol.errors import DataError, SignatureError
from protocol.ledger.models import ModelRecord
from protocol.ledger.tasks import ResultRecord, Standing, TaskEvidence
from protocol.task.opening import TaskId, statement
from protocol.task.statement import Action, verify_statement


def check_signed(record: ModelRecord, task: TaskEvidence, standing: Standing, parameters: Digest) -> None:
    """Return if the model's last task signed its ensemble under these parameters; each step is a line.

    1. the task is the one that the model names, its organisation the owner, and it came to a result
    2. the result, put together again from where it left the node, has the digest that was signed and that
       the model names
    3. the result has the model's ensemble
    4. the task committed to the parameters of the process
    5. its key signed all of that
    """
    outcome, opening = task.outcome, task.opening
    asked = TaskId(record.process, record.node, record.iteration)
    if task.id != asked or outcome is None or opening is None:
        raise altered(f"task {asked}, whose ensemble it is, has no result")
    if task.organisation != record.owner:
        raise altered(f"its owner is {record.owner}, and task {asked} is of {task.organisation}")
    payload = outcome.signed.payload_digest
    if {_digest_of(outcome, standing), payload} != {record.result}:
        raise altered(f"the result of task {asked} is not the one that the model names")
    if outcome.ensemble_digest != record.digest:
        raise altered(f"task {asked} signed the ensemble {outcome.ensemble_digest}, not {record.digest}")
    if opening.parameter_hash != parameters:
        raise altered(f"task {asked} ran with other parameters than the process agreed on")
    said = statement(asked, opening, Action.COMPLETE, payload)
    try:
        verify_statement(opening.public_key, said, bytes.fromhex(outcome.signed.signature))
    except (SignatureError, ValueError) as error:
        raise altered(f"the key of task {asked} did not sign its result") from error


def _digest_of(outcome: ResultRecord, standing: Standing) -> Digest:
    """Put a result together again from its record; its digest is what was signed."""
    following = standing.next_counter
    if (standing.process, standing.node) != (outcome.process, outcome.node) or following is None:
        raise altered(f"the ledger does not say where {outcome.node} stands")
    if standing.iteration != outcome.iteration:
        raise altered(f"iteration {outcome.iteration} is not the last that {outcome.node} completed")
    try:
        return outcome.rebuilt(following - len(outcome.created)).digest
    except DataError as error:
        raise altered(f"the result of its task is none: {error.cause}") from error
