"""A federation on the channel in memory: nodes FIT real trees and play their rounds as an executor would."""

import base64
import copy
import hashlib
from dataclasses import replace
from functools import cache

import numpy as np

from chaincode.execution_record import ExecutionRecordContract
from chaincode.image import ImageContract
from chaincode.model import ModelContract
from chaincode.orchestration import OrchestrationContract
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.possession import prove_possession
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share
from support.memory.scenario import DIGESTS, NODES, SPECIFICATION, Channel, changed

EXECUTION, MODEL = "execution-record", "model"
N_FEATURES, N_NEW = 30, 10
DATA = Digest.parse(DIGESTS[7])
PROFILE = b'{"network":"none","version":1}'
SANDBOX = Digest.of(PROFILE)
LIMITS = TreeLimits(N_FEATURES)
TWO_ROUNDS = changed("steps", 0, "iterations", 2)
__all__ = ["DIGESTS", "NODES", "SPECIFICATION", "Federation", "Player", "changed", "estimators"]


@cache
def estimators(node, iteration, n_new=N_NEW):
    """FIT real trees for one round of a node; the counters follow those of the rounds before."""
    # Not needed by an interpreter that is given the trees, and slow to load.
    from learning.fit import FitOptions, FitTask, fit
    from learning.rows import Rows

    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(node.encode()).digest()[:4], "big"))
    X = rng.normal(size=(200, N_FEATURES))
    rows = Rows.of(X, X[:, 0] + X[:, 1] * X[:, 2] > 1.5)
    task = FitTask(node, iteration, iteration * n_new, n_new, 42, FitOptions(), LIMITS)
    return tuple(fit(rows, task))


MUTABLE = ("state", "versions", "policies", "changes", "events", "blocks", "time", "count", "sent", "process")


class Federation(Channel):
    """Four chaincodes, three organisations, and a running process of two of them."""

    def __init__(self, specification=TWO_ROUNDS, started=True):
        super().__init__(ImageContract(), OrchestrationContract(), ExecutionRecordContract(), ModelContract())
        for node, organisation in specification["nodes"].items():
            self.nodes[node] = self.member(node, organisation, role="node", node=node)
        if started:
            self.process = self.running(specification)
        else:
            self.register()
            self.process = self.create(specification)["process"]
        self.players = {node: Player(self, node) for node in specification["nodes"]}

    def start_from(self, node, process, digest=None):
        """Start another process of the same consortium from the model that a node has published."""
        model = self.auditor1.evaluate(MODEL, "Get", self.process, node)
        initial = {"process": self.process, "node": node, "digest": digest or model["digest"]}
        self.create(changed("initial_model", initial, base=TWO_ROUNDS) | {"process": process})
        for caller in (self.admin1, self.admin2):
            caller.submit("orchestration", "Accept", process)
        return self.admin1.submit("orchestration", "Start", process)

    def snapshot(self):
        """Remember the ledger and the players; the function returned brings both back."""
        kept = {name: copy.copy(getattr(self, name)) for name in MUTABLE}
        kept["changes"] = {place: list(changes) for place, changes in self.changes.items()}
        players = {node: dict(vars(player)) for node, player in self.players.items()}

        def restore():
            for name, value in kept.items():
                setattr(self, name, copy.copy(value))
            self.changes = {place: list(changes) for place, changes in kept["changes"].items()}
            for node, attributes in players.items():
                vars(self.players[node]).clear()
                vars(self.players[node]).update(attributes)
            return self

        return restore

    def play(self, iteration, nodes=None):
        """Play one whole round of all nodes, in order: everybody shares before anybody completes."""
        players = [self.players[node] for node in nodes or self.players]
        for player in players:
            player.open(iteration)
            player.share()
        for player in players:
            player.complete()

    def publish_all(self, *others):
        """Publish the models that are not there yet, of all nodes or of these: by the nodes themselves."""
        nodes = [*(others or self.players)]
        for node in self.admin1.evaluate(MODEL, "Unpublished", self.process, nodes)["nodes"]:
            self.players[node].publish()


