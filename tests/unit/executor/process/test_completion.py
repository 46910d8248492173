"""Ending a process for nodes that are done and silent, on real contracts."""

from dataclasses import dataclass
from typing import Any

import pytest
from support.memory.federation import played, prepared
from support.memory.story import MemberTransport

from executor.ledger.chaincodes.proxies import Ledger
from executor.process.completion import publish_missing


@pytest.fixture
def federation() -> Any:
    return prepared(played)()


@dataclass
class Overtaken(MemberTransport):
    """A member that another one is always a moment ahead of."""

    other: Any = None

    def submit(self, chaincode: str, function: str, *arguments: Any, **more: Any) -> Any:
        self.other.submit(chaincode, function, *arguments)
        return super().submit(chaincode, function, *arguments, **more)


def test_h10_models_of_silent_nodes_are_published_and_the_process_ends(federation: Any) -> None:
    process = federation.process
    federation.publish_all("node02")
    ledger = Ledger(MemberTransport(federation.scientist2))
    assert publish_missing(ledger, process) == ["node01", "node03", "node04"]
    assert publish_missing(ledger, process) == []
    assert ledger.orchestration.complete(process).answer.status == "completed"
    assert publish_missing(ledger, process) == []


def test_nothing_is_published_while_some_node_has_work_left() -> None:
    federation = prepared()()
    federation.play(0)
    transport = MemberTransport(federation.scientist2)
    assert publish_missing(Ledger(transport), federation.process) == []
    assert [function for _, _, function, *_ in transport.sent] == ["Status"]


def test_who_is_overtaken_by_another_goes_on(federation: Any) -> None:
    transport = Overtaken(federation.scientist2, other=federation.scientist1)
    assert publish_missing(Ledger(transport), federation.process) == []
    model = federation.auditor1.evaluate("model", "Get", federation.process, "node03")
    assert model["published"]["organisation"] == "Org1MSP"
