"""`executor audit verify`: an export from its first byte to its last, against an anchor from outside it.

1. The bundle is in its one form (bundle.py).
2. Every block, configuration, signature, endorsement, verdict and commit hash is right (chain.py).
3. Every record of the project is right (replay/).
4. What the export says about itself is what its blocks say.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Any

from executor.audit import chain as chains
from executor.audit import challenges, statements
from executor.audit.bundle import CONFIGURATION, MANIFEST, Manifest, block_name, read_members
from executor.audit.chain import Anchor, Chain
from executor.audit.checkpoint import read_checkpoint, write_checkpoint
from executor.audit.errors import BundleError
from executor.audit.fabric.block import Block
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.messages import MalformedError
from executor.audit.fabric.state import Key
from executor.audit.findings import Claim, Failure, Findings
from executor.audit.limits import not_proven
from executor.audit.replay import replay
from executor.audit.replay.challenges import standing_challenges
from executor.audit.replay.replay import Replay
from executor.audit.replay.view import KINDS, View, Written
from executor.audit.statements import Seen, Statement
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.ledger import keys
from protocol.ledger.challenges import ChallengeEvidence
from protocol.values import dataclass

SENTENCES = {
    **chains.SENTENCES,
    **replay.SENTENCES,
    **statements.SENTENCES,
    "export": "what the export says about itself is what its blocks say",
}
EARLIER = (
    "That the blocks up to the checkpoint are right: an earlier run verified them, and its file is believed."
)
RARELY = 50_000
"""After how many more objects cycles are looked for: a walk makes many objects and hardly a cycle."""
AHEAD, AHEAD_BYTES = 16, 1 << 20
"""How many blocks are read before they are judged, and of how many bytes; a larger one is read alone."""
Observer = Callable[[View, Written], None]


@dataclass(frozen=True)
class Verification:
    """What came of an export."""

    holds: bool
    """Whether all claims about the blocks and the records of the channel hold."""
    claims: list[Claim]
    failures: list[Failure]
    not_proven: list[str]
    manifest: Manifest
    chain: Chain = field(repr=False)
    challenges: list[ChallengeEvidence] = field(default_factory=list)
    """Those of the whole channel."""
    checkpoint: Digest | None = None
    """The digest of the checkpoint that was written."""

    @property
    def verified(self) -> bool:
        """Whether all of it holds, and no auditor's verdict is against the process that was exported."""
        return self.holds and not self.verdicts[1]

    @property
    def verdicts(self) -> tuple[list[Claim], list[Failure]]:
        """What auditors found of challenged tasks of the process that was exported."""
        return challenges.verdicts(self.challenges, self.manifest.process)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        claims, failures = self.verdicts
        return {
            "verified": self.verified,
            "channel": self.manifest.channel,
            "process": self.manifest.process,
            "blocks": self.chain.height,
            "from": 0 if self.chain.resumed is None else self.chain.resumed.marks.height,
            "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
            "transactions": self.chain.transactions,
            "signatures": self.chain.signatures,
            "genesis": f"sha256:{self.chain.genesis.hex()}",
            "block_hash": self.chain.last_hash.hex(),
            "commit_hash": self.chain.validator.commit_hash.hex(),
            "consensus": self.chain.configuration.ordering.to_dict(),
            "rules": self.chain.rules.to_dict(),
            "claims": [claim.to_dict() for claim in (*self.claims, *claims)],
            "not_proven": self.not_proven,
            "failures": [failure.to_dict() for failure in (*self.failures, *failures)],
            "challenges": [challenges.to_dict(found) for found in self.challenges],
        }


def verify_bundle(
    file: IO[bytes],
    anchor: Anchor,
    observers: tuple[Observer, ...] = (),
    said: Sequence[Statement] = (),
    findings: Findings | None = None,
    *,
    resume: IO[bytes] | None = None,
    checkpoint: Path | None = None,
) -> Verification:
    """Check an export, and what organisations said of their peers; what is no export at all raises.

    `resume` is the checkpoint of an earlier run to go on from, `checkpoint` where to write one if all holds.
    """
    findings = Findings(SENTENCES) if findings is None else findings
    members = read_members(file)
    manifest = _manifest(members)
    chain = Chain(anchor, findings)
    replayed = Replay(findings, chain.validator.state, observers)
    if resume is not None:
        _resume(chain, replayed, resume)
    if manifest.first:
        _go_on(chain, manifest.first)
    copies: dict[str, bytes] = {}
    heights, seen = {statement.height for statement in said}, dict[int, Seen]()
    before = gc.get_threshold()
    gc.set_threshold(RARELY, *before[1:])
    try:
        for raws in _blocks(members, manifest.first, manifest.height):
            for block in chain.take_ahead(raws, replayed.foresee):
                for committed in block:
                    replayed.take(committed)
                if chain.height in heights:
                    seen[chain.height] = _seen(chain)
            replayed.forget()
        for name, content in members:
            _need_order(name, copies)
            copies[name] = content
        if chain.height != manifest.height:
            raise BundleError("BUNDLE_BLOCKS", f"it ends at height {chain.height}, not {manifest.height}")
        if chain.resumed is not None and chain.height < chain.resumed.marks.height:
            known = chain.resumed.marks.height
            raise BundleError("CHECKPOINT_AHEAD", f"it has {chain.height} blocks, and {known} were verified")
    except MalformedError as error:
        raise BundleError("BUNDLE_FORMAT", f"{block_name(chain.height)}: {error}") from error
    finally:
        gc.set_threshold(*before)
    _check_copies(findings, manifest, chain, copies)
    not_compared = statements.compare(findings, chain.configuration, said, seen, chain.height)
    found = standing_challenges(chain.validator.state)
    written = None
    if checkpoint is not None and findings.verified:
        config = chain.configuration.config.SerializeToString(deterministic=True)
        written = write_checkpoint(checkpoint, chain.marks, config, chain.validator, replayed.authors)
    chain.validator.state.close()
    resumed = [EARLIER] if chain.resumed is not None else []
    limits = [*resumed, *not_compared, *not_proven(chain), *replay.NOT_REPLAYED]
    return Verification(
        findings.verified, findings.claims, findings.failures, limits, manifest, chain, found, written
    )


