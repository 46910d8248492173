"""What is shown before an organisation accepts, and what is never accepted unseen."""

from typing import Any

import pytest
from support.memory.scenario import IMAGE, SPECIFICATION, Channel, changed
from support.memory.story import MemberTransport

from chaincode.image import ImageContract
from chaincode.orchestration import OrchestrationContract
from executor.errors import UsageError
from executor.ledger.chaincodes.proxies import Ledger
from executor.process import acceptance
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.common import Provenance
from protocol.ledger.processes import ProcessRecord

BY = Provenance("Org1MSP", "someone", "data-scientist", Digest.of(b""), "2026-01-01T00:00:00.000000Z", "tx")


def proposed(specification: Specification) -> ProcessRecord:
    return ProcessRecord("fraud-2026", ProcessState.PROPOSED, specification, specification.digest, BY)


RECORD = proposed(Specification.from_dict(SPECIFICATION))


def test_what_is_accepted_is_shown_with_pins_rules_and_digest(capsys: pytest.CaptureFixture[str]) -> None:
    digest = RECORD.specification_digest
    assert acceptance.check(RECORD, digest, as_json=False) == digest
    shown = capsys.readouterr()
    assert shown.out == ""
    image = SPECIFICATION["steps"][0]["image"]
    counts = "n_new 10, n_max 50, n_share 10, seed 42"
    named = ("Org1MSP, Org2MSP", "node01 of Org1MSP", "ring", image["image_id"], image["manifest_digest"])
    for part in (*named, counts, "86400 s of silence", "majority", str(digest)):
        assert part in shown.err


def test_another_digest_than_the_read_one_is_refused() -> None:
    with pytest.raises(StateError, match="PROCESS_DIGEST"):
        acceptance.check(RECORD, Digest.of(b"another"), as_json=True)


def test_a_peer_that_names_another_digest_than_its_specification_has_is_refused() -> None:
    lying = ProcessRecord("fraud-2026", ProcessState.PROPOSED, RECORD.specification, Digest.of(b"agreed"), BY)
    with pytest.raises(StateError, match="PROCESS_DIGEST"):
        acceptance.check(lying, Digest.of(b"agreed"), as_json=True)


@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_is_accepted_unseen_without_a_terminal(as_json: bool) -> None:
    with pytest.raises(UsageError, match="ACCEPT_UNSEEN"):
        acceptance.check(RECORD, None, as_json=as_json)


@pytest.mark.parametrize("said", ["y\n", "n\n"])
def test_at_a_terminal_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(acceptance, "sys", type("Streams", (), {"stdin": Terminal(), "stderr": Terminal()}))
    monkeypatch.setattr("click.confirm", lambda *_, **__: said == "y\n")
    if said == "y\n":
        assert acceptance.check(RECORD, None, as_json=False) == RECORD.specification_digest
    else:
        with pytest.raises(UsageError, match="ACCEPT_DECLINED"):
            acceptance.check(RECORD, None, as_json=False)


def test_a_description_of_version_1_is_shown_without_its_tricks() -> None:
    fields = ("process", "organisations", "nodes", "topology", "steps")
    first: Any = {name: changed("version", 1)[name] for name in fields}
    first |= {"version": 1, "description": "safe\u202eelif"}
    step = first["steps"][0]
    first["steps"] = [step | {"image": {name: step["image"][name] for name in ("name", "version")}}]
    lines = list(acceptance.summary(Specification.from_dict(first)))
    assert "description    safe\\u202eelif" in lines
    assert any("not pinned" in line for line in lines)


def test_h7_a_retired_image_is_shown_to_who_accepts_and_to_who_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It stops nobody, so that its registrant has no say; who accepts decides, and has to know."""
    channel = Channel(ImageContract(), OrchestrationContract())
    channel.register()
    record = channel.create()
    ledger = Ledger(MemberTransport(channel.scientist2))
    found = ledger.orchestration.get(record["process"])
    assert acceptance.retirements(found.specification, ledger.images.get) == []
    channel.scientist1.submit("image", "Retire", *IMAGE, "a fault")
    (line,) = acceptance.retirements(found.specification, ledger.images.get)
    assert line.startswith(f"retired        {':'.join(IMAGE)} by Org1MSP at 20")
    assert line.endswith(": a fault")
    acceptance.check(found, found.specification_digest, [line], as_json=False)
    assert line in capsys.readouterr().err
