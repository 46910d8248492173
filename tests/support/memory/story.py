"""The life of a federation, told through the proxies: every method of each, answered by real contracts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import refused
from executor.ledger.gateway.errors import refusal_in
from executor.ledger.transport import Receipt
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.challenges import Replayed
from protocol.task.opening import TaskId
from support.memory.federation import PROFILE, TWO_ROUNDS, Federation, changed
from support.memory.ledger import VALID

NAME, REPOSITORY = "attestree/learner", "registry.example:5000/attestree/learner"
DIGEST, MANIFEST = Digest.of(b"x"), Digest.of(b"y")
ESTIMATOR = EstimatorId("node01", 0)
NEXT = "next"


@dataclass
class MemberTransport:
    """One member's way to the channel in memory; keeps what went over it."""

    member: Any
    sent: list[tuple[str, str, str, tuple[str, ...], Any, bytes]] = field(default_factory=list)

    def evaluate(self, chaincode, function, *arguments):
        return self._endorse("evaluate", chaincode, function, arguments, None).payload

    def evaluate_agreed(self, chaincode, function, *arguments):
        return self.evaluate(chaincode, function, *arguments)

    def submit(self, chaincode, function, *arguments, transient=None, audience=None):
        made = self._endorse("submit", chaincode, function, arguments, transient)
        assert self.member.ledger.commit([made]) == [VALID]
        return Receipt(made.tx_id, self.member.ledger.blocks, made.payload)

    def _endorse(self, kind, chaincode, function, arguments, transient):
        made = self.member.endorse(chaincode, function, *arguments, transient=transient)
        if made.status >= 400:
            raise refused(refusal_in([made.message]))
        self.sent.append((kind, chaincode, function, arguments, transient, made.payload))
        return made

    def close(self):
        self.sent.clear()


class ScriptedTransport:
    """A peer that answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = [raw if isinstance(raw, bytes) else json.dumps(raw).encode() for raw in answers]
        self.asked, self.agreed, self.closed = [], [], False

    def evaluate(self, chaincode, function, *arguments):
        self.asked.append((chaincode, function, arguments, None))
        return self.answers.pop(0)

    def evaluate_agreed(self, chaincode, function, *arguments):
        self.agreed.append((chaincode, function))
        return self.evaluate(chaincode, function, *arguments)

    def submit(self, chaincode, function, *arguments, transient=None, audience=None):
        self.asked.append((chaincode, function, arguments, transient))
        return Receipt("tx", 1, self.answers.pop(0))

    def close(self):
        self.closed = True


@dataclass(frozen=True)
class Call:
    """One call of a proxy's method: what went to the peer, the bytes that came back, and what they became."""

    proxy: str
    method: str
    values: tuple[Any, ...]
    kind: str
    chaincode: str
    function: str
    arguments: tuple[str, ...]
    transient: Any
    raw: bytes
    found: Any

    @property
    def answer(self) -> Any:
        return json.loads(self.raw)

    def again(self, *answers) -> Any:
        """Call the method again, with a peer that gives these answers."""
        return called(Ledger(ScriptedTransport(*answers)), self.proxy, self.method, self.values)


def called(ledger: Ledger, proxy: str, method: str, values: tuple[Any, ...]) -> Any:
    """Call a proxy's method and return all of its answer."""
    found = getattr(getattr(ledger, proxy), method)(*values)
    return list(found) if isinstance(found, Iterator) else found


