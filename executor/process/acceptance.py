"""What an organisation accepts: shown before it does, and accepted by its digest alone."""

import sys
from collections.abc import Callable, Sequence

import click

from executor.errors import UsageError
from executor.output import echo, plain
from executor.process.terms import summary
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.images import ImageRecord
from protocol.ledger.processes import ProcessRecord


def check(
    record: ProcessRecord,
    wanted: Digest | None,
    retired: Sequence[str] = (),
    *,
    own: str | None = None,
    as_json: bool,
) -> Digest:
    """Show a specification, and return its digest if it is the wanted one or a person says yes.

    `own` is the organisation that accepts, whose nodes are shown in any case. `retired` is what
    `retirements` found: it stops nobody, so whoever accepts has to know.
    """
    digest = record.specification.digest
    if digest != record.specification_digest:
        raise StateError("PROCESS_DIGEST", f"the ledger names {record.specification_digest}, not {digest}")
    if not as_json:
        echo("\n".join([*summary(record.specification, own), *retired]), err=True)
    if wanted is not None:
        # The ledger compares again; here it is refused before anything is sent.
        if wanted != digest:
            raise StateError("PROCESS_DIGEST", f"the specification of {record.process} has digest {digest}")
        return digest
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("ACCEPT_UNSEEN", f"nobody has said that {digest} is what shall be accepted")
    if not click.confirm(f"Accept {digest} for your organisation?", err=True):
        raise UsageError("ACCEPT_DECLINED", f"{record.process} was not accepted")
    return digest


def retirements(specification: Specification, image_of: Callable[[str, str], ImageRecord]) -> list[str]:
    """Say which image versions of a specification were retired, by whom and why.

    The pins bind all the same: whoever registered an image may be no member. It is for the members to refuse.
    """
    versions = sorted({(step.image_name, step.image_version) for step in specification.steps})
    found = [(f"{name}:{version}", image_of(name, version).retired) for name, version in versions]
    return [
        f"retired        {image} by {by.organisation} at {by.time}: {plain(by.reason) or 'no reason given'}"
        for image, by in found
        if by is not None
    ]
