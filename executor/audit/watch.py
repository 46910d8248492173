"""`executor audit watch`: every block judged as it comes, by the same verifier, until the first violation.

What a peer hands out is believed no more than an export: a watch begins at the first block, or at a
checkpoint of the auditor's own, and computes everything again.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from executor.audit.chain import Anchor, Chain
from executor.audit.checkpoint import read_checkpoint, write_checkpoint
from executor.audit.errors import AuditError, BundleError
from executor.audit.fabric.messages import MalformedError
from executor.audit.findings import Failure, Findings
from executor.audit.replay.replay import Replay
from executor.audit.verify import SENTENCES
from executor.errors import LedgerError
from executor.ledger.transport import Transport
from protocol.digest import Digest
from protocol.values import dataclass

PULSE = 0.5
"""Seconds after which the peer is asked again for a block that is not there yet."""
PASSING = ("LEDGER_UNREACHABLE", "LEDGER_TIMEOUT", "EVALUATE_FAILED")


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one block."""

    number: int
    transactions: int
    signatures: int
    failures: tuple[Failure, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the line that `--json` prints."""
        return {
            "block": self.number,
            "transactions": self.transactions,
            "signatures": self.signatures,
            "verified": not self.failures,
            "failures": [failure.to_dict() for failure in self.failures],
        }

    def __str__(self) -> str:
        what = f"block {self.number}: {self.transactions} transactions, {self.signatures} signatures"
        return f"{what}, {'NOT ' if self.failures else ''}verified"


class Watch:
    """A channel as far as its blocks have come."""

    def __init__(self, anchor: Anchor, resume: IO[bytes] | None = None) -> None:
        self.findings = Findings(SENTENCES)
        self.chain = Chain(anchor, self.findings)
        self._replay = Replay(self.findings, self.chain.validator.state)
        if resume is not None:
            found = read_checkpoint(resume, self.chain.validator)
            if anchor.genesis not in (None, bytes.fromhex(found.marks.genesis)):
                raise BundleError("CHECKPOINT_FORMAT", "it is of another channel")
            self._replay.authors.update(found.authors)
            self.chain.go_on(found)

    def take(self, raw: bytes) -> Judged:
        """Judge the next block."""
        chain = self.chain
        known, before = len(self.findings.failures), (chain.transactions, chain.signatures)
        number = chain.height
        try:
            for committed in chain.take(raw):
                self._replay.take(committed)
        except MalformedError as error:
            self.findings.fail("hash chain", str(error), f"block {number}")
        new = tuple(self.findings.failures[known:])
        return Judged(number, chain.transactions - before[0], chain.signatures - before[1], new)

    def keep(self, path: Path) -> Digest:
        """Write where the watch stands, for the next one."""
        chain = self.chain
        config = chain.configuration.config.SerializeToString(deterministic=True)
        return write_checkpoint(path, chain.marks, config, chain.validator, self._replay.authors)


def follow(watch: Watch, blocks: Iterator[bytes], tell: Callable[[Judged], object]) -> None:
    """Judge blocks as they come; the first violation raises."""
    for raw in blocks:
        judged = watch.take(raw)
        tell(judged)
        if judged.failures:
            first = judged.failures[0]
            raise AuditError("AUDIT_VIOLATION", f"{first.where}: {first.claim}: {first.what}")


def live_blocks(
    transport: Transport,
    number: int,
    is_over: Callable[[], bool],
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[bytes]:
    """Iterate over the blocks of a channel from a number on, and wait for those to come until it is over.

    A peer that is away is waited for, too: what it has missed it hands out when it is back.
    """
    height = 0
    while not is_over():
        try:
            if number >= height:
                height = transport.chain_info().height
            raw = transport.block(number) if number < height else None
        except LedgerError as error:
            if error.code not in PASSING:
                raise
            raw = None
        if raw is None:
            pause(PULSE)
            continue
        yield raw
        number += 1
