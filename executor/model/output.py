"""Models on stdout: tables for people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from executor.model.content import Members
from executor.output import plain as plain_text
from executor.output import table
from experiments.pages import plain
from learning.errors import ParameterError
from learning.options import from_step
from protocol.agreement.process import Specification
from protocol.defence import Membership, vote_weights
from protocol.ledger.common import HistoryEntry
from protocol.ledger.models import AccessRecord, ModelBrief, ModelRecord
from protocol.values import dataclass


@dataclass(frozen=True)
class Contribution:
    """What one origin gave a model: trees, and its part of the vote."""

    origin: str
    organisation: str
    trees: int
    share: float
    vote: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as --json shows it."""
        return asdict(self)


def vote_cap(specification: Specification, record: ModelRecord) -> float | None:
    """Return the cap on another organisation's vote that the process has; none with another's options."""
    try:
        return from_step(specification.voting(record.node, record.iteration)).vote_cap
    except ParameterError:
        return None


def contributions(
    node: str, members: Members, organisations: Mapping[str, str], cap: float | None
) -> list[Contribution]:
    """Count a model's trees by origin, the biggest contribution first, with each one's part of the vote."""
    ids = [id_ for id_, _ in members]
    sizes = Counter(id_.creator for id_ in ids)
    total = len(ids)
    weights = dict.fromkeys(sizes, 0.0)
    for id_, weight in zip(ids, vote_weights(node, Membership.of(organisations), ids, cap), strict=True):
        weights[id_.creator] += weight
    whole = sum(weights.values())
    return [
        Contribution(origin, organisations.get(origin, "?"), size, size / total, weights[origin] / whole)
        for origin, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]


def vote_line(owner: str, parts: Sequence[Contribution], cap: float | None) -> str:
    """Say how much of the vote the strongest other organisation has, and how much it may have."""
    shares: dict[str, float] = {}
    for part in parts:
        shares[part.organisation] = shares.get(part.organisation, 0.0) + part.vote
    others = [(share, name) for name, share in sorted(shares.items()) if name != owner]
    share, name = max(others, default=(0.0, "none"))
    most = "not capped" if cap is None else f"at most {plain(cap)}"
    return f"vote        of another organisation {most}; here {plain(share)}, {name}"


def model_text(record: ModelRecord, parts: Sequence[Contribution], cap: float | None) -> str:
    """Return the record of a model in lines, and the table of its origins."""
    published = record.published
    lines = [
        f"{record.process}/{record.node} of {record.owner}",
        f"digest      {record.digest}",
        f"trees       {len(record.estimators)} after iteration {record.iteration}",
        f"image       {record.image.name}:{record.image.version}" if record.image else "",
        f"result      {record.result}",
        f"published   {plain_text(published.time)} by {plain_text(published.identity)},"
        f" transaction {plain_text(published.tx)}",
        plain_text(vote_line(record.owner, parts, cap)),
        *(
            f"metric      {plain_text(name)} {plain_text(value)}"
            for name, value in sorted(record.metrics.items())
        ),
    ]
    rows = [
        (part.origin, part.organisation, str(part.trees), plain(part.share), plain(part.vote))
        for part in parts
    ]
    columns = ("Origin", "Organisation", "Trees", "Share of trees", "Share of the vote")
    return "\n".join(lines) + "\n\n" + table("Contribution by origin", columns, rows)


def models_text(items: Iterable[ModelBrief]) -> str:
    """Return a table of models in brief."""
    rows = [
        (item.process, item.node, item.owner, str(item.size), item.published.time, str(item.digest))
        for item in items
    ]
    columns = ("Process", "Node", "Owner", "Trees", "Published", "Digest")
    return table("Models", columns, rows, figures=False) if rows else "no model"


def access_text(record: AccessRecord) -> str:
    """Return a table of those who may read a model."""
    rows = [(record.owner, "owner", "", "")]
    rows += [
        (name, "granted", given.expires or "never", given.by.time)
        for name, given in sorted(record.organisations.items())
        if name != record.owner
    ]
    title = f"Access to {record.process}/{record.node}"
    return table(title, ("Organisation", "As", "Expires", "Since"), rows, figures=False)


def history_text(changes: Iterable[HistoryEntry[AccessRecord]]) -> str:
    """Return the changes of access in lines, newest first."""
    lines = []
    for entry in changes:
        if entry.value is not None:
            change = entry.value.change
            until = f" until {change.expires}" if change.expires else ""
            what = f"{change.action} {change.organisation}{until}"
            lines.append(f"{entry.time} {what}, transaction {entry.tx}")
    return "\n".join(lines)