class Player:
    """One node, its executor and its learner: opens, shares, completes, and remembers what it signed."""

    def __init__(self, federation, node):
        self.federation, self.node = federation, node
        self.member = federation.nodes[node]
        self.ensemble, self.state, self.keys, self.data = {}, None, 0, DATA
        self.joined = 0

    def opening(self, iteration, key=None, **changes):
        """Commit to what the ledger asks for, with a fresh key or with a given one."""
        self.task = TaskId(self.federation.process, self.node, iteration)
        self.keys += 1
        self.key = key or SigningKey(hashlib.sha256(f"{self.node} {self.keys}".encode()).digest())
        context = self.federation.context(self.node, iteration, self.federation.process)
        self.commitment = Opening.for_task(
            TaskContext.from_dict(context),
            self.key.verify_key,
            state=self.state,
            data=self.data,
            sandbox=SANDBOX,
        )
        return self.commitment.to_dict() | changes

    def call_open(self, iteration, **changes):
        """Open with the profile and the key's proof for what is sent, as far as that is an opening at all."""
        opening = self.opening(iteration, **changes)
        return (EXECUTION, "OpenTask", self.federation.process, self.node, iteration, opening,
                self.proof(opening).hex(), PROFILE.decode())  # fmt: skip

    def proof(self, opening, **other):
        """Sign an opening by this task's key, for this node and task or for another."""
        try:
            said = Opening.from_dict(opening)
        except AttestreeError:
            said = self.commitment
        task = replace(self.task, **{name: other[name] for name in other.keys() & {"node", "iteration"}})
        return prove_possession(self.key, task, other.get("organisation", self.member.organisation), said)

    def open(self, iteration, **more):
        return self.member.submit(*self.call_open(iteration), **more)

    def fitted(self):
        return estimators(self.node, self.task.iteration - self.joined)

    def signed(self, function, raw, key=None, action=None, **more):
        """Sign a payload for this task and return the call that sends it in the transient map."""
        action = action or (Action.SHARE if function == "Share" else Action.COMPLETE)
        digest = Digest.of(raw)
        signature = sign_statement(key or self.key, statement(self.task, self.commitment, action, digest))
        field = "share" if function == "Share" else "result"
        arguments = (EXECUTION, function, self.task.process, self.node, self.task.iteration, str(digest),
                     signature.hex())  # fmt: skip
        return arguments, {"transient": {field: raw}, **more}

    def call_share(self, offered=None, **more):
        share = Share(tuple(self.fitted() if offered is None else offered))
        return self.signed("Share", share.to_bytes(), **more)

    def share(self, offered=None, **more):
        arguments, options = self.call_share(offered, **more)
        return self.member.submit(*arguments, **options)

    def share_code(self, offered=None, **more):
        arguments, options = self.call_share(offered, **more)
        return self.member.code(*arguments, **options)

    def slots(self):
        """Read the offers of this iteration and take everything."""
        found = self.member.evaluate(EXECUTION, "Offers", self.task.process, self.node, self.task.iteration)
        assert not found["missing"]
        return [
            SlotRead(slot["sender"], slot["iteration"], Digest.parse(slot["share"]),
                     tuple(EstimatorId.parse(text) for text in slot["ids"]))
            for slot in found["slots"]
        ]  # fmt: skip

    def result(self, **changes):
        """The result of FIT, of GET taking every offer, and of a CROP that keeps the fifty first ids."""
        created = [estimator.tree.digest for estimator in self.fitted()]
        slots = changes.pop("slots", None)
        slots = self.slots() if slots is None else slots
        members = dict(self.ensemble)
        members |= {estimator.id: estimator.tree.digest for estimator in self.fitted()}
        for slot in slots:
            for estimator_id in slot.taken:
                members[estimator_id] = digest_of(estimator_id)
        kept = dict(sorted(members.items())[:50])
        self.after = kept
        fields = {
            "first": (self.task.iteration - self.joined) * N_NEW,
            "created": tuple(created),
            "slots": tuple(slots),
            "ensemble": tuple(kept),
            "ensemble_digest": ensemble_digest(list(kept.items())),
            "state": Digest.of(f"{self.node} {self.task.iteration}".encode()),
            "metrics": {"auc": "0.97", "rows": 200},
        }
        return TaskResult(**(fields | changes))

    def call_complete(self, result=None, **more):
        return self.signed("Complete", (result or self.result()).to_bytes(), **more)

    def complete(self, result=None, **more):
        result = result or self.result()
        arguments, options = self.call_complete(result, **more)
        answer = self.member.submit(*arguments, **options)
        self.ensemble, self.state = self.after, result.state
        return answer

    def complete_code(self, result=None, **more):
        arguments, options = self.call_complete(result, **more)
        return self.member.code(*arguments, **options)

    def call_publish(self, **changes):
        """Publish the last ensemble, with the trees that were never shared."""
        trees = changes.pop("trees", None)
        if trees is None:
            trees = [tree_of(estimator_id) for estimator_id in self.unshared()]
        raw = Share(tuple(trees)).to_bytes()
        fields = {
            "estimators": [str(estimator_id) for estimator_id in self.ensemble],
            "digest": str(ensemble_digest(list(self.ensemble.items()))),
            "metrics": {"auc": "0.98"},
        } | changes
        arguments = (MODEL, "Publish", self.federation.process, self.node, *fields.values())
        return (
            ((*arguments, str(Digest.of(raw))), {"transient": {"trees": raw}}) if trees else (arguments, {})
        )

    def unshared(self):
        ids = [str(estimator_id) for estimator_id in self.ensemble]
        found = self.member.evaluate(EXECUTION, "Estimators", self.federation.process, ids)
        return [EstimatorId.parse(text) for text in found["missing"]]

    def publish(self, **changes):
        arguments, options = self.call_publish(**changes)
        return self.member.submit(*arguments, **options)

    def publish_code(self, **changes):
        arguments, options = self.call_publish(**changes)
        return self.member.code(*arguments, **options)


def played():
    """Two rounds in which node01 keeps six trees of each FIT to itself."""
    federation = Federation()
    for iteration in (0, 1):
        for name, player in federation.players.items():
            player.open(iteration)
            player.share(estimators(name, iteration)[:4] if name == "node01" else None)
        for player in federation.players.values():
            player.complete()
    return federation


def ended(specification, kind=Federation):
    """A process of one round that is completed, all models published by their nodes."""
    federation = kind(specification)
    federation.play(0)
    federation.publish_all()
    federation.admin1.submit("orchestration", "Complete", federation.process)
    return federation


def for_all():
    """One that lets all decide on its models, each organisation asking once."""
    return ended(changed("steps", 0, "iterations", 1) | {"model_access": "all", "change_quota": 1})


@cache
def prepared(prepare=Federation):
    """Prepare a federation once; calling what is returned gives it back as it was."""
    return prepare().snapshot()


def tree_of(estimator_id):
    iteration, place = divmod(estimator_id.counter, N_NEW)
    return estimators(estimator_id.creator, iteration)[place]


def digest_of(estimator_id):
    return tree_of(estimator_id).tree.digest


def in_base64(raw):
    return base64.b64encode(raw).decode()
