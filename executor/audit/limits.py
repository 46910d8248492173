"""What no audit of a ledger can prove, in plain sentences, and who would have to act together to lie."""

from executor.audit.chain import Chain
from executor.audit.fabric.configuration import BFT

ALWAYS = (
    "That a task really ran in its container: whoever holds a node's key and its host can sign trees made"
    " elsewhere. It takes one organisation, for its own nodes alone; a challenge exposes it.",
    "That the data are true: a commitment binds a node to its rows and says nothing of where they come from.",
    "That time stamps are true: each is its client's claim. The order of events is that of the blocks.",
    "That a well-formed tree is harmless: an audit shows who made it and who took it.",
)


def not_proven(chain: Chain) -> list[str]:
    """Return the sentences that hold for a channel as it is configured."""
    configuration = chain.configuration
    found = [_orderers(chain)]
    members = len(configuration.application)
    needed = members // 2 + 1
    found.append(
        f"That chaincode ran as written where it was endorsed: {needed} of {members} organisations together"
        " could endorse anything. What this audit computes again does not rest on their word."
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


def _orderers(chain: Chain) -> str:
    configuration = chain.configuration
    names = ", ".join(configuration.orderers)
    if configuration.consensus == BFT:
        return (
            "That the orderers left nothing out for good: a quorum of them signs each block, so more than a"
            f" third of the orderers ({names}) together could censor, and no fewer could forge."
        )
    return (
        f"That there is one chain: each block carries one orderer's signature, so an organisation of {names}"
        " alone could make other blocks out of endorsed transactions, leave some out, or show two chains."
    )
