"""`executor model catalogue|request|revoke|decide`: what is to be had on which terms, asking, voting."""

from pathlib import Path

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger
from executor.model.request_output import catalogue_text, request_text, requests_text
from executor.output import answer
from executor.process.names import msp_id
from executor.process.output import submitted
from executor.user_files import UserFileError, read_file
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.requests import RequestStatus

MAX_LICENCE_BYTES = 1 << 20

_scientist = caller_options("data-scientist")


@click.command()
@click.argument("process", default="")
@json_option
@_scientist
@reported
def catalogue(process: str, as_json: bool, caller: Caller) -> None:
    """List models, all or those of PROCESS: what they are for, their figures, and how to ask for one."""
    with caller.ledger() as ledger:
        items = list(ledger.models.catalogue(process))
    shown = {"models": [item.to_dict() for item in items]}
    answer(shown, lambda: catalogue_text(items), as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("node")
@click.option("--purpose", required=True, help="What for; it is kept on the ledger.")
@click.option(
    "--licence",
    type=click.Path(path_type=Path),
    help="The file with the licence text of the process, which your organisation accepts by asking.",
)
@click.option("--expires", default="", help="A time in UTC such as 2027-01-31T00:00:00Z. [default: never]")
@json_option
@_scientist
@reported
def request(
    *,
    process: str,
    node: str,
    purpose: str,
    licence: Path | None,
    expires: str,
    as_json: bool,
    caller: Caller,
) -> None:
    """Ask to read the model of NODE in PROCESS, which is completed, for your organisation.

    Who decides is in the process's specification: the model's owner, a majority, or all who take part.
    """
    with caller.ledger() as ledger:
        accepted = accepted_licence(ledger.orchestration.access_terms(process).licence, licence)
        done = ledger.models.request(process, node, purpose, accepted, expires)
    line = f"{process}/{node} is asked for: {request_text(done.answer)}"
    submitted(done, line, done.answer.to_dict(), as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("node")
@click.argument("organisation_id", metavar="ORGANISATION")
@click.option("--purpose", help="Why; asks those who decide, where the owner does not alone.")
@json_option
@_scientist
@reported
def revoke(
    *, process: str, node: str, organisation_id: str, purpose: str | None, as_json: bool, caller: Caller
) -> None:
    """Take ORGANISATION's access to the model of NODE away; what it has read it keeps.

    Its owner does so at once where it decides alone. Where a majority or all who take part decide, any of
    them asks the others with --purpose, and they vote (`executor model decide`).
    """
    name = msp_id(organisation_id)
    with caller.ledger() as ledger:
        if purpose is None:
            done = ledger.models.revoke(process, node, name)
            line = f"{name} may no longer read {process}/{node}"
            submitted(done, line, done.answer.to_dict(), as_json=as_json)
            return
        asked = ledger.models.request_revocation(process, node, name, purpose)
    line = f"{process}/{node} is to be closed to {name}: {request_text(asked.answer)}"
    submitted(asked, line, asked.answer.to_dict(), as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("node", default="")
@click.argument("organisation_id", metavar="[ORGANISATION]", default="")
@click.argument("number", type=click.IntRange(0), required=False)
@click.option("--yes/--no", "agrees", default=None, help="Vote for the request, or against it.")
@json_option
@_scientist
@reported
def decide(
    *,
    process: str,
    node: str,
    organisation_id: str,
    number: int | None,
    agrees: bool | None,
    as_json: bool,
    caller: Caller,
) -> None:
    """List the open requests about models of PROCESS, or of NODE alone; with --yes or --no vote on one.

    A vote names the request by NODE, ORGANISATION (org3 or Org3MSP) and NUMBER, as they are listed.
    """
    with caller.ledger() as ledger:
        if agrees is None:
            found = [each for each in ledger.models.requests(process, node) if each.open]
            shown = {"requests": [each.to_dict() for each in found]}
            answer(shown, lambda: requests_text(process, found), as_json=as_json)
            return
        if number is None:
            raise UsageError("REQUEST_UNNAMED", "a vote names a node, an organisation and a number")
        asked = _find(ledger, process, node, msp_id(organisation_id), number)
        done = ledger.models.decide(asked, agrees)
    line = f"{process}/{node} for {asked.request.organisation}: {request_text(done.answer)}"
    submitted(done, line, done.answer.to_dict(), as_json=as_json)


def accepted_licence(agreed: Digest | None, file: Path | None) -> Digest | None:
    """Return the digest of the licence that a request accepts, if the file is the text that was agreed on."""
    if agreed is None:
        if file is not None:
            raise UsageError("LICENCE_FILE", "the process has agreed on no licence", case="none")
        return None
    if file is None:
        raise UsageError("LICENCE_FILE", f"the process has agreed on the licence {agreed}", case="needed")
    try:
        found = Digest.of(read_file(file, MAX_LICENCE_BYTES))
    except UserFileError as error:
        raise UsageError("LICENCE_FILE", f"{file}: {error.cause}", case="file") from error
    if found != agreed:
        raise UsageError("LICENCE_FILE", f"{file} is {found}, and {agreed} was agreed on")
    return agreed


def _find(ledger: Ledger, process: str, node: str, organisation: str, number: int) -> RequestStatus:
    for each in ledger.models.requests(process, node):
        if (each.request.organisation, each.request.number) == (organisation, number):
            return each
    raise StateError("REQUEST_UNKNOWN", f"{organisation} has made no request {number} of {process}/{node}")
