"""Whether to agree to what others ask for or to ask for it, and from which iteration on."""

from collections.abc import Mapping
from typing import Any

from executor.ledger.chaincodes.proxies import Ledger, Submitted
from protocol.agreement.course import ChangeKind
from protocol.errors import StateError
from protocol.ledger.changes import AskStatus
from protocol.ledger.processes import ProcessStatus

_TRIES = 32
"""For how many iterations after the present one a node asks to come back."""


def agreed(  # noqa: PLR0917
    ledger: Ledger,
    process: str,
    kind: ChangeKind,
    subject: Mapping[str, Any],
    iteration: int | None,
    own: str,
) -> Submitted[AskStatus] | None:
    """Agree to what another organisation asks for, if that is the same and can still hold; else None."""
    for ask in _same(ledger, process, kind, subject, iteration, own):
        try:
            return ledger.orchestration.agree(ask)
        except StateError as error:
            if error.code not in ("ITERATION_RANGE", "CHANGE_STALE"):
                raise
    return None


def _same(  # noqa: PLR0917
    ledger: Ledger,
    process: str,
    kind: ChangeKind,
    subject: Mapping[str, Any],
    iteration: int | None,
    own: str,
) -> list[AskStatus]:
    """Return what others ask for that is the same, to which ours has not agreed: what holds, then the rest.

    Where no iteration was given, what is asked for a later one than would be asked for now is not the same:
    one organisation could have the others' agreements count for the last iteration alone.
    """
    found = [
        ask
        for ask in ledger.orchestration.asks(process)
        if ask.kind is kind and subject.items() <= ask.subject.items() and own not in ask.agreed
    ]
    if iteration is not None:
        found = [ask for ask in found if ask.iteration == iteration]
    elif found and kind is not ChangeKind.COORDINATOR:
        status = ledger.orchestration.status(process)
        node = subject["node"] if kind is ChangeKind.JOIN else ""
        latest = max(_candidates(status, node, None)) if node else _soonest(status)
        found = [ask for ask in found if ask.holds or ask.iteration <= latest]
    return sorted(found, key=lambda ask: (not ask.holds, -len(ask.agreed), ask.iteration))


def rejoin(
    ledger: Ledger, process: str, node: str, organisation: str, iteration: int | None
) -> Submitted[AskStatus]:
    """Ask for a node from the given iteration on, or from the first one for which the ledger takes it."""
    *early, last = _candidates(ledger.orchestration.status(process), node, iteration)
    for first in early:
        try:
            return ledger.orchestration.join(process, node, organisation, first)
        except StateError as error:
            if error.code != "ITERATION_RANGE":
                raise
    return ledger.orchestration.join(process, node, organisation, last)


def _candidates(status: ProcessStatus, node: str, iteration: int | None) -> list[int]:
    """Return from when on a node may take part: one that was there before comes back as soon as it can.

    How soon depends on what its neighbours have begun; a refusal costs a question, and writes nothing.
    """
    nowhere = _nowhere(status)
    done = [entry.completed for entry in status.nodes if entry.node == node]
    if iteration is not None or status.iteration is None or not done:
        return [nowhere if iteration is None else iteration]
    first = max(status.iteration, *(number + 1 for number in done if number is not None), 0)
    last = max(first, min(nowhere, status.iterations - 1))
    return [*range(first, min(last, first + _TRIES) + 1)]


def first_of(ledger: Ledger, process: str, iteration: int | None) -> int:
    """Return the given iteration, or the first that has begun nowhere, or the present one if all have."""
    return _soonest(ledger.orchestration.status(process)) if iteration is None else iteration


def _soonest(status: ProcessStatus) -> int:
    first = _nowhere(status)
    return first if first < status.iterations or status.iteration is None else status.iteration


def _nowhere(status: ProcessStatus) -> int:
    begun = [number for entry in status.nodes for number in (entry.next, entry.completed)]
    return max((number for number in begun if number is not None), default=0) + 1
