"""Whose consent a change of a running process needs, and how many votes a decision takes.

What concerns one organisation alone (its node leaves, or comes back) holds at once. A topology or a new node
needs everybody who takes part, because it decides whom they listen to. Another image version, or a node that
comes back after it was left out, needs more than half: one member shall not keep the others on a version with
a fault. So does another coordinator, who has to agree as well; each step is opened by the coordinator alone.
"""

from collections.abc import Container

from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import AbortRule, ModelAccess, Specification
from protocol.agreement.progress import Progress
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Consent:
    """Whose agreement counts for a change, how many it takes, and who must agree whether it counts or not."""

    counted: tuple[str, ...]
    quorum: int
    required: tuple[str, ...] = ()

    @property
    def members(self) -> tuple[str, ...]:
        """All who may agree."""
        return tuple(sorted({*self.counted, *self.required}))

    @property
    def needed(self) -> int:
        """How many agreements it takes."""
        return self.quorum + sum(name not in self.counted for name in self.required)

    def is_given(self, agreed: Container[str]) -> bool:
        """Whether the agreements of these organisations are enough."""
        counted = sum(name in agreed for name in self.counted)
        return counted >= self.quorum and all(name in agreed for name in self.required)

    def is_out_of_reach(self, refused: Container[str]) -> bool:
        """Whether too many have refused for the others to be enough."""
        left = sum(name not in refused for name in self.counted)
        return left < self.quorum or any(name in refused for name in self.required)

    def missing(self, agreed: Container[str]) -> tuple[str, ...]:
        """Return those who may still agree."""
        return tuple(name for name in self.members if name not in agreed)


def consent_to(change: Change, progress: Progress) -> Consent:
    """Return whose consent a change needs."""
    present, subject = progress.present(), change.subject
    match change.kind:
        case ChangeKind.LEAVE:
            found = Consent((progress.plan.nodes[subject["node"]],), 1)
        case ChangeKind.IMAGE | ChangeKind.LEAVE_OUT:
            found = Consent(present, majority_of(present))
        case ChangeKind.TOPOLOGY:
            found = Consent(present, len(present))
        case ChangeKind.COORDINATOR:
            found = Consent(present, majority_of(present), (subject["coordinator"],))
        case ChangeKind.OPEN_STEP:
            coordinator = progress.plan.coordinator
            found = Consent(() if coordinator is None else (coordinator,), 1)
        case ChangeKind.JOIN:
            found = _consent_to_join(subject["node"], (subject["organisation"],), progress)
    return found


def _consent_to_join(node: str, owner: tuple[str], progress: Progress) -> Consent:
    present = progress.present()
    if node not in progress.plan.nodes:
        return Consent(present, len(present), owner)
    if progress.may_return(node):
        return Consent(owner, 1)
    return Consent(present, majority_of(present), owner)


def consent_to_access(rule: ModelAccess, owner: str, entitled: tuple[str, ...], organisation: str) -> Consent:
    """Return whose consent it takes that an organisation may read a model, or no longer may.

    The organisation has no say in it, also as a member. Where nobody else is left, the owner decides.
    """
    others = tuple(name for name in entitled if name != organisation)
    if rule is ModelAccess.OWNER or not others:
        return Consent((owner,), 1)
    return Consent(others, len(others) if rule is ModelAccess.ALL else majority_of(others))


def majority_of(members: tuple[str, ...]) -> int:
    """Return how many are more than half."""
    return len(members) // 2 + 1


def needed_to_abort(specification: Specification, status: ProcessState, progress: Progress) -> int:
    """Return how many votes give a process up: one for a proposal, or where the specification says so."""
    alone = status is not ProcessState.RUNNING or specification.abort is AbortRule.ANY
    return 1 if alone else majority_of(progress.present())
