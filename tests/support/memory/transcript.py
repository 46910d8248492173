"""What peers endorse in a whole life of a process: every function of every contract, once.

As a program, this is another peer: an interpreter with hash seeds of its own, whose state was built in
another order. It gets the trees of the nodes on standard input and writes its transcript to standard output.
"""

import hashlib
import json
import sys
from datetime import timedelta

from protocol.trees.share import Share, ShareLimits
from support.memory import federation as parties
from support.memory.composite import central
from support.memory.federation import DIGESTS, EXECUTION, LIMITS, MODEL, Federation, changed, played
from support.memory.scenario import IMAGE, NODES

ORCHESTRATION, P = "orchestration", "fraud-2026"


class Peer:
    """Endorses calls and keeps what it signed."""

    def __init__(self, turned):
        self.turned, self.signed = turned, []

    def endorse(self, member, chaincode, function, *arguments, **options):
        """Endorse a call that is not committed."""
        ledger = member.ledger
        kept = ledger.state
        if self.turned:
            ledger.state = dict(reversed(kept.items()))
        made = member.endorse(chaincode, function, *arguments, tx_id="tx", **options)
        ledger.state = kept
        assert made.status == 200, made.message
        self.signed.append([chaincode, function, hashlib.sha256(made.bytes).hexdigest()])


def transcript(turned=False):
    """Return chaincode, function and digest of all that a peer endorses."""
    peer = Peer(turned)
    propose(peer)
    coordinate(peer)
    run(peer)
    publish(peer)
    return peer.signed


def propose(peer):
    """Image and process, up to the start."""
    channel = Federation(started=False)
    scientist, admin = channel.scientist1, channel.admin1
    repository = "registry.example:5000/attestree/learner"
    peer.endorse(scientist, "image", "Register", IMAGE[0], "2", DIGESTS[1], DIGESTS[2], repository)
    peer.endorse(scientist, "image", "Retire", *IMAGE)
    peer.endorse(scientist, "image", "Attest", *IMAGE, DIGESTS[2])
    scientist.submit("image", "Attest", *IMAGE, DIGESTS[2])
    for function in ("Get", "History", "ListRebuilds"):
        peer.endorse(scientist, "image", function, *IMAGE)
    peer.endorse(scientist, "image", "RebuildHistory", *IMAGE, "Org1MSP")
    peer.endorse(scientist, "image", "List")
    peer.endorse(scientist, ORCHESTRATION, "Create", changed("process", "second"))
    peer.endorse(admin, ORCHESTRATION, "Accept", P)
    admin.submit(ORCHESTRATION, "Accept", P)
    channel.admin2.submit(ORCHESTRATION, "Accept", P)
    peer.endorse(admin, ORCHESTRATION, "Start", P)
    peer.endorse(admin, ORCHESTRATION, "Abort", P, "over")


def coordinate(peer):
    """A coordinator's steps."""
    channel = central()
    peer.endorse(channel.scientist3, ORCHESTRATION, "OpenStep", P, "prepare")
    peer.endorse(channel.admin1, ORCHESTRATION, "ReplaceCoordinator", P, "Org2MSP")


def run(peer):
    """Changes of a process, and one round of its nodes."""
    channel = Federation()
    players, admin = channel.players, channel.admin1
    channel.register(version="2")
    peer.endorse(admin, ORCHESTRATION, "Join", P, "node06", "Org1MSP", 1)
    peer.endorse(admin, ORCHESTRATION, "Leave", P, "node01", 1)
    peer.endorse(admin, ORCHESTRATION, "ChangeTopology", P, 1, {"kind": "full"})
    peer.endorse(admin, ORCHESTRATION, "UpdateImage", P, 1, "2")
    asked = admin.submit(ORCHESTRATION, "ChangeTopology", P, 1, {"kind": "full"})
    peer.endorse(channel.admin2, *channel.agreement(asked))
    peer.endorse(admin, ORCHESTRATION, "Withdraw", P, asked["number"])
    peer.endorse(admin, ORCHESTRATION, "LeaveOut", P, "node03", "silent")
    peer.endorse(admin, ORCHESTRATION, "LeaveOutOrganisation", P, "Org2MSP", "silent")
    node = players["node01"]
    peer.endorse(node.member, *node.call_open(0))
    for player in players.values():
        player.open(0)
    arguments, options = node.call_share()
    peer.endorse(node.member, *arguments, **options)
    peer.endorse(node.member, EXECUTION, "Fail", P, "node01", 0, "OOM", "memory")
    peer.endorse(node.member, EXECUTION, "Refuse", P, "node01", 0, "IMAGE_MISMATCH", {"b": 1, "a": 2})
    late = channel.time + timedelta(hours=3)
    peer.endorse(node.member, EXECUTION, "Expire", P, "node01", 0, time=late)
    for player in players.values():
        player.share()
    arguments, options = node.call_complete()
    peer.endorse(node.member, *arguments, **options)
    for player in players.values():
        player.complete()
    for function in ("Get", "Status", "History", "ModelContext", "Asks", "Changes", "Votes"):
        peer.endorse(admin, ORCHESTRATION, function, P)
    peer.endorse(admin, ORCHESTRATION, "TaskContext", P, "node01", 1)
    peer.endorse(admin, ORCHESTRATION, "ProgressHistory", P, "node01")
    peer.endorse(admin, ORCHESTRATION, "List")
    for function, *more in (
        ("GetTask", "node01", 0),
        ("FirstShare", "node01", 0),
        ("ListTasks",),
        ("ListRefusals",),
        ("Artifacts",),
        ("ArtifactsOf", "Org1MSP"),
        ("Slots", "node01"),
        ("Offers", "node01", 0),
        ("Standing", "node01"),
        ("LastResult", "node01"),
        ("Estimator", "node01/0000"),
        ("Digests", ["node01/0000", "node02/0003"]),
        ("Twins",),
        ("Estimators", ["node01/0000", "node02/0003"]),
        ("Lineage", "node01/0000"),
    ):
        peer.endorse(node.member, EXECUTION, function, P, *more)
    peer.endorse(node.member, EXECUTION, "History", "task", [P, "node01", "0"])
    peer.endorse(node.member, EXECUTION, "ImageUses", *IMAGE)
    challenge(peer, channel)


