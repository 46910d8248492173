"""`executor image`: build, publish, list, show, retire, attest, verify."""

import json
import sys
from collections.abc import Sequence
from contextlib import closing

import click

from executor.caller import Caller, caller_options
from executor.engine import engine
from executor.errors import IntegrityError
from executor.exits import OK, exit_code, json_option, message, reported, to_dict
from executor.image.build import NAME, build
from executor.image.context import CHAINCODE, LEARNER
from executor.image.publish import ImagePublication, adopt, find_local, publish, served_here
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry
from executor.image.verify import Verification, verify
from executor.output import Progress, answer, echo, plain, table
from executor.process.output import submitted
from protocol.digest import Digest
from protocol.ledger.images import ImageRecord

_as_scientist = caller_options("data-scientist")
OTHER_BASE = "the base has other packages than are locked, so the image id is another than elsewhere"


@click.group()
def image() -> None:
    """Build, publish and check the images that learners run in."""


@image.command("build")
@click.option("--tag", default="", help=f"The local tag to give it. [default: {NAME}:latest]")
@click.option("--force", is_flag=True, help="Build even if the image of these sources is there.")
@click.option("--chaincode", is_flag=True, help="Build the image of the chaincode service instead.")
@click.option("--base", default="", help="The Python image to start from. [default: the network's]")
@click.option("--locked-base", is_flag=True, help="Refuse a base that has other packages than are locked.")
@json_option
@reported
def build_command(
    *, tag: str, force: bool, chaincode: bool, base: str, locked_base: bool, as_json: bool
) -> None:
    """Build the learner image; equal sources give an equal image id."""
    recipe = CHAINCODE if chaincode else LEARNER
    with closing(engine()) as client, Progress() as progress:
        made = build(
            client,
            progress.say,
            tag=tag or f"{recipe.name}:latest",
            force=force,
            recipe=recipe,
            base=base,
            any_base=not locked_base,
        )
    if made.changed:
        files = ", ".join(made.changed[:5])
        echo(f"note: built from sources that no commit has: {files}", err=True)
    if not made.base:
        echo(f"note: {OTHER_BASE}", err=True)
    if as_json:
        click.echo(json.dumps(made.to_dict()))
        return
    state = "built" if made.built else "there already"
    echo(f"{made.image_id}\n{made.tag}, {made.size / 1e6:.0f} MB, {state}")


@image.command("publish")
@click.argument("reference", metavar="NAME[:VERSION]")
@click.option(
    "--image", "local", default="", help="The local image. [default: the one tagged NAME[:VERSION]]"
)
@click.option("--pushed", metavar="DIGEST", help="Register what the registry has already under this digest.")
@click.option("--description", default="", help="A sentence for the ledger.")
@_as_scientist
@json_option
@reported
def publish_command(
    *, reference: str, local: str, pushed: str | None, description: str, caller: Caller, as_json: bool
) -> None:
    """Push an image to the network's registry and register both its digests on the ledger.

    Without VERSION, it is named after the package's version and the image's id.
    """
    wanted = Reference.parse(reference)
    registry = ImageRegistry.of_network(caller.network)
    with closing(engine()) as client, caller.ledger() as ledger, Progress() as progress:
        if pushed:
            served = served_here(client, registry, wanted.name, Digest.parse(pushed))
            made = ImagePublication.of(wanted, served.image_id, registry, description)
            done = adopt(ledger.images, made, served, progress.say)
        else:
            found = find_local(client, wanted, local)
            made = ImagePublication.of(wanted, found.image_id, registry, description)
            done = publish(client, ledger.images, made, found, progress.say)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
        return
    echo(f"{made.name}:{made.version} {'registered' if done.transaction else 'was registered already'}")
    _print_image(done.record)


@image.command("list")
@click.option("--of", "member", default="", help="Only what this organisation (MSP id) registered.")
@_as_scientist
@json_option
@reported
def list_command(member: str, caller: Caller, as_json: bool) -> None:
    """List the versions on the ledger."""
    with caller.ledger() as ledger:
        records = list(ledger.images.list(member))
    shown = {"images": [record.to_dict() for record in records]}
    answer(shown, lambda: _images_text(records), as_json=as_json)


@image.command("show")
@click.argument("reference", metavar="NAME:VERSION")
@_as_scientist
@json_option
@reported
def show_command(reference: str, caller: Caller, as_json: bool) -> None:
    """Show a version on the ledger, with its history."""
    name, version = Reference.versioned(reference)
    with caller.ledger() as ledger:
        record = ledger.images.get(name, version)
        history = list(ledger.images.history(name, version))
        rebuilds = list(ledger.images.list_rebuilds(name, version))
    if as_json:
        shown = {**record.to_dict(), "history": [change.to_dict() for change in history]}
        shown["rebuilds"] = [found.to_dict() for found in rebuilds]
        click.echo(json.dumps(shown))
        return
    echo(f"{name}:{version}")
    _print_image(record)
    for found in rebuilds:
        told = "the same id" if found.same else f"another id, {found.image_id}"
        echo(f"  {'rebuilt':<12} {found.organisation} got {told} from source")


