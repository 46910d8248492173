"""One round of one node with one thing wrong: what the learner is told, and how it ends."""

import io
from dataclasses import dataclass, field, replace
from functools import cache

from learner.outcome import StopError
from learner.run import run_task
from learning import actions
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.options import from_step
from learning.rows import Rows
from protocol import canonical
from protocol.agreement import step
from protocol.agreement.process import Specification
from protocol.broker.answers import Offer, SlotsAnswer, TaskAnswer
from protocol.broker.messages import Answer, BrokerRefusal, Verb
from protocol.digest import Digest
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId
from protocol.task.state import StateRecord
from protocol.trees.share import Share
from support.memory.broker_double import serving
from support.memory.learners import PARAMETERS, table_of

SEED = bytes(range(32))
TASK, NEIGHBOUR = TaskId("fraud", "node01", 1), "node02"
SPECIFICATION = Specification.from_dict(
    {
        "version": 1,
        "process": "fraud",
        "organisations": ["Org1MSP"],
        "nodes": {"node01": "Org1MSP", NEIGHBOUR: "Org1MSP", "node03": "Org1MSP"},
        "topology": {"kind": "explicit", "edges": [["node01", NEIGHBOUR]]},
        "steps": [
            {
                "name": "train",
                "image": {"name": "learner", "version": "1"},
                "iterations": 9,
                "parameters": PARAMETERS,
            }
        ],
    }
)


def some(number):
    return Digest.of(b"%d" % number)


def rows_of(node):
    table = table_of(int(node[-2:]))
    return Rows.of(table.X, table.y)


@cache
def fitted(node, iteration):
    """What a node has after so many rounds alone."""
    agreed = from_step(step.StepParameters.from_dict(PARAMETERS))
    state = NodeState(node, 42)
    for _ in range(iteration):
        state = actions.get(actions.fit(state, rows_of(node), agreed), {}, agreed, rows_of(node))
    return state


@cache
def offered(node=NEIGHBOUR):
    return Share(fitted(node, 1).ensemble.estimators[:3])


def state_record(node="node01", iteration=1, **changes):
    state = fitted(node, iteration)
    record = StateRecord("fraud", node, iteration, 42, state.first, state.created, state.ensemble.estimators)
    return replace(record, **changes)


@dataclass
class Scene:
    """Everything the learner of node01 gets in iteration 1; a test changes one part."""

    key: bytes = SEED
    task: TaskId = TASK
    neighbours: tuple = (NEIGHBOUR,)
    parameters: dict = field(default_factory=lambda: SPECIFICATION.parameters("node01", 1).to_dict())
    opening: dict = field(default_factory=dict)
    rows: bytes | None = table_of(1).to_bytes()
    state: bytes | None = state_record().to_bytes()
    offers: tuple = (Offer(NEIGHBOUR, 1, offered().digest, offered().ids),)
    bundle: bytes = Share(Ensemble.of(offered().estimators).estimators).to_bytes()
    answers: dict = field(default_factory=dict)
    """Answers that stand in for the right ones, by verb: bytes, or something to call."""

    def commitment(self):
        """The opening that covers this scene, but for what the test changes in it."""
        record = {
            "version": 1,
            "public_key": str(SigningKey(SEED).verify_key),
            "image_id": str(some(1)),
            "manifest_digest": str(some(2)),
            "parameter_hash": str(canonical.digest(self.parameters)),
            "schema_digest": PARAMETERS["schema_digest"],
            "state": None if self.state is None else str(Digest.of(self.state)),
            "data": str(some(3)),
            "sandbox": str(some(4)),
        }
        return Opening.from_dict(record | self.opening)

    def answer(self, request):
        planned = self.answers.get(request.verb, None)
        if planned is not None:
            return planned() if callable(planned) else planned
        if request.verb is Verb.TASK:
            said = TaskAnswer(self.task, self.neighbours, self.parameters, self.commitment())
            return said.to_answer().to_bytes()
        if request.verb is Verb.SLOTS:
            return SlotsAnswer(self.offers, self.bundle).to_answer().to_bytes()
        return Answer(request.verb).to_bytes()

    def lay_out(self, folder):
        for name, raw in (("rows", self.rows), ("state", self.state)):
            (folder / name).unlink(missing_ok=True)
            if raw is not None:
                (folder / name).write_bytes(raw)

    def run(self, folder):
        """Run the round; return how it ended, in words too, and what was asked."""
        self.lay_out(folder)
        said, gone = [], []
        with serving(folder, self.answer) as broker:
            try:
                run_task(folder, io.BytesIO(self.key), said.append, lambda: gone.append(True))
            except StopError as stop:
                return stop.exit_code, stop.words, broker.asked
        return 0, said[-1], broker.asked


def refusing(code="TASK_EXPIRED"):
    return BrokerRefusal(code, "the task's time is over", "Launch the round again.").to_bytes()