class Story:
    """A federation that lives by its proxies alone."""

    def __init__(self) -> None:
        self.federation = Federation(started=False)
        self.process = self.federation.process
        self.calls: list[Call] = []

    def tell(self, member: Any, proxy: str, method: str, *values: Any) -> Any:
        transport = MemberTransport(member)
        found = called(Ledger(transport), proxy, method, values)
        (sent,) = transport.sent
        self.calls.append(Call(proxy, method, values, *sent, found))
        return found

    def agree(self) -> None:
        """Register and retire images; propose two processes, give one up, start and change the other."""
        tell, name, found = self.tell, self.process, self.federation
        tell(found.scientist1, "images", "register", NAME, "2.0.0", DIGEST, MANIFEST, REPOSITORY, "words")
        tell(found.scientist2, "images", "attest", NAME, "2.0.0", MANIFEST)
        tell(found.scientist1, "orchestration", "create", changed("process", "fraud-2027", base=TWO_ROUNDS))
        tell(found.admin2, "orchestration", "abort", "fraud-2027", "why")
        for member in (found.admin1, found.scientist2):
            tell(member, "orchestration", "accept", name, Specification.from_dict(TWO_ROUNDS).digest)
        tell(found.scientist1, "orchestration", "start", name)
        asked = tell(found.admin1, "orchestration", "change_topology", name, 1, {"kind": "full"})
        tell(found.admin2, "orchestration", "agree", asked.answer)
        tell(found.admin1, "orchestration", "change_topology", name, 1, {"kind": "ring"})
        tell(found.admin1, "orchestration", "withdraw", name, 1)
        tell(found.admin1, "orchestration", "leave_out", name, "node03", "silent")
        tell(found.admin1, "orchestration", "leave_out_organisation", name, "Org2MSP", "silent")
        tell(found.admin1, "orchestration", "update_image", name, 1, "2.0.0")
        tell(found.admin1, "orchestration", "join", name, "node06", "Org1MSP", 1)
        tell(found.admin2, "orchestration", "leave", name, "node04", 1, "tired")
        tell(found.scientist1, "images", "retire", NAME, "2.0.0", "old")

    def fail(self) -> None:
        """Begin tasks that come to nothing: refused, failed, expired."""
        first, second, third, _ = self.federation.players.values()
        self.tell(first.member, "execution", "refuse", self.task("node01"), "IMAGE_MISMATCH", {"found": "x"})
        self.tell(first.member, "execution", "get_task", self.task("node01"))
        self.tell(first.member, "execution", "standing", self.process, "node01")
        self.open(second, 0)
        self.tell(second.member, "execution", "fail", second.task, "OOM", "too much")
        self.open(third, 0)
        self.federation.time += timedelta(days=1)
        self.tell(third.member, "execution", "expire", third.task)

    def play(self, iteration: int, nodes: tuple[str, ...], offered: int) -> None:
        """Let every node share before any completes; each says everything twice, which changes nothing."""
        players = [self.federation.players[node] for node in nodes]
        for player in players:
            self.open(player, iteration)
            arguments, options = player.call_share(player.fitted()[:offered])
            self._signed(player, "share", arguments, options["transient"]["share"])
        for player in players:
            result = player.result()
            arguments, options = player.call_complete(result)
            self._signed(player, "complete", arguments, options["transient"]["result"])
            player.ensemble, player.state = player.after, result.state

    def open(self, player: Any, iteration: int) -> None:
        opening = player.opening(iteration)
        said = (player.commitment, player.proof(opening), PROFILE)
        self.tell(player.member, "execution", "open_task", player.task, *said)

    def challenge(self) -> None:
        """Doubt a task, open its inputs to an auditor, and have it run again."""
        found, task = self.federation, self.task("node01")
        self.tell(found.auditor2, "execution", "challenge", task, ["Org3MSP"], "too good")
        self.tell(found.admin1, "execution", "answer_challenge", task, "Org2MSP", "Org3MSP", DIGEST)
        replayed = Replayed(DIGEST, MANIFEST, (ESTIMATOR,))
        self.tell(found.auditor3, "execution", "judge_challenge", task, "Org2MSP", replayed)

    def publish(self) -> None:
        """Publish a model with trees that were never shared, let others read it, end the process."""
        name, player, found = self.process, self.federation.players["node01"], self.federation
        (*_, digest, metrics, _), options = player.call_publish()
        ids, trees = list(player.ensemble), options["transient"]["trees"]
        self.tell(
            player.member, "models", "publish", name, "node01", ids, Digest.parse(digest), metrics, trees
        )
        self.tell(found.admin1, "models", "grant", name, "node01", "Org3MSP", "2027-01-31T00:00:00Z")
        self.tell(found.admin1, "models", "revoke", name, "node01", "Org3MSP")
        for node in ("node02", "node03"):
            self.tell(found.admin1, "models", "publish_for", name, node)
        self.tell(found.admin1, "orchestration", "complete", name)
        asked = self.tell(found.admin3, "models", "request", name, "node01", "to compare")
        self.tell(found.admin1, "models", "decide", asked.answer, True)
        self.tell(found.admin1, "models", "request_revocation", name, "node01", "Org3MSP", "it is over")
        found.start_from("node01", NEXT)

    def coordinate(self) -> None:
        """Ask for another coordinator of a process that has one, and open its step."""
        found, name = self.federation, "central"
        found.create(changed("process", name, base=TWO_ROUNDS) | {"coordinator": "Org1MSP"})
        for member in (found.admin1, found.admin2):
            member.submit("orchestration", "Accept", name)
        found.admin1.submit("orchestration", "Start", name)
        self.tell(found.admin2, "orchestration", "replace_coordinator", name, "Org2MSP")
        self.tell(found.admin1, "orchestration", "open_step", name, "train")

    def ask(self) -> None:
        """Ask everything that can be asked."""
        name, task = self.process, self.task("node01")
        questions: dict[str, dict[str, tuple[Any, ...]]] = {
            "images": {
                "get": (NAME, "2.0.0"),
                "list": ("Org1MSP",),
                "history": (NAME, "2.0.0"),
                "list_rebuilds": (NAME, "2.0.0"),
                "rebuild_history": (NAME, "2.0.0", "Org2MSP"),
            },
            "orchestration": {
                "get": (name,),
                "list": ("completed",),
                "status": (name,),
                "history": (name,),
                "progress_history": (name, "node01"),
                "asks": (name,),
                "changes": (name,),
                "votes": (name,),
                "task_context": (task,),
                "model_context": (name,),
                "access_terms": (name,),
            },
            "execution": {
                "get_task": (task,),
                "first_share": (task,),
                "list_tasks": (name, "node01"),
                "list_refusals": (name, "node01"),
                "artifacts": (name, 1),
                "artifacts_of": (name, "Org1MSP", "node01", 1),
                "slots": (name, "node02"),
                "offers": (task,),
                "standing": (name, "node01"),
                "image_uses": (NAME, "1.0.0"),
                "last_result": (name, "node01"),
                "estimator": (name, ESTIMATOR),
                "digests": (name, [ESTIMATOR, EstimatorId("node01", 9999)]),
                "estimators": (name, [ESTIMATOR, EstimatorId("node01", 9999)]),
                "initial_model": (NEXT,),
                "twins": (name,),
                "list_challenges": (name, "node01"),
                "lineage": (name, ESTIMATOR),
            },
            "models": {
                "get": (name, "node01"),
                "list": (name,),
                "members": (name, "node01"),
                "trees": (name, "node01"),
                "access": (name, "node01"),
                "access_history": (name, "node01"),
                "history": (name, "node01"),
                "uses": (name, ESTIMATOR),
                "unpublished": (name, ["node01", "node04"]),
                "catalogue": (name,),
                "requests": (name, "node01"),
            },
        }
        for proxy, methods in questions.items():
            for method, values in {"metadata": (), **methods}.items():
                self.tell(self.federation.auditor1, proxy, method, *values)
        for kind, parts in {
            "task": (name, "node01", "0"),
            "slot": (name, "node02", "node01"),
            "share": (name, "0", "node01"),
            "result": (name, "0", "node01"),
            "head": (name, "node01"),
        }.items():
            self.tell(self.federation.auditor1, "execution", "history", kind, parts)

    def task(self, node: str) -> TaskId:
        return TaskId(self.process, node, 0)

    def _signed(self, player: Any, method: str, arguments: tuple[Any, ...], raw: bytes) -> None:
        for _ in range(2):
            self.tell(player.member, "execution", method, player.task, raw, bytes.fromhex(arguments[-1]))


@cache
def told() -> Story:
    """Tell it once, to its end."""
    story = Story()
    story.agree()
    story.fail()
    story.play(0, ("node01", "node02", "node03", "node04"), offered=10)
    story.play(1, ("node01", "node02", "node03"), offered=5)
    story.challenge()
    story.publish()
    story.coordinate()
    story.ask()
    return story


@cache
def calls_of(chaincode: str, function: str) -> list[Call]:
    """The calls of a function in the story."""
    found = [call for call in told().calls if (call.chaincode, call.function) == (chaincode, function)]
    assert found, f"nobody called {chaincode} {function}"
    return found


def call_of(chaincode: str, function: str) -> Call:
    """The last of them."""
    return calls_of(chaincode, function)[-1]
