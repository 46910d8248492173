"""What an organisation accepts: shown before it does, and accepted by its digest alone."""

import sys
from collections.abc import Callable, Iterator, Sequence

import click

from executor.errors import UsageError
from executor.output import echo, plain
from executor.process.names import DECIDERS
from protocol.agreement.process import Specification
from protocol.agreement.step import Step
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.images import ImageRecord
from protocol.ledger.processes import ProcessRecord

NODES_SHOWN = 10


def check(
    record: ProcessRecord, wanted: Digest | None, retired: Sequence[str] = (), *, as_json: bool
) -> Digest:
    """Show a specification, and return its digest if it is the wanted one or a person says yes.

    `retired` is what `retirements` found: it stops nobody, so whoever accepts has to know.
    """
    digest = record.specification.digest
    if digest != record.specification_digest:
        raise StateError("PROCESS_DIGEST", f"the ledger names {record.specification_digest}, not {digest}")
    if not as_json:
        echo("\n".join([*summary(record.specification), *retired]), err=True)
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


def summary(specification: Specification) -> Iterator[str]:
    """Say in lines what a specification asks of those who accept it."""
    nodes = [f"{node} of {owner}" for node, owner in specification.nodes.items()]
    more = len(nodes) - NODES_SHOWN
    changes = specification.topology.changes
    yield f"process        {specification.process} (format {specification.version})"
    if specification.description:
        yield f"description    {plain(specification.description)}"
    yield f"organisations  {', '.join(specification.organisations)}"
    yield f"nodes          {', '.join(nodes[:NODES_SHOWN])}{f' and {more} more' if more > 0 else ''}"
    later = f", changed {len(changes)} times" if changes else ""
    yield f"topology       {specification.topology.first.kind}{later}"
    for step in specification.steps:
        yield from _step(step)
    if specification.coordinator is not None:
        yield f"coordinator    {specification.coordinator} opens each step; a majority can name another"
    if specification.initial_model is not None:
        model = specification.initial_model
        yield f"starts from    the model of {model.node} in {model.process}, {model.digest}"
    yield f"rules          a task may take {specification.task_seconds} s; left out by majority after"
    yield f"               {specification.silence_seconds} s of silence; aborted by {specification.abort};"
    yield f"               {specification.change_quota} changes may be asked for by each organisation"
    if specification.image_attestations:
        yield f"               {specification.image_attestations} organisations rebuild each image first"
    yield f"models         requests to read one are decided by {DECIDERS[specification.model_access]}"
    if specification.model_licence is not None:
        yield f"               on the licence {specification.model_licence}"
    yield f"digest         {specification.digest}"


def _step(step: Step) -> Iterator[str]:
    agreed = step.parameters
    waits = "synchronous" if step.synchronous else "asynchronous"
    yield f"step {step.name:10}{step.kind}, {step.iterations} iterations, {waits}"
    yield f"  image        {step.image_name}:{step.image_version}"
    if step.pin is None:
        yield "               not pinned: whoever owns the name decides what runs"
    else:
        yield f"               id {step.pin.image_id}"
        yield f"               manifest {step.pin.manifest_digest}"
    counts = f"n_new {agreed.n_new}, n_max {agreed.n_max}, n_share {agreed.n_share}"
    yield f"  parameters   {counts}, seed {agreed.seed}"
    yield f"  features     {agreed.limits.n_features}, schema {agreed.schema_digest}"
    options = ", ".join(f"{name} {plain(value)}" for name, value in sorted(agreed.options.items()))
    if options:
        yield f"  options      {options}"
    if step.overrides:
        yield f"  overrides    of {', '.join(step.overrides)}"
