"""A small federation on the channel in memory, played to its end and recorded as blocks.

It has what audits meet: a transaction that lost a race, a task that failed, a revoked certificate, a model
with trees that were never shared, access given and taken away, and models that another member published, one
of which its node completed.
"""

from functools import cache

from executor.audit.fabric import messages as m
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import TaskResult, ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import Tree
from support.memory import blocks
from support.memory.federation import LIMITS, MODEL, Federation, Player
from support.memory.scenario import DIGESTS, IMAGE, SPECIFICATION, changed

N_NEW, N_SHARE = 2, 1
SPEC = changed("steps", 0, "iterations", 2)
SPEC = changed("steps", 0, "parameters", "n_new", N_NEW, base=SPEC)
SPEC = changed("steps", 0, "parameters", "n_share", N_SHARE, base=SPEC)
SPEC = changed("steps", 0, "parameters", "n_max", 4, base=SPEC)
PROCESS = SPECIFICATION["process"]


@cache
def small_tree(estimator_id: EstimatorId) -> Estimator:
    """A tree of one split, another one for each id."""
    seed = estimator_id.counter + 100 * int(estimator_id.creator.removeprefix("node"))
    leaf = (seed % 97) / 97
    tree = Tree.from_arrays(
        [seed % 30, -1, -1], [seed / 7, 0, 0], [1, -1, -1], [2, -1, -1], [0, leaf, 1 - leaf], limits=LIMITS
    )
    return Estimator(estimator_id, tree)


class SmallPlayer(Player):
    """A node whose trees need no FIT; it shares its first trees and takes what it is offered."""

    n_new, n_share, n_max = N_NEW, N_SHARE, 4
    make = staticmethod(small_tree)

    def fitted(self):
        first = (self.task.iteration - self.joined) * self.n_new
        return tuple(self.make(EstimatorId(self.node, first + number)) for number in range(self.n_new))

    def result(self, **changes):
        made = {estimator.id: estimator.tree.digest for estimator in self.fitted()}
        slots = self.slots()
        taken = {found: self.make(found).tree.digest for slot in slots for found in slot.taken}
        kept = dict(sorted({**self.ensemble, **made, **taken}.items())[: self.n_max])
        self.after = kept
        fields = {
            "first": self.task.iteration * self.n_new,
            "created": tuple(made.values()),
            "slots": tuple(slots),
            "ensemble": tuple(kept),
            "ensemble_digest": ensemble_digest(list(kept.items())),
            "state": Digest.of(f"{self.node} {self.task.iteration}".encode()),
            "metrics": {"rows": 200},
        }
        return TaskResult(**(fields | changes))

    def share(self, offered=None, **more):
        return super().share(self.fitted()[: self.n_share] if offered is None else offered, **more)

    def call_publish(self, **changes):
        trees = [self.make(estimator_id) for estimator_id in self.unshared()]
        raw = Share(tuple(trees)).to_bytes()
        ids, digest = list(map(str, self.ensemble)), ensemble_digest(list(self.ensemble.items()))
        process = self.federation.process
        arguments = (MODEL, "Publish", process, self.node, ids, str(digest), {"auc": "0.98"})
        if not trees:
            return arguments, {}
        return (*arguments, str(Digest.of(raw))), {"transient": {"trees": raw}}


class Successor(SmallPlayer):
    """A node that goes on with a model and counts its trees from there."""

    @classmethod
    def of(cls, federation, node, model):
        """A node that has begun with a published model, and has done nothing yet."""
        made, ids = cls(federation, node), [EstimatorId.parse(member["id"]) for member in model["estimators"]]
        made.ensemble, made.keys = {id_: cls.make(id_).tree.digest for id_ in ids}, 100
        made.first = max((id_.counter + 1 for id_ in ids if id_.creator == node), default=0)
        return made

    def fitted(self):
        return tuple(self.make(EstimatorId(self.node, self.first + number)) for number in range(self.n_new))

    def result(self, **changes):
        return super().result(**{"first": self.first, **changes})


@cache
def audited():
    """Play it once, to its end."""
    federation = blocks.record(Federation)(SPEC)
    federation.players = {node: SmallPlayer(federation, node) for node in SPEC["nodes"]}
    first, second, third, fourth = federation.players.values()
    first.open(0)
    first.member.submit("execution-record", "Fail", PROCESS, first.node, 0, "OOM", "too much")
    _revoke(federation)
    federation.play(0)
    _race(federation)
    federation.play(1)
    _challenge(federation)
    federation.auditor2.submit("image", "Attest", *IMAGE, DIGESTS[2])
    first.publish()
    second.publish()
    federation.admin1.submit(MODEL, "Grant", PROCESS, first.node, "Org3MSP")
    federation.admin1.submit(MODEL, "Revoke", PROCESS, first.node, "Org3MSP")
    for node in (third.node, fourth.node):
        federation.scientist1.submit(MODEL, "PublishFor", PROCESS, node)
    third.publish()
    federation.scientist1.submit("orchestration", "Complete", PROCESS)
    asked = federation.admin3.submit(MODEL, "Request", PROCESS, first.node, "to compare")
    federation.admin1.submit(MODEL, "Decide", PROCESS, first.node, "Org3MSP", 0, asked["digest"], True)
    return federation


def _challenge(federation):
    """Doubt two tasks: one is run again before an auditor, of the other nobody has said anything yet."""
    task = (PROCESS, "node01", 0)
    federation.auditor2.submit("execution-record", "Challenge", *task, [], "too good")
    federation.admin1.submit(
        "execution-record", "AnswerChallenge", *task, "Org2MSP", "Org3MSP", "sha256:" + "3" * 64
    )
    found = federation.auditor1.evaluate("execution-record", "GetTask", *task)
    share, result = (found[part]["signed"]["payload_digest"] for part in ("offered", "outcome"))
    replayed = {"share": share, "result": result, "differing": []}
    federation.auditor3.submit("execution-record", "JudgeChallenge", *task, "Org2MSP", replayed)
    federation.auditor3.submit("execution-record", "Challenge", PROCESS, "node02", 0, [], "who knows")


def _race(federation):
    """Let two organisations register the first version of one name in one block."""
    both = [
        member.endorse("image", "Register", "attestree/other", "2.0.0", "sha256:" + "1" * 64,
                       "sha256:" + "2" * 64, "registry.example:5000/attestree/learner")
        for member in (federation.scientist1, federation.scientist2)
    ]  # fmt: skip
    assert federation.commit(both) == ["VALID", "MVCC_READ_CONFLICT"]


def _revoke(federation):
    """Put a member of Org3 on its revocation list, by an update that Org3's administrator signs."""
    recorder = federation.recorder
    issuer = blocks.authority("Org3MSP")
    recorder.update(
        revocation("Org3MSP", issuer.revoke(issuer.issue("gone", "client"))), [issuer.issue("boss", "admin")]
    )


def revocation(msp_id, crl):
    """An update that gives an organisation's MSP a revocation list."""

    def change(group, read, write):
        application = group.groups["Application"]
        value = application.groups[msp_id].values["MSP"]
        config = m.msp_config.MSPConfig.FromString(value.value)
        inner = m.msp_config.FabricMSPConfig.FromString(config.config)
        inner.revocation_list.append(crl)
        config.config = inner.SerializeToString()
        value.value, value.version = config.SerializeToString(), value.version + 1
        read.groups["Application"].groups[msp_id].SetInParent()
        changed_value = write.groups["Application"].groups[msp_id].values["MSP"]
        changed_value.CopyFrom(value)

    return change
