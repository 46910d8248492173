"""What no audit of a ledger can prove, in plain sentences, and who would have to act together to lie."""

from executor.audit.chain import Chain
from executor.audit.fabric.orderers import Ordering
from executor.audit.rules import Rules

ALWAYS = (
    "That a task really ran in its container: whoever holds a node's key and its host can sign trees made"
    " elsewhere. It takes one organisation, for its own nodes alone; a challenge exposes it.",
    "That the data are true: a commitment binds a node to its rows and says nothing of where they come from.",
    "That time stamps are true: each is its client's claim. The order of events is that of the blocks.",
    "That nobody learned from the rows of an evaluation: the tasks of a process hold rows out of one file,"
    " which is their node's word; neither equal rows nor what an initial model learned from are on record.",
    "That a well-formed tree is harmless: an audit shows who made it and who took it.",
)


def not_proven(chain: Chain) -> list[str]:
    """Return the sentences that hold for a channel as it is configured."""
    configuration = chain.configuration
    found = [_orderers(configuration.ordering)]
    found.append(_endorsers(chain.rules, len(configuration.application)))
    if chain.unsigned:
        found.append(
            "What blocks' metadata say beyond what the orderers signed: any one of them can write there, and"
            f" neither Fabric nor this audit uses it. Block {chain.unsigned[0]} is the first of"
            f" {len(chain.unsigned)} that have something."
        )
    if chain.anchor.genesis is None:
        found.append(
            "That this is the channel you mean: roots alone were given, and one organisation of them could"
            " have made another channel with rules of its own. Give --genesis."
        )
    found.append(
        "That nothing came later: an export ends where its maker ended it. Compare heights and hashes with"
        " other organisations (`executor audit attest`)."
    )
    return [*found, *ALWAYS]


def _endorsers(rules: Rules, members: int) -> str:
    """Say how few organisations could have endorsed anything, by the weakest policies that were in force."""
    weakest, parts = rules.weakest, list[str]()
    for kind in ("chaincodes", "keys", "collections"):
        found = weakest.get(kind)
        if found is not None and (not parts or found.organisations < weakest["chaincodes"].organisations):
            parts.append(f"{found.organisations} of {members} for {found.what} from block {found.block} on")
    together = f"by the weakest policies in force, {'; '.join(parts)}" if parts else "nobody defined any"
    return (
        f"That chaincode ran as written where it was endorsed: {together}. So many organisations together"
        " could endorse anything there. What this audit computes again does not rest on their word."
    )


def block_signatures(ordering: Ordering) -> str:
    """Say by whose signatures a block counts, in a few words."""
    if not ordering.is_bft:
        return f"one orderer of {', '.join(ordering.organisations)} signs each block ({ordering.consensus})"
    owners = ", ".join(f"{name} {number}" for name, number in ordering.owners.items())
    return f"{ordering.quorum} of {len(ordering.consenters)} orderers sign each block (BFT; {owners})"


def _orderers(ordering: Ordering) -> str:
    if not ordering.is_bft:
        names = ", ".join(ordering.organisations)
        return (
            "That there is one chain: each block carries one orderer's signature, so an organisation of"
            f" {names} alone could make other blocks out of endorsed transactions, leave some out, or show"
            " two chains."
        )
    orderers, quorum = len(ordering.consenters), ordering.quorum
    forgers, splitters = ordering.least(quorum), ordering.least(2 * quorum - orderers)
    censors = ordering.least(orderers - quorum + 1)
    return (
        f"That the orderers left nothing out: {quorum} of {orderers} sign each block. To make blocks without"
        f" the others takes {_together(forgers)}, to show two chains {_together(splitters)}, to leave"
        f" transactions out or to stop the channel {_together(censors)}."
    )


def _together(organisations: list[str]) -> str:
    if len(organisations) == 1:
        return f"{organisations[0]} alone"
    return f"{len(organisations)} organisations together"
