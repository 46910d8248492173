"""What a federation changes while it runs: votes against a silent node are repeated until they hold."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from executor.errors import DeadlineError
from executor.experiment import federation_changes
from executor.experiment.federation_changes import leave_out
from protocol.errors import StateError


class Voting:
    """A federation whose ledger answers votes as a test says: a change, none yet, or a refusal."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.voted = list(answers), list[tuple[str, str]]()

    @contextmanager
    def ledger(self, organisation: str, _: str) -> Any:
        def vote(process: str, node: str, __: str) -> Any:
            self.voted.append((organisation, f"{process}/{node}"))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(answer=SimpleNamespace(change=answer))

        yield SimpleNamespace(orchestration=SimpleNamespace(leave_out=vote))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation_changes, "BETWEEN_VOTES", 0.0)


def test_votes_are_repeated_until_the_silence_has_lasted_long_enough() -> None:
    behind = StateError("CHANGE_UNKNOWN", "a block behind")
    federation: Any = Voting(None, behind, None, 4)
    assert leave_out(federation, ("org1", "org2"), "waiting", "node11") == 4
    assert [organisation for organisation, _ in federation.voted] == ["org1", "org2", "org1", "org2"]
    assert {place for _, place in federation.voted} == {"waiting/node11"}


def test_a_node_that_is_not_left_out_ends_the_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation_changes, "SECONDS_TO_LEAVE_OUT", 0.0)
    federation: Any = Voting(None)
    with pytest.raises(DeadlineError, match="node11 is not left out"):
        leave_out(federation, ("org1", "org2"), "waiting", "node11")
    federation = Voting(StateError("NODE_WAITING", "it waits"))
    with pytest.raises(StateError, match="NODE_WAITING"):
        leave_out(federation, ("org1", "org2"), "waiting", "node11")