def _resume(chain: Chain, replayed: Replay, file: IO[bytes]) -> None:
    """Fill chain and replay with what an earlier run left; it anchors this one, too."""
    chain.resumed = read_checkpoint(file, chain.validator)
    replayed.authors.update(chain.resumed.authors)
    if chain.anchor.genesis is None:
        chain.anchor = replace(chain.anchor, genesis=bytes.fromhex(chain.resumed.marks.genesis))


def _go_on(chain: Chain, first: int) -> None:
    """Stand where the export begins, if it is where an earlier run ended."""
    if chain.resumed is None or chain.resumed.marks.height != first:
        known = "none is given" if chain.resumed is None else f"this one is of {chain.resumed.marks.height}"
        raise BundleError("BUNDLE_BEGINNING", f"it goes on from a checkpoint of height {first}, and {known}")
    chain.go_on(chain.resumed)
    same = chain.anchor.genesis == chain.genesis
    chain.findings.check("anchor", same, "the checkpoint is of another channel", f"block {first}")
    if chain.anchor.roots is not None:
        foreign = ", ".join(chain.anchor.roots.missing(chain.configuration))
        chain.findings.check("anchor", not foreign, f"other roots than known for {foreign}", f"block {first}")


def _seen(chain: Chain) -> Seen:
    resumed = chain.resumed is not None and chain.height < chain.resumed.marks.height
    return Seen(chain.last_hash.hex(), None if resumed else chain.validator.commit_hash.hex())


def copies_of(configuration: Configuration) -> Iterator[tuple[str, bytes]]:
    """Return what an export holds besides blocks: the configuration, and the authorities for people."""
    yield CONFIGURATION, configuration.config.SerializeToString(deterministic=True)
    for organisation in configuration.organisations:
        for number, pem in enumerate(organisation.authorities()):
            yield f"certificates/{organisation.msp_id}-{number}.pem", pem


def first_configuration(raw: bytes) -> tuple[Block, Configuration]:
    """Read the first block of a channel and its configuration."""
    block = Block.from_bytes(raw)
    envelope = block.config_envelope()
    if envelope is None:
        raise MalformedError("the first block holds no configuration")
    return block, Configuration.from_envelope(envelope)


def _manifest(members: Iterator[tuple[str, bytes]]) -> Manifest:
    name, content = next(members, ("", b""))
    if name != MANIFEST:
        raise BundleError("BUNDLE_FORMAT", f"it begins with {name[:80] or 'nothing'!r}, not {MANIFEST}")
    return Manifest.from_bytes(content)


def _blocks(members: Iterator[tuple[str, bytes]], first: int, height: int) -> Iterator[list[bytes]]:
    """Iterate over the blocks, each in its place, some at a time: many small ones or a large one alone."""
    raws, total = list[bytes](), 0
    for number in range(first, height):
        name, raw = next(members, ("", b""))
        if not name:
            break
        if name != block_name(number):
            raise BundleError("BUNDLE_BLOCKS", f"{name} stands where {block_name(number)} should")
        if raws and (len(raws) == AHEAD or total + len(raw) > AHEAD_BYTES):
            yield raws
            raws, total = [], 0
        raws.append(raw)
        total += len(raw)
    if raws:
        yield raws


def _need_order(name: str, copies: dict[str, bytes]) -> None:
    expected = name == CONFIGURATION if not copies else name.startswith("certificates/")
    if not expected or name in copies:
        raise BundleError("BUNDLE_MEMBER", f"{name} stands after the blocks")


def _check_copies(findings: Findings, manifest: Manifest, chain: Chain, copies: dict[str, bytes]) -> None:
    expected = dict(copies_of(chain.configuration))
    check = findings.check
    said = manifest.channel == chain.configuration.channel
    check("export", said, f"it says that it is of channel {manifest.channel[:64]!r}", MANIFEST)
    genesis = manifest.genesis == f"sha256:{chain.genesis.hex()}"
    check("export", genesis, "it names another first block", MANIFEST)
    if manifest.process:
        what = f"it is about process {manifest.process[:64]!r}, which is not on the ledger"
        check("export", _has_process(chain, manifest.process), what, MANIFEST)
    for name in {**expected, **copies}:
        same = expected.get(name) == copies.get(name)
        check("export", same, "it is not what the blocks say", name)


def _has_process(chain: Chain, name: str) -> bool:
    try:
        key = Key(KINDS["process"][0], "", keys.process(name))
    except AttestreeError:
        return False
    return chain.validator.state.get(key) is not None
