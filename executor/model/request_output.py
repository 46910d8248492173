"""The catalogue of models and requests to read them, as text for people."""

from dataclasses import asdict

from executor.output import plain, table
from executor.process.names import DECIDERS
from protocol.ledger.requests import AccessRequest, CatalogueEntry, RequestStatus
from protocol.task.output import MetricsOutput


def catalogue_text(items: list[CatalogueEntry]) -> str:
    """Say of each model what it is and how to ask for it."""
    return "\n\n".join("\n".join(_entry_lines(item)) for item in items) or "no models"


def requests_text(process: str, found: list[RequestStatus]) -> str:
    """Say in a table what is asked for, and who may vote."""
    rows = [
        (
            each.request.node,
            each.request.organisation,
            str(each.request.number),
            _wish(each.request),
            each.request.purpose,
            f"{len(each.agreed)} of {each.needed}, {len(each.refused)} against",
            ", ".join(each.missing),
        )
        for each in found
    ]
    columns = ("Node", "Organisation", "Number", "Asks", "Purpose", "Votes", "May vote")
    return table(f"Open requests about models of {process}", columns, rows, figures=False)


def _wish(asked: AccessRequest) -> str:
    """Say what a vote on a request is about: it covers how long, too."""
    if asked.revokes is not None:
        return f"that {asked.revokes} no longer reads"
    return f"to read {'without end' if asked.expires is None else f'until {asked.expires}'}"


def request_text(status: RequestStatus) -> str:
    """Say where a request stands."""
    decision = status.request.decision
    tally = f"{len(status.agreed)} of {status.needed} votes for it, {len(status.refused)} against"
    if decision is not None:
        return f"{'granted' if decision.granted else 'refused'}, {tally}"
    return f"request {status.request.number}, {tally}, waiting for {', '.join(status.missing)}"


def _measured(output: MetricsOutput) -> str:
    """Say what the node's last task signed of its model."""
    rows = "on rows that it held out, signed by its last task"
    if output.federation is None:
        return f"nothing: the rows held out are of one class; {rows}"
    figures = asdict(output.federation).items()
    return ", ".join([*(f"{name.replace('_', ' ')} {value:.3f}" for name, value in figures), rows])


def _doubt(item: CatalogueEntry) -> str:
    """Say what a measurement leaves open where the process began with a model."""
    return "" if item.measured is None else ": nothing says whether that one learned from the rows held out"


def _entry_lines(item: CatalogueEntry) -> list[str]:
    figures = ", ".join(f"{name} {plain(value)}" for name, value in sorted(item.metrics.items()))
    licence = "" if item.licence is None else " --licence FILE"
    lines = [f"{item.process}/{item.node} of {item.owner}, {item.size} estimators, {item.digest}"]
    lines += [f"  {plain(item.description)}"] if item.description else []
    lines += [f"  figures  {figures}, as its node says"] if figures else []
    lines += [f"  measured {_measured(item.measured)}"] if item.measured is not None else []
    if item.initial is not None:
        lines.append(f"  started  from {item.initial.process}/{item.initial.node}{_doubt(item)}")
    lines += [f"  licence  {item.licence}"] if item.licence is not None else []
    lines += [f"  lacks    {item.missing} trees that only its node has"] if item.missing else []
    ask = f"executor model request {item.process} {item.node} --purpose TEXT{licence}"
    return [*lines, f"  to ask   {ask}", f"  decided  by {DECIDERS[item.access]}"]
