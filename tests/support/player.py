"""A node that plays its rounds as any client could: real trees, a key per task, signed results."""

import os
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from executor.network import Network
from learning.fit import FitOptions, FitTask, fit
from learning.rows import Rows
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.possession import prove_possession
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share
from support.channel import DIGESTS, Member

EXECUTION, MODEL = "execution-record", "model"
N_NEW, N_SHARE, N_MAX, N_FEATURES = 3, 2, 5, 30
PROFILE = b'{"container":"none"}'

Call = tuple[tuple[Any, ...], dict[str, Any]]


@cache
def fitted(node: str) -> tuple[Estimator, ...]:
    """FIT the first trees of a node."""
    rng = np.random.default_rng(int.from_bytes(Digest.of(node.encode()).raw[:4], "big"))
    X = rng.normal(size=(200, N_FEATURES))
    rows = Rows.of(X, X[:, 0] + X[:, 1] * X[:, 2] > 1.5)
    return tuple(fit(rows, FitTask(node, 0, 0, N_NEW, 7, FitOptions(), TreeLimits(N_FEATURES, format=2))))


@dataclass
class Player:
    """One node of a running process, in its first iteration or in another one that it opens and shares in."""

    member: Member
    process: str
    key: SigningKey = field(default_factory=lambda: SigningKey(os.urandom(32)))
    ensemble: dict[EstimatorId, Digest] = field(default_factory=dict)
    iteration: int = 0
    state: Digest | None = None
    """What the iteration before left."""

    @property
    def node(self) -> str:
        return self.member.identity

    @property
    def task(self) -> TaskId:
        return TaskId(self.process, self.node, self.iteration)

    @property
    def left(self) -> Digest:
        """The state that its first iteration leaves."""
        return Digest.of(self.node.encode())

    def opening(self) -> dict[str, Any]:
        place = (self.process, self.node, self.iteration)
        answer = self.member.evaluate("orchestration", "TaskContext", *place)
        self.commitment = Opening.for_task(
            TaskContext.from_dict(answer),
            self.key.verify_key,
            state=self.state,
            data=Digest.parse(DIGESTS[7]),
            sandbox=Digest.of(PROFILE),
        )
        return self.commitment.to_dict()

    def open(self) -> None:
        """Open its task on every peer."""
        self.member.submit(*self.call_open())

    def share(self, offered: tuple[Estimator, ...] | None = None) -> None:
        """SHARE on every peer."""
        call, options = self.call_share(offered)
        self.member.submit(*call, **options)

    def complete(self) -> None:
        """Complete on every peer what all neighbours have shared for."""
        call, options = self.call_complete()
        self.member.submit(*call, **options)

    def publish(self) -> None:
        """Publish its model on every peer."""
        call, options = self.call_publish()
        self.member.submit(*call, **options)

    def call_open(self) -> tuple[Any, ...]:
        """Commit to a key, with its proof and the profile of a container that there is none of."""
        place = (self.process, self.node, self.iteration)
        return (EXECUTION, "OpenTask", *place, self.opening(), self.proof().hex(), PROFILE.decode())

    def proof(self) -> bytes:
        """Prove that this node holds the key it opens its task with."""
        organisation = Network.load().msp_id(self.member.organisation)
        return prove_possession(self.key, self.task, organisation, self.commitment)

    def signed(self, function: str, raw: bytes, key: SigningKey | None = None) -> Call:
        action = Action.SHARE if function == "Share" else Action.COMPLETE
        digest = Digest.of(raw)
        signature = sign_statement(key or self.key, statement(self.task, self.commitment, action, digest))
        place = (self.process, self.node, self.iteration)
        call = (EXECUTION, function, *place, str(digest), signature.hex())
        return call, {"transient": {"share" if function == "Share" else "result": raw}}

    def call_share(self, offered: tuple[Estimator, ...] | None = None, key: SigningKey | None = None) -> Call:
        chosen = fitted(self.node)[:N_SHARE] if offered is None else offered
        return self.signed("Share", Share(chosen).to_bytes(), key)

    def call_complete(self, n_max: int = N_MAX) -> Call:
        """Take everything the neighbours offered and keep the first ids."""
        offers = self.member.evaluate(EXECUTION, "Offers", self.process, self.node, 0)
        assert not offers["missing"]
        slots = [
            SlotRead(
                slot["sender"],
                0,
                Digest.parse(slot["share"]),
                tuple(EstimatorId.parse(text) for text in slot["ids"]),
            )
            for slot in offers["slots"]
        ]
        own = fitted(self.node)
        others = [estimator for slot in slots for estimator in fitted(slot.sender)[:N_SHARE]]
        members = {estimator.id: estimator.tree.digest for estimator in (*own, *others)}
        self.ensemble = dict(sorted(members.items())[:n_max])
        result = TaskResult(
            0,
            tuple(estimator.tree.digest for estimator in own),
            tuple(slots),
            tuple(self.ensemble),
            ensemble_digest(list(self.ensemble.items())),
            self.left,
            {"auc": "0.97"},
        )
        return self.signed("Complete", result.to_bytes())

    def call_publish(self) -> Call:
        """Publish the ensemble with the one tree of it that was never shared."""
        unshared = tuple(e for e in fitted(self.node)[N_SHARE:] if e.id in self.ensemble)
        raw = Share(unshared).to_bytes()
        ids = [str(estimator_id) for estimator_id in self.ensemble]
        digest = ensemble_digest(list(self.ensemble.items()))
        call = (
            MODEL,
            "Publish",
            self.process,
            self.node,
            ids,
            str(digest),
            {"auc": "0.98"},
            str(Digest.of(raw)),
        )
        return call, {"transient": {"trees": raw}}


def shared(players: list[Player]) -> list[Player]:
    """Let nodes open their tasks and share."""
    for player in players:
        player.open()
        player.share()
    return players


def played(players: list[Player]) -> list[Player]:
    """Let nodes share before any completes; a transaction that is not valid at the first attempt fails."""
    for player in shared(players):
        player.complete()
    return players
