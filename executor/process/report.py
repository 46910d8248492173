"""`executor process report`: what the nodes of a process have said of their rows and of their ensembles.

Each figure is the output of a task that does not learn, signed by its key and checked by the ledger; the gain
is that of a node's ensemble over its own trees in it, on rows that were held out of what the node's tasks of
this process learned from. Where it began with a model, nothing says whether that one learned from them.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import click

from executor.caller import Caller, caller_options
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger
from executor.output import answer, table
from protocol.agreement.parameters import InitialModel
from protocol.agreement.step import Step
from protocol.agreement.step_kind import StepKind
from protocol.ledger.tasks import ResultRecord
from protocol.task.output import Figures, MetricsOutput, SchemaOutput
from protocol.values import dataclass

METRICS = tuple(field.name for field in fields(Figures))
_TITLES = ("BAcc", "own", "gain", "Prec", "own", "gain", "Rec", "own", "gain")


@dataclass(frozen=True)
class StepReport:
    """A step that does not learn, and what its tasks have come to so far."""

    step: Step
    results: tuple[ResultRecord, ...]
    initial: InitialModel | None = None
    """The model that the process began with."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        outputs = [_shown(result) for result in self.results]
        shown = {"step": self.step.name, "kind": self.step.kind.value, "nodes": outputs}
        return shown if self.doubt is None else {**shown, "doubt": self.doubt}

    def text(self) -> str:
        """Return the step as a table."""
        title = f"{self.step.name} ({self.step.kind}), {len(self.results)} nodes"
        if self.step.kind is StepKind.PREPARE:
            columns: tuple[str, ...] = ("Node", "Columns", "within the ranges agreed on")
            return table(title, columns, [_columns(result) for result in self.results])
        shown = table(title, ("Node", *_TITLES), [_metrics(result) for result in self.results])
        return shown if self.doubt is None else f"{shown}\n{self.doubt}"

    @property
    def doubt(self) -> str | None:
        """What the figures of an evaluation leave open where the process began with a model; else None."""
        if self.initial is None or self.step.kind is not StepKind.EVALUATE:
            return None
        model = f"{self.initial.process}/{self.initial.node}"
        return (
            f"The process began with the model {model}: nothing says whether it learned from rows held out."
        )


def read(ledger: Ledger, process: str) -> Iterator[StepReport]:
    """Read the outputs of a process, step by step."""
    agreed = ledger.orchestration.get(process).specification
    for step, first in agreed.places():
        if not step.kind.learns:
            found = tuple(ledger.execution.artifacts(process, first))
            yield StepReport(step, found, agreed.initial_model)


@click.command()
@click.argument("process_id", metavar="PROCESS")
@json_option
@caller_options("data-scientist")
@reported
def report(process_id: str, as_json: bool, caller: Caller) -> None:
    """Show what the nodes of PROCESS found in the steps that do not learn.

    Of a prepare step, how many columns of each node keep to the ranges agreed on; of an evaluate step, each
    node's metrics on its held-out rows, beside those of its own trees alone, and the gain.
    """
    with caller.ledger() as ledger:
        found = list(read(ledger, process_id))
    shown = {"process": process_id, "steps": [part.to_dict() for part in found]}
    text = "\n\n".join(part.text() for part in found) or f"every step of {process_id} learns"
    answer(shown, lambda: text, as_json=as_json)


def gains(output: MetricsOutput) -> dict[str, float] | None:
    """Return by how much the ensemble does better than the node's own trees in it, metric by metric."""
    if output.federation is None or output.own is None:
        return None
    return {name: round(getattr(output.federation, name) - getattr(output.own, name), 3) for name in METRICS}


def _shown(result: ResultRecord) -> dict[str, Any]:
    shown = {"node": result.node, "organisation": result.organisation}
    output = result.output
    if output is None:
        return shown
    more = {"gain": gains(output)} if isinstance(output, MetricsOutput) else {}
    return {**shown, **output.to_dict(), **more}


def _columns(result: ResultRecord) -> tuple[str, ...]:
    output = result.output
    if not isinstance(output, SchemaOutput):
        return (result.node, "", "")
    return (result.node, str(output.columns), str(output.holding))


def _metrics(result: ResultRecord) -> tuple[str, ...]:
    output = result.output
    if not isinstance(output, MetricsOutput):
        return (result.node, *[""] * len(_TITLES))
    gain = gains(output)
    cells = []
    for name in METRICS:
        cells += [_figure(output.federation, name), _figure(output.own, name)]
        cells.append("" if gain is None else f"{gain[name]:+.3f}")
    return (result.node, *cells)


def _figure(figures: Figures | None, name: str) -> str:
    return "none" if figures is None else f"{getattr(figures, name):.3f}"
