"""Every key of the ledger is built and read here, so that no two records can meet under one key.

A key is a Fabric composite key: its kind and its parts, each ended by NUL, which no name can hold. Counters
have ten digits, so that a range query returns them in order. `KINDS` is the list of all kinds, explained in
docs/formats/keys-v1.md.
"""

from collections.abc import Callable
from dataclasses import field

from protocol.agreement.lifecycle import PROCESS
from protocol.digest import Digest
from protocol.errors import AttestreeError, IdentifierError
from protocol.identifiers import (
    EstimatorId,
    check_counter,
    parse_image_name,
    parse_image_version,
    parse_node,
    parse_organisation,
    parse_process,
)
from protocol.values import dataclass

SEPARATOR = "\0"
LAST_CHARACTER = "\U0010ffff"
COUNTER_DIGITS = 10

Part = str | int


@dataclass(frozen=True, slots=True)
class Key:
    """What a ledger key says: its kind, and its parts as the values they stand for."""

    kind: str
    parts: tuple[Part, ...]
    _text: str = field(default="", repr=False, compare=False)
    """What it prints as, where it was read: findings name a key again and again."""

    def __str__(self) -> str:
        """Print for people, as in `task~fraud-2026~node07~0000000003`."""
        return self._text or "~".join((self.kind, *map(_text, self.parts)))


def image(name: str, version: str) -> str:
    """The key of a registered image version."""
    return _build("image", name, version)


def imagename(name: str) -> str:
    """The key of the organisation that an image's name belongs to."""
    return _build("imagename", name)


def rebuild(name: str, version: str, organisation: str) -> str:
    """The key of what an organisation got when it built an image version from its source."""
    return _build("rebuild", name, version, organisation)


def process(process: str) -> str:
    """The key of a process."""
    return _build("process", process)


def brief(status: str, process: str) -> str:
    """The key of a process in brief, where all of one status stand together."""
    return _build("brief", status, process)


def openprocesses(organisation: str, shelf: int) -> str:
    """The key of open processes that an organisation proposed, written by that organisation alone."""
    return _build("openprocesses", organisation, shelf)


def acceptance(process: str, organisation: str) -> str:
    """The key of an organisation's acceptance of a process."""
    return _build("acceptance", process, organisation)


def asks(process: str, organisation: str) -> str:
    """The key of how many changes an organisation has asked for."""
    return _build("asks", process, organisation)


def ask(process: str, organisation: str, number: int) -> str:
    """The key of a change that an organisation asks for, apart from what tasks read."""
    return _build("ask", process, organisation, number)


def agreement(process: str, asked: str, number: int, organisation: str) -> str:
    """The key of an organisation's agreement to what another asked for."""
    return _build("agreement", process, asked, number, organisation)


def change(process: str, number: int) -> str:
    """The key of a change that holds, written once."""
    return _build("change", process, number)


def absence(process: str, node: str, voter: str) -> str:
    """The key of an organisation's vote to leave a silent node out."""
    return _build("absence", process, node, voter)


def departure(process: str, gone: str, voter: str) -> str:
    """The key of an organisation's vote to leave a silent organisation out."""
    return _build("departure", process, gone, voter)


def abort(process: str, organisation: str) -> str:
    """The key of an organisation's vote to give a process up."""
    return _build("abort", process, organisation)


def progress(process: str, node: str) -> str:
    """The key of a node's progress in a process, written by that node alone."""
    return _build("progress", process, node)


def task(process: str, node: str, iteration: int) -> str:
    """The key of a node's task in one iteration."""
    return _build("task", process, node, iteration)


def estimator(process: str, estimator_id: EstimatorId) -> str:
    """The key of an estimator, stored once under its creator."""
    return _build("estimator", process, estimator_id.creator, estimator_id.counter)


def sharedtree(process: str, estimator_id: EstimatorId) -> str:
    """The key of the bytes of a shared estimator's tree, apart from its record, which is read far oftener."""
    return _build("sharedtree", process, estimator_id.creator, estimator_id.counter)


def slot(process: str, recipient: str, sender: str) -> str:
    """The key of what one sender offers one recipient, written by that sender alone."""
    return _build("slot", process, recipient, sender)


def model(process: str, node: str) -> str:
    """The key of a node's published model."""
    return _build("model", process, node)


def head(process: str, node: str) -> str:
    """The key of where a node stands: its last completed iteration, its state and its next counter."""
    return _build("head", process, node)


def share(process: str, iteration: int, sender: str) -> str:
    """The key of what a node offered in one iteration, which its recipients read without conflict."""
    return _build("share", process, iteration, sender)


def result(process: str, iteration: int, node: str) -> str:
    """The key of the result of a node's completed task."""
    return _build("result", process, iteration, node)


def creation(process: str, estimator_id: EstimatorId) -> str:
    """The key of the digest under which FIT announced an estimator, shared or not."""
    return _build("creation", process, estimator_id.creator, estimator_id.counter)


