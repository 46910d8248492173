"""The terms of a process in lines, for whoever is about to accept them: every field that means something.

What concerns the organisation that accepts comes first and is never cut off: its nodes, their edges, and what
one of them alone is to do otherwise. `executor process show` prints the whole specification.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from executor.output import plain
from executor.process.names import DECIDERS
from protocol.agreement.process import Specification
from protocol.agreement.step import Step
from protocol.agreement.topology import Kind, Topology

SHOWN = 10
"""How many nodes of another organisation are named."""
EDGES_SHOWN = 100
"""How many edges are listed besides those of the own nodes."""
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")
"""Text that is a word or a number; any other is quoted."""


def summary(specification: Specification, own: str | None = None) -> Iterator[str]:
    """Say in lines what a specification asks of those who accept it; `own` is the MSP id of who does."""
    yield f"process        {specification.process} (format {specification.version})"
    if specification.description:
        yield f"description    {plain(specification.description)}"
    yield f"organisations  {', '.join(specification.organisations)}"
    yield from _nodes(specification, own)
    mine = {node for node, owner in specification.nodes.items() if owner == own}
    for iteration, topology in ((0, specification.topology.first), *specification.topology.changes):
        yield from _topology(topology, iteration, mine)
    for step in specification.steps:
        yield from _step(step, specification, own)
    if specification.coordinator is not None:
        yield f"coordinator    {specification.coordinator} opens each step; a majority can name another"
    if specification.initial_model is not None:
        model = specification.initial_model
        yield f"starts from    the model of {model.node} in {model.process}, {model.digest}"
    yield f"estimators     of kind {specification.estimator_kind}, in format {specification.estimator_format}"
    yield f"trees          {_who_holds_trees(specification)}"
    yield f"rules          a task may take {specification.task_seconds} s; left out by majority after"
    yield f"               {specification.silence_seconds} s of silence; aborted by {specification.abort};"
    yield f"               {specification.change_quota} changes may be asked for by each organisation"
    if specification.image_attestations:
        yield f"               {specification.image_attestations} organisations rebuild each image first"
    yield f"models         requests to read one are decided by {DECIDERS[specification.model_access]}"
    if specification.model_licence is not None:
        yield f"               on the licence {specification.model_licence}"
    yield f"digest         {specification.digest}"


def _nodes(specification: Specification, own: str | None) -> Iterator[str]:
    """Name all nodes of the organisation that accepts, and of each other one the first few."""
    title = "nodes"
    for organisation in sorted(specification.organisations, key=lambda name: (name != own, name)):
        names = [node for node, owner in sorted(specification.nodes.items()) if owner == organisation]
        most = len(names) if organisation == own else SHOWN
        more = f" and {len(names) - most} more" if len(names) > most else ""
        whose = f"{organisation} (yours)" if organisation == own else organisation
        yield f"{title:15}{len(names)} of {whose}: {', '.join(names[:most]) or 'none'}{more}"
        title = ""


def _topology(topology: Topology, iteration: int, mine: Iterable[str]) -> Iterator[str]:
    since = f" from iteration {iteration} on" if iteration else ""
    yield f"{'' if iteration else 'topology':15}{topology.kind}{since}"
    if topology.kind is not Kind.EXPLICIT:
        return
    own = set(mine)
    ours = [edge for edge in topology.edges if own & {*edge}]
    others = [edge for edge in topology.edges if not own & {*edge}]
    more = f" and {len(others) - EDGES_SHOWN} more" if len(others) > EDGES_SHOWN else ""
    if ours:
        yield f"  yours        {_edges(ours)}"
    yield f"  edges        {_edges(others[:EDGES_SHOWN]) or 'none'}{more}"


def _edges(edges: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{a} - {b}" for a, b in edges)


def _step(step: Step, specification: Specification, own: str | None) -> Iterator[str]:
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
    limits = agreed.limits
    yield f"  limits       {limits.max_internal} splits of an estimator, depth {limits.max_depth}"
    if agreed.options:
        yield f"  options      {_values(agreed.options)}"
    owners = specification.nodes
    for node in sorted(step.overrides, key=lambda name: (owners[name] != own, name)):
        whose = f"{owners[node]} (yours)" if owners[node] == own else owners[node]
        own_counts = {name: value for name, value in step.overrides[node].items() if name != "options"}
        yield f"  otherwise    {node} of {whose}: {_values(own_counts) or 'the same counts'}"
        options = step.overrides[node].get("options")
        if options:
            yield f"               options {_values(options)}"


def _who_holds_trees(specification: Specification) -> str:
    if not specification.confidential:
        return "on every peer of the channel"
    blocks = specification.confidential_blocks
    life = f"for {blocks} blocks" if blocks else "for good"
    return f"confidential: on the peers of these organisations alone, {life}"


def _values(values: Mapping[str, Any]) -> str:
    """Return names with their values in one line, in which nothing looks like something else."""
    return ", ".join(f"{_word(name)} {_word(value)}" for name, value in sorted(values.items()))


def _word(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return plain(json.dumps(value, sort_keys=True, ensure_ascii=False))
