"""Proposing a process by a federation file, and accepting one that was proposed."""

import json
from pathlib import Path

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger
from executor.process import acceptance
from executor.process.names import msp_id
from executor.process.output import brief, submitted
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import StateError

_scientist = caller_options("data-scientist")
_spec_type = click.Path(path_type=Path, exists=True, dir_okay=False)
_any_options = click.option(
    "--any-options", is_flag=True, help="The options are for an image of your own: pass them on as they are."
)
_image = click.option("--image", metavar="NAME:VERSION", help="Another image than the file's, in every step.")


@click.command()
@click.option("--spec", type=_spec_type, required=True, help="The federation file (docs/federation.md).")
@click.option("--process", "name", help="Another process id than the file's.")
@_image
@_any_options
@click.option("--dry-run", is_flag=True, help="Print the specification and its digest; propose nothing.")
@json_option
@caller_options("data-scientist", unless="dry_run")
@reported
def create(
    *,
    spec: Path,
    name: str | None,
    image: str | None,
    any_options: bool,
    dry_run: bool,  # noqa: ARG001 - nobody is asked then, so there is no caller
    as_json: bool,
    caller: Caller | None,
) -> None:
    """Propose the process that a federation file describes.

    The file is checked, every default is written out, images are pinned to the digests on the ledger, and the
    result is proposed. Proposing is not accepting: each organisation accepts by itself, yours too.

    \b
    executor process create --spec examples/federation.yaml --dry-run
    executor process create --spec examples/federation.yaml
    """
    specification = _specification(spec, name, image, any_options)
    if caller is None:
        _preview(specification, as_json=as_json)
        return
    with caller.ledger() as ledger:
        specification = _pinned(specification, ledger)
        digest = str(specification.digest)
        done = ledger.orchestration.create(specification.to_dict())
    _check_same(str(done.answer.specification_digest), digest)
    waiting = ", ".join(specification.organisations)
    line = f"{specification.process} is proposed as {digest}; to be accepted by {waiting}"
    submitted(done, line, brief(done.answer), as_json=as_json)


@click.command()
@click.argument("process_id", metavar="PROCESS")
@click.option("--digest", help="Accept only the specification with this digest.")
@click.option("--spec", type=_spec_type, help="Accept only what this federation file describes.")
@_image
@_any_options
@json_option
@_scientist
@reported
def accept(
    *,
    process_id: str,
    digest: str | None,
    spec: Path | None,
    image: str | None,
    any_options: bool,
    as_json: bool,
    caller: Caller,
) -> None:
    """Accept PROCESS for your organisation, after showing what that is.

    With --digest or --spec, only if it is what you have read or would have proposed yourself. Without, you
    are asked at a terminal; elsewhere nothing is accepted.
    """
    if digest is not None and spec is not None:
        raise UsageError("ACCEPT_TWICE", "both --digest and --spec are given")
    wanted = None if digest is None else Digest.parse(digest)
    own = None if spec is None else _specification(spec, process_id, image, any_options)
    with caller.ledger() as ledger:
        if own is not None:
            wanted = _pinned(own, ledger).digest
        found = ledger.orchestration.get(process_id)
        retired = acceptance.retirements(found.specification, ledger.images.get)
        wanted = acceptance.check(found, wanted, retired, own=msp_id(caller.organisation), as_json=as_json)
        done = ledger.orchestration.accept(process_id, wanted)
    missing = list(done.answer.missing)
    waiting = f"waiting for {', '.join(missing)}" if missing else "all organisations have, it can start"
    line = f"{process_id} is accepted as {wanted}; {waiting}"
    shown = {**brief(done.answer), "missing": missing, "retired": retired}
    submitted(done, line, shown, as_json=as_json)


COMMANDS: tuple[click.Command, ...] = (create, accept)


def _preview(specification: Specification, *, as_json: bool) -> None:
    digest = str(specification.digest)
    if as_json:
        shown = {
            "specification": specification.to_dict(),
            "specification_digest": digest,
            "pinned": specification.is_pinned,
        }
        click.echo(json.dumps(shown))
        return
    click.echo(f"{specification.to_bytes().decode()}\n{digest}")
    if not specification.is_pinned:
        click.echo("a draft: proposing it pins its images, which gives another digest")


def _pinned(specification: Specification, ledger: Ledger) -> Specification:
    """Return the specification with its images as the ledger has them; version 1 cannot say them."""
    if specification.version == 1:
        return specification
    return specification.pinned(lambda name, version: ledger.images.get(name, version).image.pin)


def _specification(spec: Path, name: str | None, image: str | None, any_options: bool) -> Specification:
    from executor.process.federation import load  # noqa: PLC0415 - checks options with learning/, so slow

    return load(spec, process=name, image=image, any_options=any_options).specification


def _check_same(found: str, expected: str) -> None:
    if found != expected:
        raise StateError("PROCESS_DIGEST", f"the ledger has {found} where {expected} was proposed")