def offer(process: str, estimator_id: EstimatorId, sender: str, iteration: int) -> str:
    """The key of the fact that a sender offered an estimator in an iteration, for lineage."""
    return _build("offer", process, estimator_id.creator, estimator_id.counter, sender, iteration)


def taken(process: str, sender: str, iteration: int, node: str, reading: int) -> str:
    """The key of what a node took from the share of a sender's iteration when it read it, for lineage."""
    return _build("taken", process, sender, iteration, node, reading)


def twin(process: str, digest: str, creator: str, counter: int) -> str:
    """The key of the fact that a creator shared the tree of a digest, beside others who shared the same."""
    return _build("twin", process, digest, creator, counter)


def initial(process: str) -> str:
    """The key of the model that a process started from."""
    return _build("initial", process)


def initialtree(process: str, estimator_id: EstimatorId) -> str:
    """The key of the digest of an estimator of the model that a process started from."""
    return _build("initialtree", process, estimator_id.creator, estimator_id.counter)


def refusal(process: str, node: str, iteration: int, attempt: int) -> str:
    """The key of the evidence of a refused start."""
    return _build("refusal", process, node, iteration, attempt)


def taskkey(digest: str) -> str:
    """The key under which a task's public key is remembered, by its digest, so that none is used twice."""
    return _build("taskkey", digest)


def imageuse(  # noqa: PLR0917
    name: str, version: str, process: str, node: str, iteration: int, attempt: int
) -> str:
    """The key of the fact that a launch of a task committed to an image version, for audits of the image."""
    return _build("imageuse", name, version, process, node, iteration, attempt)


def challenge(process: str, node: str, iteration: int, organisation: str) -> str:
    """The key of an organisation's challenge of a task."""
    return _build("challenge", process, node, iteration, organisation)


def answer(process: str, node: str, iteration: int, organisation: str, auditor: str) -> str:
    """The key of the fact that the owner of a challenged task opened its inputs to an auditor."""
    return _build("answer", process, node, iteration, organisation, auditor)


def verdict(process: str, node: str, iteration: int, organisation: str, auditor: str) -> str:
    """The key of what an auditor found who ran a challenged task again."""
    return _build("verdict", process, node, iteration, organisation, auditor)


def openchallenges(process: str, challenged: str, organisation: str) -> str:
    """The key of what an organisation has challenged of another, written by the challenger alone."""
    return _build("openchallenges", process, challenged, organisation)


def access(process: str, node: str) -> str:
    """The key of the organisations that may read a model, written by its owner alone."""
    return _build("access", process, node)


def requests(process: str, organisation: str) -> str:
    """The key of how many models of a process an organisation has asked for."""
    return _build("requests", process, organisation)


def request(process: str, node: str, organisation: str, number: int) -> str:
    """The key of an organisation's request to read a node's model."""
    return _build("request", process, node, organisation, number)


def decision(process: str, node: str, organisation: str, number: int, voter: str) -> str:
    """The key of an organisation's vote on a request to read a model."""
    return _build("decision", process, node, organisation, number, voter)


def tree(process: str, estimator_id: EstimatorId, node: str) -> str:
    """The key of a tree of a node's model that was never shared in the process."""
    return _build("tree", process, estimator_id.creator, estimator_id.counter, node)


def member(process: str, estimator_id: EstimatorId, node: str) -> str:
    """The key of the fact that an estimator is in a node's model, for lineage."""
    return _build("member", process, estimator_id.creator, estimator_id.counter, node)


def prefix(kind: str, *parts: Part) -> str:
    """The beginning that all keys of a kind with these first parts share, for range queries."""
    return _build(kind, *parts)


def range_of(prefix: str) -> tuple[str, str]:
    """Start and end of the range query that finds exactly the keys with a prefix."""
    return prefix, prefix + LAST_CHARACTER


def parse(key: str) -> Key:
    """Read a whole key and refuse any string that this module would not have built."""
    kind, *texts = _split(key)
    if kind not in KINDS or len(texts) != len(KINDS[kind]):
        raise IdentifierError("KEY_SYNTAX", f"{key[:80]!r} is not a key of the ledger")
    try:
        parts = tuple([read(text) for read, text in zip(_READS[kind], texts, strict=True)])
    except AttestreeError as error:
        raise IdentifierError("KEY_SYNTAX", f"{key[:80]!r}: {error.cause}") from error
    return Key(kind, parts, "~".join((kind, *texts)))


def _build(kind: str, *parts: Part) -> str:
    checks = _CHECKS.get(kind)
    if checks is None or len(parts) > len(checks):
        raise IdentifierError("KEY_SYNTAX", f"{kind!r} with {len(parts)} parts is not a key of the ledger")
    texts = [kind]
    for check, part in zip(checks, parts, strict=False):
        check(part)
        texts.append(_text(part))
    return SEPARATOR + SEPARATOR.join(texts) + SEPARATOR