@image.command("retire")
@click.argument("reference", metavar="NAME:VERSION")
@click.option("--reason", default="", help="Why, for the ledger.")
@_as_scientist
@json_option
@reported
def retire_command(reference: str, reason: str, caller: Caller, as_json: bool) -> None:
    """Retire a version of your organisation: no new task starts with it."""
    name, version = Reference.versioned(reference)
    with caller.ledger() as ledger:
        record = ledger.images.retire(name, version, reason).answer
    if as_json:
        click.echo(json.dumps(record.to_dict()))
        return
    transaction = "" if record.retired is None else record.retired.tx
    echo(f"{name}:{version} retired, transaction {transaction}")


@image.command("attest")
@click.argument("reference", metavar="NAME:VERSION")
@click.option("--force", is_flag=True, help="Build even if the image of these sources is there.")
@click.option("--any-base", is_flag=True, help="Also if the base has other packages than are locked.")
@_as_scientist
@json_option
@reported
def attest_command(*, reference: str, force: bool, any_base: bool, caller: Caller, as_json: bool) -> None:
    """Build a version from these sources, and say on the ledger whether its id came out, or another.

    From a base that is not the locked one another id is no news, so nothing is said without --any-base.
    Exits with 10 if another came out, after that is on the ledger.
    """
    name, version = Reference.versioned(reference)
    with caller.ledger() as ledger, closing(engine()) as client, Progress() as progress:
        registered = ledger.images.get(name, version).image
        made = build(client, progress.say, tag=f"{NAME}:rebuilt", force=force, any_base=any_base)
        mine = caller.network.msp_id(caller.organisation)
        said = [found for found in ledger.images.list_rebuilds(name, version) if found.organisation == mine]
        known = bool(said) and said[0].image_id == made.image_id
        done = None if known else ledger.images.attest(name, version, made.image_id)
    found = said[0] if done is None else done.answer
    told = f"{name}:{version} is {'the same' if found.same else 'another image'} built from source here"
    if not made.base:
        echo(f"note: {OTHER_BASE}", err=True)
    shown = {**found.to_dict(), "uncommitted": list(made.changed), "base": made.base or None}
    if done is None:
        answer(shown, lambda: f"{told}, as {mine} has said before", as_json=as_json)
    else:
        submitted(done, told, shown, as_json=as_json)
    if not found.same:
        problem = IntegrityError(
            "IMAGE_MISMATCH", f"these sources give {made.image_id}, the ledger has {registered.image_id}"
        )
        echo(message(problem), err=True)
        sys.exit(exit_code(problem))


@image.command("verify")
@click.argument("reference", metavar="NAME:VERSION")
@click.option("--deep", is_flag=True, help="Also hash the files that the engine keeps.")
@_as_scientist
@json_option
@reported
def verify_command(reference: str, deep: bool, caller: Caller, as_json: bool) -> None:
    """Compare the copies in engine and registry with the ledger; exit 10 if one is another image."""
    name, version = Reference.versioned(reference)
    with caller.ledger() as ledger:
        record = ledger.images.get(name, version)
    with closing(engine()) as client:
        registry = ImageRegistry.of_repository(record.image.repository, caller.network)
        made = verify(client, record, registry, deep)
    problem = made.problem()
    if as_json:
        error = {"error": to_dict(problem)} if problem else {}
        click.echo(json.dumps(made.to_dict() | error))
        sys.exit(exit_code(problem) if problem else OK)
    _print_findings(made)
    if problem:
        raise problem


def _images_text(records: Sequence[ImageRecord]) -> str:
    rows = []
    for record in records:
        found, by = record.image, record.registered
        name = f"{found.name}:{found.version}"
        rows.append((name, str(found.image_id)[:19], record.status.value, by.organisation, by.time))
    columns = ("Image", "Id", "Status", "By", "Since")
    return table("Images", columns, rows, figures=False) if rows else "no image"


def _print_image(record: ImageRecord) -> None:
    found, registered, retired = record.image, record.registered, record.retired
    rows = {
        "image id": found.image_id,
        "manifest": found.by_digest,
        "description": found.description,
        "status": record.status.value,
        "registered": f"{registered.organisation} {registered.identity} {registered.time}",
        "transaction": registered.tx,
        "retired": f"{retired.organisation} {retired.time} {retired.reason}" if retired else "",
    }
    for name, value in rows.items():
        if value:
            echo(f"  {name:<12} {plain(value)}")


def _print_findings(made: Verification) -> None:
    marks = {True: "✓", False: "✗", None: "·"}
    echo(f"{made.registered.name}:{made.registered.version} is {made.registered.image_id} on the ledger")
    for finding in made.findings:
        echo(f"  {marks[finding.equal]} {finding.where}: {plain(finding.found)}")
    if made.index_digest is not None:
        echo(f"  index {made.index_digest}, this platform's manifest {made.platform_digest}")
