"""A round of twenty nodes on the live contracts, and the time a SHARE takes in the chaincode alone."""

import base64
import hashlib
import importlib
import json
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench._chaincode_network import ENVIRONMENT, NODES, ROOT, Network, say
from bench._federation import FEATURES, synthetic
from learning.fit import FitOptions, FitTask, fit
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.possession import prove_possession
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share

TREES, REPEATS = 10, 15
PROCESS, RECORD = "bench", "execution-record"
PROFILE = b'{"container":"none"}'
IMAGE = ("attestree/learner", "1.0.0")
DIGESTS = [str(Digest.of(bytes([number]))) for number in range(5)]
_CALL_SECONDS = 300
Call = dict[str, Any]


@dataclass(frozen=True)
class RoundOutcome:
    """What became of the transactions of one step of the round, all endorsed before any was submitted."""

    function: str
    codes: tuple[str, ...]
    blocks: tuple[int, ...]

    @property
    def conflicts(self) -> int:
        """How many were not valid."""
        return sum(code != "VALID" for code in self.codes)

    @property
    def most_in_one_block(self) -> int:
        """How many met in the fullest block."""
        return max(Counter(self.blocks).values())


def real_trees() -> list[Content]:
    """FIT ten trees on rows like the fraud data's."""
    (rows,) = synthetic(1).values()
    task = FitTask("node00", 0, 0, TREES, 42, FitOptions(), TreeLimits(FEATURES))
    return [estimator.tree for estimator in fit(rows, task)]


def share_milliseconds(trees: Sequence[Content]) -> float:
    """Return the median processor time of execution-record's Share in this process, what it calls included.

    The contract waits for nothing here, so this is the time it takes where no other work holds it up.
    """
    # The test kit's channel in memory: the contracts and the shim's context are real, gRPC is not there.
    federation: Any = importlib.import_module("support.memory.federation").Federation()
    player = federation.players["node01"]
    player.open(0)
    arguments, options = player.call_share(_estimators("node01", trees))
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        answer = player.member.endorse(*arguments, **options)
        times.append(1000 * (time.process_time() - began))
        if answer.status != 200:
            raise SystemExit(f"the share was refused: {answer.message}")
    return statistics.median(times)


