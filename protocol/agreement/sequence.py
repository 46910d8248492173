"""Whether the steps of a process make sense one after the other."""

from collections.abc import Iterable, Sequence

from protocol.agreement.step import Step
from protocol.agreement.step_kind import HELD_OUT, StepKind, held_out_of
from protocol.errors import ProcessError


def check_sequence(steps: Sequence[Step], nodes: Iterable[str], *, starts_empty: bool) -> None:
    """Refuse steps that come to no model, need estimators too early, or judge by rows learned from."""
    if not any(step.kind.learns for step in steps):
        raise ProcessError("PROCESS_STEPS", "no step learns, and a process comes to models")
    for place, step in enumerate(steps):
        before = [earlier for earlier in steps[:place] if earlier.kind.learns]
        if starts_empty:
            _check_estimators(step, before, nodes)
        if step.kind is StepKind.EVALUATE:
            _check_held_out(step, before)


def _check_estimators(step: Step, before: Sequence[Step], nodes: Iterable[str]) -> None:
    """Refuse a step that uses estimators which a node of the specification cannot have by then."""
    if step.kind is StepKind.PREPARE:
        return
    for node in nodes:
        made = any(earlier.parameters_of(node).n_new for earlier in before)
        makes = step.kind.learns and step.parameters_of(node).n_new
        if not made and not makes:
            code = "PROCESS_VALUE" if step.kind.learns else "PROCESS_STEPS"
            raise ProcessError(code, f"{node} has no estimators by step {step.name}, which makes none")


def _check_held_out(step: Step, before: Sequence[Step]) -> None:
    """Refuse an evaluation on other rows than all steps before left out: the seed says which they are."""
    for earlier in before:
        if any(
            _held_out(earlier, node) != _held_out(step, node)
            for node in {*earlier.overrides, *step.overrides, ""}
        ):
            raise ProcessError(
                "PROCESS_STEPS", f"steps {earlier.name} and {step.name} hold out other parts of the rows"
            )
        if earlier.parameters.seed != step.parameters.seed:
            raise ProcessError(
                "PROCESS_STEPS", f"steps {earlier.name} and {step.name} hold out rows by other seeds"
            )


def _held_out(step: Step, node: str) -> float | None:
    """Return what a node holds out, without all else of its parameters: there may be many nodes and steps."""
    own = step.overrides.get(node, {}).get("options", {})
    return held_out_of(own if HELD_OUT in own else step.parameters.options)
