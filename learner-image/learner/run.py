"""One task, from the key to the signed result."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from learner.broker import Broker
from learner.inputs import read_rows, read_state
from learner.key import KeySource, read_key
from learner.outcome import Exit, ends_with
from learner.slots import Slots, ask_slots
from learner.task import Task, ask_task
from learning import actions
from learning.actions import NodeState
from learning.held_out import learned_from
from learning.rows import Rows
from protocol.broker.messages import Request, Verb
from protocol.signing import SigningKey
from protocol.task.result import TaskResult
from protocol.task.state import StateRecord
from protocol.task.statement import Action
from protocol.trees.share import Share

Say = Callable[[str], None]


def run_task(directory: Path, key_source: KeySource, say: Say, gone: Callable[[], None]) -> None:
    """Run the task that the broker in this directory has for us.

    1. Read the task's key.
    2. Ask for the task; it is what its opening commits to.
    3. Read rows and state; they are what the task commits to.
    4. FIT, on the rows that are not held out.
    5. SHARE, signed, if there are neighbours.
    6. GET what the neighbours' slots hold, and CROP.
    7. Send the signed result, and the state it leaves.

    In a step that does not learn, 4 to 6 are one look at rows and ensemble, and the result has its output.

    `gone` is called when the broker hangs up while the learner computes.
    """
    key = read_key(key_source)
    with Broker.connect(directory / "broker.sock") as broker:
        broker.watch(gone)
        task = ask_task(broker, key.verify_key)
        say(f"task {task.id}, {len(task.neighbours)} neighbours")
        rows = read_rows(directory / "rows", task)
        before = read_state(directory / "state", task)
        # Inputs are sound by now: what the actions still refuse, the parameters ask for.
        with ends_with(Exit.TASK):
            if task.agreed.kind.learns:
                came_out = _learn(broker, task, key, rows, before, say)
            else:
                came_out = _look(task, rows, before, say)
            _complete(broker, task, key, came_out)
    say("complete")


def _learn(  # noqa: PLR0917
    broker: Broker, task: Task, key: SigningKey, rows: Rows, before: NodeState, say: Say
) -> tuple[TaskResult, bytes]:
    rows = learned_from(rows, task.parameters.held_out, task.seed, task.id.node)
    fitted = actions.fit(before, rows, task.parameters)
    say(f"FIT: {len(fitted.created) - len(before.created)} estimators from {before.counter}")
    slots, share_bytes = Slots(), 0
    if task.neighbours:
        share = Share(actions.share(fitted, task.parameters, rows))
        share_bytes = _share(broker, task, key, share)
        say(f"SHARE: {len(share.estimators)} estimators, {share_bytes} bytes")
        slots = ask_slots(broker, task)
    after = actions.get(fitted, slots.by_sender(), task.parameters, rows)
    say(f"GET: {len(slots.offers)} slots, {len(after.refusals)} refused; {len(after.ensemble)} kept")
    return _result(task, before, after, slots, share_bytes)


def _look(task: Task, rows: Rows, before: NodeState, say: Say) -> tuple[TaskResult, bytes]:
    from learner.output import output_of  # noqa: PLC0415 - a task that learns has none

    output = output_of(task, rows, before)
    say(f"{task.agreed.kind}: an output of type {output.type}")
    result, state = _result(task, before, replace(before, iteration=before.iteration + 1), Slots(), 0)
    return replace(result, output=output), state


def _share(broker: Broker, task: Task, key: SigningKey, share: Share) -> int:
    raw = share.to_bytes()
    broker.ask(Request(Verb.SHARE, task.sign(key, Action.SHARE, share.digest), (raw,)))
    return len(raw)


def _result(
    task: Task, before: NodeState, after: NodeState, slots: Slots, share_bytes: int
) -> tuple[TaskResult, bytes]:
    state = StateRecord(
        task.id.process,
        task.id.node,
        after.iteration,
        task.seed,
        after.first,
        after.created,
        after.ensemble.estimators,
    )
    raw = state.to_bytes()
    read = slots.read(after.refusals)
    # Counts and sizes: a figure that depends on the labels would tell the others about them.
    metrics = {
        "creators": len(after.ensemble.origins()),
        "ensemble": len(after.ensemble),
        "own": after.ensemble.origins().get(task.id.node, 0),
        "offered": sum(len(offer.ids) for offer, _ in slots.offers),
        "refused": sum(len(slot.refused) for slot in read),
        "share_bytes": share_bytes,
        "state_bytes": len(raw),
    }
    result = TaskResult(
        before.counter,
        after.created[len(before.created) :],
        read,
        after.ensemble.ids,
        state.ensemble_digest,
        state.digest,
        {**metrics},
    )
    return result, raw


def _complete(broker: Broker, task: Task, key: SigningKey, came_out: tuple[TaskResult, bytes]) -> None:
    result, state = came_out
    signature = task.sign(key, Action.COMPLETE, result.digest)
    broker.ask(Request(Verb.COMPLETE, signature, (result.to_bytes(), state)))