def _split(key: str) -> list[str]:
    if type(key) is not str or not (key.startswith(SEPARATOR) and key.endswith(SEPARATOR) and len(key) > 1):
        raise IdentifierError("KEY_SYNTAX", f"{str(key)[:80]!r} is not a composite key")
    return key[1:-1].split(SEPARATOR)


def counter_text(value: int) -> str:
    """Write a counter as it stands in a key."""
    return str(value).zfill(COUNTER_DIGITS)


def _text(part: Part) -> str:
    return counter_text(part) if isinstance(part, int) else part


def _read_counter(text: str) -> int:
    if len(text) != COUNTER_DIGITS or not (text.isascii() and text.isdigit()):
        raise IdentifierError("COUNTER_SYNTAX", f"{text[:20]!r} is not a counter of {COUNTER_DIGITS} digits")
    return check_counter(int(text), "counter")


def _check_counter(value: int) -> int:
    return check_counter(value, "counter")


def _check_digest(text: str) -> str:
    return str(Digest.parse(text))


def _check_status(text: str) -> str:
    return PROCESS.state(text).value


@dataclass(frozen=True, slots=True)
class _PartKind:
    """How a part is checked when a key is built and read when it is parsed."""

    check: Callable[..., Part]
    read: Callable[[str], Part]


_NODE = _PartKind(parse_node, parse_node)
_ORGANISATION = _PartKind(parse_organisation, parse_organisation)
_COUNTER = _PartKind(_check_counter, _read_counter)
_KIND_OF_PART = {
    "name": _PartKind(parse_image_name, parse_image_name),
    "version": _PartKind(parse_image_version, parse_image_version),
    "process": _PartKind(parse_process, parse_process),
    "status": _PartKind(_check_status, _check_status),
    "node": _NODE,
    "creator": _NODE,
    "recipient": _NODE,
    "sender": _NODE,
    "organisation": _ORGANISATION,
    "asked": _ORGANISATION,
    "gone": _ORGANISATION,
    "voter": _ORGANISATION,
    "auditor": _ORGANISATION,
    "challenged": _ORGANISATION,
    "number": _COUNTER,
    "shelf": _COUNTER,
    "iteration": _COUNTER,
    "shared": _COUNTER,
    "counter": _COUNTER,
    "attempt": _COUNTER,
    "digest": _PartKind(_check_digest, _check_digest),
}

KINDS: dict[str, tuple[str, ...]] = {
    "image": ("name", "version"),
    "imagename": ("name",),
    "rebuild": ("name", "version", "organisation"),
    "process": ("process",),
    "brief": ("status", "process"),
    "openprocesses": ("organisation", "shelf"),
    "acceptance": ("process", "organisation"),
    "asks": ("process", "organisation"),
    "ask": ("process", "organisation", "number"),
    "agreement": ("process", "asked", "number", "organisation"),
    "change": ("process", "number"),
    "absence": ("process", "node", "voter"),
    "departure": ("process", "gone", "voter"),
    "abort": ("process", "organisation"),
    "progress": ("process", "node"),
    "task": ("process", "node", "iteration"),
    "estimator": ("process", "creator", "counter"),
    "sharedtree": ("process", "creator", "counter"),
    "slot": ("process", "recipient", "sender"),
    "model": ("process", "node"),
    "head": ("process", "node"),
    "share": ("process", "iteration", "sender"),
    "result": ("process", "iteration", "node"),
    "creation": ("process", "creator", "counter"),
    "offer": ("process", "creator", "counter", "sender", "iteration"),
    "taken": ("process", "sender", "shared", "node", "iteration"),
    "twin": ("process", "digest", "creator", "counter"),
    "initial": ("process",),
    "initialtree": ("process", "creator", "counter"),
    "refusal": ("process", "node", "iteration", "attempt"),
    "taskkey": ("digest",),
    "imageuse": ("name", "version", "process", "node", "iteration", "attempt"),
    "challenge": ("process", "node", "iteration", "organisation"),
    "answer": ("process", "node", "iteration", "organisation", "auditor"),
    "verdict": ("process", "node", "iteration", "organisation", "auditor"),
    "openchallenges": ("process", "challenged", "organisation"),
    "access": ("process", "node"),
    "requests": ("process", "organisation"),
    "request": ("process", "node", "organisation", "number"),
    "decision": ("process", "node", "organisation", "number", "voter"),
    "tree": ("process", "creator", "counter", "node"),
    "member": ("process", "creator", "counter", "node"),
}
"""The parts of each kind of key, in order."""

# How each of them is checked and read, found out once: a transaction may build hundreds of keys.
_CHECKS = {kind: tuple(_KIND_OF_PART[name].check for name in names) for kind, names in KINDS.items()}
_READS = {kind: tuple(_KIND_OF_PART[name].read for name in names) for kind, names in KINDS.items()}
