"""Flip bits of a small export, one at a time: each must be found. scripts/flip-bits [EVERY]

Without EVERY each bit is flipped (some ten minutes of one processor); with it, every so many-th. The blocks
before the flipped one are read once; the flipped one is judged on the state that they left, up to the first
thing that is found wrong.
"""

import copy
import io
import sys
from collections.abc import Iterator
from typing import Any

from support.memory.audited import audited

from executor.audit.bundle import RECORD, parse_anchor, read_members
from executor.audit.chain import Anchor, Chain
from executor.audit.errors import BundleError
from executor.audit.fabric.messages import MalformedError
from executor.audit.findings import Findings
from executor.audit.replay.replay import Replay
from executor.audit.verify import SENTENCES, _blocks, _check_copies, _manifest, _need_order


class FoundError(Exception):
    """Something is wrong: what else is need not be known."""


class FirstFinding(Findings):
    """Ends the walk at the first place where a claim does not hold."""

    def fail(self, claim: str, what: str, where: str) -> None:
        """End it."""
        super().fail(claim, what, where)
        raise FoundError


class Judge:
    """A chain up to a block, on which the next one can be tried without leaving anything behind."""

    def __init__(self, anchor: Anchor) -> None:
        self.chain = Chain(anchor, Findings(SENTENCES))
        self.replay = Replay(self.chain.findings, self.chain.validator.state)

    def take(self, raw: bytes) -> None:
        """Go on by a block."""
        for committed in self.chain.take(raw):
            self.replay.take(committed)

    def finds(self, raw: bytes, following: bytes | None) -> bool:
        """Whether a block, or the one that follows it, shows that something is wrong or was added."""
        chain, validator = copy.copy(self.chain), copy.copy(self.chain.validator)
        chain.findings, chain.validator, chain.unsigned = FirstFinding(SENTENCES), validator, []
        validator._ids = set(validator._ids)
        validator.state = Kept(validator.state)  # type: ignore[assignment]
        validator.endorsements = copy.copy(validator.endorsements)
        replay = Replay(chain.findings, self.chain.validator.state, authors=dict(self.replay.authors))
        try:
            for committed in chain.take(raw):
                replay.take(committed)
            if following is not None:
                # The link from the next block is what shows another header.
                list(chain.take(following))
        except (FoundError, MalformedError):
            return True
        # Where nobody signs, one orderer can write what it likes; the report says so, and the rest holds.
        return bool(chain.unsigned)

    def believes(self, bundle: bytes) -> bool:
        """Whether an export holds that has these blocks, judged already, and says something else of them."""
        members, copies = read_members(io.BytesIO(bundle)), dict[str, bytes]()
        try:
            manifest = _manifest(members)
            for raws in _blocks(members, manifest.first, manifest.height):
                del raws
            for name, content in members:
                _need_order(name, copies)
                copies[name] = content
        except BundleError:
            return False
        findings = Findings(SENTENCES)
        _check_copies(findings, manifest, self.chain, copies)
        return not findings.failed and manifest.height == self.chain.height and not manifest.first


class Kept:
    """A state that takes no changes."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def apply(self, updates: Any) -> None:
        """Leave all as it is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def places(size: int, every: int) -> Iterator[tuple[int, int]]:
    """Every so many-th bit of so many bytes."""
    return (divmod(bit, 8) for bit in range(every // 2, size * 8, every))


def flipped(raw: bytes, place: int, bit: int) -> bytes:
    """The bytes with one bit changed."""
    return raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]


def judged() -> Judge:
    """The chain of the small export, to its end."""
    recorder = audited().recorder
    judge = Judge(Anchor(parse_anchor(recorder.genesis)))
    for raw in recorder.blocks:
        judge.take(raw)
    return judge


def missed(every: int) -> list[str]:
    """Return the bits that can be flipped without being found."""
    recorder = audited().recorder
    bundle, found, tried = recorder.bundle(), list[str](), 0
    judge = Judge(Anchor(parse_anchor(recorder.genesis)))
    blocks = recorder.blocks
    for number, raw in enumerate(blocks):
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        for place, bit in places(len(raw), every):
            tried += 1
            if not judge.finds(flipped(raw, place, bit), following if number else None):
                found.append(f"block {number} byte {place} bit {bit}")
        judge.take(raw)
    inside = bytearray(len(bundle))
    for name, start, content in members(bundle):
        inside[start : start + len(content)] = b"\1" * len(content)
        for place, bit in places(len(content), every) if not name.startswith("blocks/") else ():
            tried += 1
            if judge.believes(flipped(bundle, start + place, bit)):
                found.append(f"{name} byte {place} bit {bit}")
    for place, bit in places(len(bundle), every):
        if not inside[place]:  # headers of the archive, what fills its records up, and its end
            tried += 1
            if _is_read(flipped(bundle, place, bit)):
                found.append(f"archive byte {place} bit {bit}")
    print(f"{tried} bits flipped, {len(found)} not found", file=sys.stderr)  # noqa: T201
    return found


def members(bundle: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Iterate over the members, each with the place where its content begins."""
    place = 0
    for name, content in read_members(io.BytesIO(bundle)):
        place += RECORD
        yield name, place, content
        place += len(content) + -len(content) % RECORD


def copied_members(bundle: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Iterate over the members that are no blocks, each with the place where its content begins."""
    return (found for found in members(bundle) if not found[0].startswith("blocks/"))


def _is_read(bundle: bytes) -> bool:
    try:
        list(read_members(io.BytesIO(bundle)))
    except BundleError:
        return False
    return True


if __name__ == "__main__":
    left = missed(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for line in left:
        print(line)  # noqa: T201
    sys.exit(1 if left else 0)
