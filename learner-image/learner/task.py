"""Which task this is: what the broker says, checked against what the task commits to on the ledger."""

from dataclasses import replace

from learner.broker import Broker
from learner.outcome import Exit, ends_with, need
from learning import options
from learning.parameters import Defaults, Parameters
from protocol import canonical
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.step_kind import RANGES, StepKind, check_options
from protocol.broker.answers import TaskAnswer
from protocol.broker.messages import Request, Verb
from protocol.defence import NOBODY
from protocol.digest import Digest
from protocol.signing import SigningKey, VerifyKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.statement import Action, sign_statement
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass


@dataclass(frozen=True)
class Task:
    """A task that is what it commits to."""

    id: TaskId
    neighbours: tuple[str, ...]
    opening: Opening
    parameters: Parameters
    """What the actions work with; a prepare step has none of its own."""
    agreed: TaskParameters
    """What the task commits to: its kind, its seed, its limits, what it starts from."""

    @property
    def seed(self) -> int:
        """The seed of the step."""
        return self.agreed.agreed.seed

    @property
    def limits(self) -> TreeLimits:
        """What trees the process allows."""
        return self.agreed.agreed.limits

    def sign(self, key: SigningKey, action: Action, payload: Digest) -> bytes:
        """Sign what this task did."""
        return sign_statement(key, statement(self.id, self.opening, action, payload))


def ask_task(broker: Broker, public_key: VerifyKey) -> Task:
    """Ask which task to run, and refuse one that its opening does not cover."""
    answer = broker.ask(Request(Verb.TASK))
    with ends_with(Exit.TASK):
        task = _read(TaskAnswer.of(answer))
    need(
        task.opening.public_key == public_key, Exit.KEY, "the key is not the one that the task is opened with"
    )
    return task


def _read(said: TaskAnswer) -> Task:
    record = TaskParameters.from_dict(said.parameters)
    digest = canonical.digest(said.parameters)
    need(
        digest == said.opening.parameter_hash,
        Exit.TASK,
        f"the parameters have digest {digest}, and the task commits to {said.opening.parameter_hash}",
    )
    agreed = record.agreed
    need(
        agreed.schema_digest == said.opening.schema_digest,
        Exit.TASK,
        "the feature schema of the parameters is not the one the task commits to",
    )
    need(
        said.task.node not in said.neighbours and (record.kind is StepKind.ITERATIVE or not said.neighbours),
        Exit.TASK,
        "a node is not its own neighbour, and only an iterative step has neighbours",
    )
    check_options(record.kind, agreed.options, agreed.limits.n_features)
    return Task(said.task, said.neighbours, said.opening, _parameters(record), record)


def _parameters(record: TaskParameters) -> Parameters:
    agreed = record.agreed
    if record.kind is StepKind.PREPARE:
        unknown = sorted(agreed.options.keys() - {RANGES})
        need(not unknown, Exit.TASK, f"a prepare step has the option ranges alone, not {unknown[:1]}")
        return Defaults
    parameters = replace(options.from_step(agreed), members=record.members or NOBODY)
    scaled = len(parameters.kernel.mu)
    need(
        scaled in (0, agreed.limits.n_features),
        Exit.TASK,
        f"mu and sigma are given for {scaled} of {agreed.limits.n_features} features",
    )
    return parameters