def play_round(network: Network, trees: Sequence[Content]) -> list[RoundOutcome]:
    """Let twenty nodes open, share and complete at once, each step meeting in as few blocks as it can."""
    say(f"a round of {NODES} nodes on the live contracts")
    nodes = {f"node{i:02d}": "org1" if i <= NODES // 2 else "org2" for i in range(1, NODES + 1)}
    _start_process(network, nodes)
    players = [_Player(node, org, _estimators(node, trees)) for node, org in nodes.items()]
    contexts = _queries(network, [player.call("orchestration", "TaskContext") for player in players])
    opened = [player.opening(found) for player, found in zip(players, contexts, strict=True)]
    outcomes = [_submit(network, "OpenTask", opened)]
    outcomes.append(_submit(network, "Share", [player.share() for player in players]))
    offers = _queries(network, [player.call(RECORD, "Offers") for player in players])
    digests = {item.id: item.tree.digest for player in players for item in player.estimators}
    results = [player.complete(found, digests) for player, found in zip(players, offers, strict=True)]
    outcomes.append(_submit(network, "Complete", results))
    return outcomes


class _Player:
    """One node with the key of its only task."""

    def __init__(self, node: str, org: str, estimators: Sequence[Estimator]) -> None:
        self.node, self.org, self.estimators = node, org, tuple(estimators)
        self.key = SigningKey(hashlib.sha256(node.encode()).digest())
        self.task = TaskId(PROCESS, node, 0)

    def call(self, chaincode: str, function: str, *more: Any) -> Call:
        """Make a query about this node's task."""
        return _call(self.org, self.node, chaincode, function, PROCESS, self.node, 0, *more) | {
            "evaluate": True
        }

    def opening(self, context: Any) -> Call:
        """Commit to what the ledger asks for."""
        self.commitment = Opening.for_task(
            TaskContext.from_dict(context),
            self.key.verify_key,
            state=None,
            data=Digest.parse(DIGESTS[3]),
            sandbox=Digest.of(PROFILE),
        )
        organisation = f"Org{self.org.removeprefix('org')}MSP"
        proof = prove_possession(self.key, self.task, organisation, self.commitment).hex()
        said = (self.commitment.to_dict(), proof, PROFILE.decode())
        return _call(self.org, self.node, RECORD, "OpenTask", PROCESS, self.node, 0, *said)

    def share(self) -> Call:
        return self._signed("Share", Action.SHARE, "share", Share(self.estimators).to_bytes())

    def complete(self, offers: Any, digests: dict[EstimatorId, Digest]) -> Call:
        """Take everything that is offered and keep all of it."""
        slots = tuple(
            SlotRead(
                slot["sender"],
                slot["iteration"],
                Digest.parse(slot["share"]),
                tuple(EstimatorId.parse(text) for text in slot["ids"]),
            )
            for slot in offers["slots"]
        )
        own = [item.id for item in self.estimators]
        ensemble = sorted({*own, *(taken for slot in slots for taken in slot.taken)})
        created = tuple(item.tree.digest for item in self.estimators)
        kept = ensemble_digest([(member, digests[member]) for member in ensemble])
        state = Digest.of(self.node.encode())
        result = TaskResult(0, created, slots, tuple(ensemble), kept, state, {"auc": "0.97"})
        return self._signed("Complete", Action.COMPLETE, "result", result.to_bytes())

    def _signed(self, function: str, action: Action, field: str, raw: bytes) -> Call:
        digest = Digest.of(raw)
        signature = sign_statement(self.key, statement(self.task, self.commitment, action, digest))
        made = _call(
            self.org, self.node, RECORD, function, PROCESS, self.node, 0, str(digest), signature.hex()
        )
        return made | {"transient": {field: base64.b64encode(raw).decode()}}


def _estimators(node: str, trees: Sequence[Content]) -> list[Estimator]:
    return [Estimator(EstimatorId(node, counter), tree) for counter, tree in enumerate(trees)]


def _start_process(network: Network, nodes: dict[str, str]) -> None:
    parameters = {
        "n_new": TREES,
        "n_max": TREES * NODES,
        "n_share": TREES,
        "seed": 42,
        "limits": {"n_features": FEATURES},
        "schema_digest": DIGESTS[2],
    }
    specification = {
        "version": 2,
        "estimator_format": 1,
        "process": PROCESS,
        "organisations": ["Org1MSP", "Org2MSP"],
        "nodes": {node: f"Org{org.removeprefix('org')}MSP" for node, org in nodes.items()},
        "topology": {"kind": "full"},
        "steps": [
            {
                "name": "train",
                "image": {
                    "name": IMAGE[0],
                    "version": IMAGE[1],
                    "image_id": DIGESTS[1],
                    "manifest_digest": DIGESTS[0],
                },
                "iterations": 1,
                "parameters": parameters,
            }
        ],
    }
    register = ("image", "Register", *IMAGE, DIGESTS[0], DIGESTS[1], "registry:5000/attestree/learner")
    for call in (
        _call("org1", "data-scientist", *register),
        _call("org1", "data-scientist", "orchestration", "Create", specification),
        _call("org1", "admin", "orchestration", "Accept", PROCESS),
        _call("org2", "admin", "orchestration", "Accept", PROCESS),
        _call("org1", "data-scientist", "orchestration", "Start", PROCESS),
    ):
        _submit(network, call["arguments"][0], [call])


def _call(org: str, user: str, chaincode: str, *arguments: Any) -> Call:
    texts = [part if isinstance(part, str) else json.dumps(part) for part in arguments]
    return {"org": org, "user": user, "chaincode": chaincode, "arguments": texts}


def _queries(network: Network, asked: list[Call]) -> list[Any]:
    """Run queries and return their parsed answers."""
    return [json.loads(base64.b64decode(found["payload"])) for found in _outcomes(network, asked)]


def _submit(network: Network, function: str, asked: list[Call]) -> RoundOutcome:
    found = _outcomes(network, asked)
    return RoundOutcome(
        function, tuple(item["code"] for item in found), tuple(item["block"] for item in found)
    )


def _outcomes(network: Network, asked: list[Call]) -> list[dict[str, Any]]:
    ran = subprocess.run(
        network.command("calls"),
        cwd=ROOT,
        env=ENVIRONMENT,
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=_CALL_SECONDS,
    )
    if ran.returncode != 0:
        raise SystemExit(f"load calls exited with {ran.returncode}\n{ran.stderr}")
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    for item, call in zip(found, asked, strict=True):
        if item["error"]:
            raise SystemExit(f"{call['chaincode']} {call['arguments'][0]}: {item['error']}")
    return found
