"""What a process has to keep to when it is proposed, besides what `Specification.check` asks of every one.

Processes that were proposed before there were these rules keep running, and can be read, without them.
"""

from protocol.agreement.process import Specification
from protocol.agreement.step import Step, StepParameters
from protocol.agreement.step_kind import StepKind
from protocol.errors import ProcessError

VOTING = ("threshold", "vote", "vote_cap")
"""The options that say how trees become a decision. An image whose trees vote otherwise has others."""

NEW_NODE = ""
"""Stands for every node that no override is for, those included that join later."""


def check_proposal(specification: Specification) -> None:
    """Refuse steps that judge or read the trees of those before by other terms than they were made by."""
    learned: list[Step] = []
    for step in specification.steps:
        for earlier in learned:
            check_trees(step, earlier.parameters, f"step {earlier.name}")
        if step.kind is StepKind.EVALUATE and learned:
            _check_vote(step, learned[-1])
        if step.kind.learns:
            learned.append(step)


def _check_vote(step: Step, learned: Step) -> None:
    """Refuse an evaluation by another vote than that of the model: its figures would be of none there is."""
    for node in sorted({NEW_NODE, *step.overrides, *learned.overrides}):
        measured, voting = (each.parameters_of(node).options for each in (step, learned))
        for name in VOTING:
            if measured.get(name) != voting.get(name):
                raise ProcessError(
                    "PROCESS_STEPS",
                    f"{step.name} measures {node or 'nodes'} with {name} {measured.get(name)}, and models of"
                    f" {learned.name} vote with {voting.get(name)}",
                )


def check_trees(step: Step, made: StepParameters, where: str) -> None:
    """Refuse a step that cannot read the trees which a node has by then, or reads them by other columns.

    Each task begins with the node's ensemble, also where it neither learns nor evaluates.
    """
    own = step.parameters
    if (own.schema_digest, own.limits.n_features) != (made.schema_digest, made.limits.n_features):
        raise ProcessError("PROCESS_STEPS", f"{step.name} has other features than {where}")
    for name in ("max_internal", "max_depth"):
        allowed, needed = getattr(own.limits, name), getattr(made.limits, name)
        if allowed < needed:
            raise ProcessError(
                "PROCESS_STEPS",
                f"{step.name} reads trees of {name} {allowed}, and {where} has some of {needed}",
            )
