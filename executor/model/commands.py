"""`executor model`: who has published what, what it is made of, who may read it, and using it."""

import json

import click

from executor.caller import Caller, caller_options
from executor.exits import json_option, reported
from executor.model.compare import compare
from executor.model.explain import explain
from executor.model.export import export
from executor.model.predict import predict
from executor.model.prove import prove
from executor.model.requests import catalogue, decide, request, revoke
from executor.model.verify_command import verify
from executor.output import answer, echo
from executor.process.names import msp_id
from executor.process.output import submitted

_scientist = caller_options("data-scientist")


@click.group()
def model() -> None:
    """Read published models, take them away, score rows with them, decide who may read them."""


for command in (catalogue, compare, decide, explain, export, predict, prove, request, revoke, verify):
    model.add_command(command)


@model.command(name="list")
@click.argument("process", default="")
@json_option
@_scientist
@reported
def list_(process: str, as_json: bool, caller: Caller) -> None:
    """List published models, all or those of PROCESS; that a model exists is no secret."""
    from executor.model.output import models_text  # noqa: PLC0415

    with caller.ledger() as ledger:
        items = list(ledger.models.list(process))
    shown = {"models": [item.to_dict() for item in items]}
    answer(shown, lambda: models_text(items), as_json=as_json)


@model.command()
@click.argument("process")
@click.argument("node")
@json_option
@_scientist
@reported
def show(process: str, node: str, as_json: bool, caller: Caller) -> None:
    """Show the model of NODE: its record, and what each origin contributed to it."""
    from executor.model import output  # noqa: PLC0415
    from executor.model.content import members_of, specification_of  # noqa: PLC0415

    with caller.ledger() as ledger:
        record = ledger.models.get(process, node)
        agreed = ledger.orchestration.get(process)
        organisations = ledger.orchestration.model_context(process).nodes
    members = members_of(record)
    cap = output.vote_cap(specification_of(agreed), record)
    parts = output.contributions(node, members, organisations, cap)
    if as_json:
        click.echo(json.dumps({**record.to_dict(), "contributions": [part.to_dict() for part in parts]}))
    else:
        echo(output.model_text(record, parts, cap))


@model.command()
@click.argument("process")
@click.argument("node")
@click.option("--history", is_flag=True, help="Every change of access, newest first.")
@json_option
@_scientist
@reported
def access(process: str, node: str, history: bool, as_json: bool, caller: Caller) -> None:
    """Show who may read the model of NODE, and until when."""
    from executor.model.output import access_text, history_text  # noqa: PLC0415

    with caller.ledger() as ledger:
        if history:
            changes = list(ledger.models.access_history(process, node))
            shown, text = {"changes": [change.to_dict() for change in changes]}, history_text(changes)
        else:
            record = ledger.models.access(process, node)
            shown, text = record.to_dict(), access_text(record)
    answer(shown, lambda: text, as_json=as_json)


@model.command()
@click.argument("process")
@click.argument("node")
@click.argument("organisation_id", metavar="ORGANISATION")
@click.option("--expires", default="", help="A time in UTC such as 2027-01-31T00:00:00Z. [default: never]")
@json_option
@_scientist
@reported
def grant(
    *, process: str, node: str, organisation_id: str, expires: str, as_json: bool, caller: Caller
) -> None:
    """Let ORGANISATION (org3 or Org3MSP) read the model of NODE, which is your organisation's."""
    name = msp_id(organisation_id)
    with caller.ledger() as ledger:
        done = ledger.models.grant(process, node, name, expires)
    until = f" until {expires}" if expires else ""
    submitted(done, f"{name} may read {process}/{node}{until}", done.answer.to_dict(), as_json=as_json)