def challenge(peer, channel):
    """A task that another organisation doubts."""
    task = (P, "node01", 0)
    peer.endorse(channel.auditor2, EXECUTION, "Challenge", *task, [], "too good")
    channel.auditor2.submit(EXECUTION, "Challenge", *task, [], "too good")
    answer = ("AnswerChallenge", *task, "Org2MSP", "Org3MSP", DIGESTS[3])
    peer.endorse(channel.admin1, EXECUTION, *answer)
    channel.admin1.submit(EXECUTION, *answer)
    replayed = {"share": DIGESTS[1], "result": DIGESTS[2], "differing": ["node01/0000"]}
    peer.endorse(channel.auditor3, EXECUTION, "JudgeChallenge", *task, "Org2MSP", replayed)
    channel.auditor3.submit(EXECUTION, "JudgeChallenge", *task, "Org2MSP", replayed)
    peer.endorse(channel.auditor3, EXECUTION, "ListChallenges", P)


def publish(peer):
    """The end of a process, and a model of it."""
    channel = played()
    node, admin = channel.players["node01"], channel.admin1
    arguments, options = node.call_publish()
    peer.endorse(node.member, *arguments, **options)
    peer.endorse(admin, MODEL, "PublishFor", P, "node03")
    peer.endorse(admin, MODEL, "Unpublished", P, ["node01", "node02"])
    channel.publish_all()
    peer.endorse(admin, ORCHESTRATION, "Complete", P)
    admin.submit(ORCHESTRATION, "Complete", P)
    peer.endorse(channel.admin3, MODEL, "Request", P, "node01", "to compare")
    asked = channel.admin3.submit(MODEL, "Request", P, "node01", "to compare")
    peer.endorse(admin, MODEL, "Decide", P, "node01", "Org3MSP", 0, asked["digest"], True)
    for function in ("Requests", "Catalogue"):
        peer.endorse(admin, MODEL, function, P)
    peer.endorse(admin, ORCHESTRATION, "AccessTerms", P)
    channel.start_from("node01", "second")
    peer.endorse(admin, EXECUTION, "InitialModel", "second")
    peer.endorse(admin, MODEL, "Grant", P, "node01", "Org3MSP")
    peer.endorse(admin, MODEL, "Revoke", P, "node01", "Org2MSP")
    peer.endorse(admin, MODEL, "RequestRevocation", P, "node01", "Org2MSP", "it is over")
    for function in ("Get", "Trees", "Members", "Access", "AccessHistory", "History"):
        peer.endorse(channel.auditor1, MODEL, function, P, "node01")
    peer.endorse(channel.auditor1, MODEL, "List")
    peer.endorse(channel.auditor1, MODEL, "Uses", P, "node01/0000")


def trees():
    """The shares of all nodes in both rounds, as another interpreter reads them."""
    fitted = {
        f"{node} {iteration}": Share(parties.estimators(node, iteration)).to_bytes().hex()
        for node in NODES
        for iteration in (0, 1)
    }
    return json.dumps(fitted)


def given(text):
    """Take the trees of another interpreter instead of doing FIT."""
    shares = {name: Share.from_bytes(bytes.fromhex(raw), ShareLimits(99), LIMITS) for name, raw in
              json.loads(text).items()}  # fmt: skip
    return lambda node, iteration: shares[f"{node} {iteration}"].estimators


if __name__ == "__main__":
    parties.estimators = given(sys.stdin.read())
    json.dump(transcript(turned=True), sys.stdout)
