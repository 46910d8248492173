"""What is written about an organisation's node, and by whose endorsement.

A majority of the channel decides what the chaincodes write, and that majority need not contain the
organisation written about. Two services of Fabric give it a say of its own:

    vouch   writes a mark into the organisation's own collection. The channel takes nothing into it without
            that organisation's endorsement, so the whole transaction needs it: this covers a first write.
    seal    gives keys a policy of their own: the organisation and a majority. It replaces the chaincode's
            policy for every later write of the key, whatever chaincode the others run.

A record that must be vouched for and is not was written by others (`check_vouched`). What organisations say
for themselves, asks, agreements, votes, challenges with their answers and verdicts, and what they got from an
image's source, is written and read here: unvouched it counts as not there, so that a forged one neither
decides anything nor keeps its organisation from speaking.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from chaincode.common.records import read, read_many, write
from chaincode.shim import Context, Endorsement, all_of, n_of, peer_of
from protocol.agreement import collections
from protocol.errors import StateError
from protocol.ledger.changes import OwnWord

W = TypeVar("W", bound=OwnWord)


def endorsement_by(ctx: Context, chaincode: str, organisation: str) -> Endorsement:
    """Ask for an organisation, and for so many others that all together are a majority of the channel."""
    others = [peer_of(name) for name in ctx.organisations(chaincode) if name != organisation]
    needed = (len(others) + 1) // 2
    return all_of(peer_of(organisation), n_of(needed, *others)) if needed else peer_of(organisation)


def seal(ctx: Context, policy: Endorsement | None, keys: Iterable[str]) -> None:
    """Ask for these endorsements at every later write of the keys."""
    if policy is not None:
        for key in keys:
            ctx.set_endorsement(key, policy)


def vouch(ctx: Context, organisation: str, key: str, mark: str) -> None:
    """Make this transaction valid only with the organisation's endorsement, and leave its mark for a key."""
    ctx.private(collections.own(organisation)).put(key, mark.encode())


def check_vouched(ctx: Context, organisation: str, key: str, mark: str) -> None:
    """Refuse a record whose organisation left no such mark; every peer knows the marks' hashes."""
    if not _is_vouched(ctx, organisation, key, mark):
        raise StateError("RECORD_UNVOUCHED", f"{organisation} did not endorse what is written in its name")


def write_word(ctx: Context, organisation: str, key: str, word: OwnWord) -> None:
    """Store what the caller's organisation says, and vouch for it."""
    write(ctx, key, word)
    vouch(ctx, organisation, key, word.mark)


def find_word(ctx: Context, organisation: str, key: str, kind: type[W]) -> W | None:
    """Read what an organisation said; None where it said nothing, or did not vouch for what is there."""
    found = read(ctx, key, kind)
    return found if found is not None and is_word(ctx, organisation, key, found) else None


def find_words(ctx: Context, places: Mapping[str, str], kind: type[W]) -> dict[str, W]:
    """Read what organisations said, by organisation; the places are the keys, by organisation too."""
    found = zip(places.items(), read_many(ctx, list(places.values()), kind), strict=True)
    return {
        organisation: word
        for (organisation, key), word in found
        if word is not None and is_word(ctx, organisation, key, word)
    }


def is_word(ctx: Context, organisation: str, key: str, word: OwnWord) -> bool:
    """Whether an organisation vouched for what stands under a key in its name."""
    return _is_vouched(ctx, organisation, key, word.mark)


def _is_vouched(ctx: Context, organisation: str, key: str, mark: str) -> bool:
    found = ctx.private(collections.own(organisation)).hash(key)
    return found == hashlib.sha256(mark.encode()).digest()
