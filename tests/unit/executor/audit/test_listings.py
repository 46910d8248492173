"""Where processes are listed, judged again: chaincode that hides, keeps or miscounts one is found out."""

import io

import pytest
from support.memory import blocks
from support.memory.audited import PROCESS, SPEC
from support.memory.federation import Federation, changed

from chaincode.common import write
from chaincode.orchestration import process as altered
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.ledger import keys
from protocol.ledger.processes import OpenProcesses, shelf_of

HERE = "orchestration"
Process = altered.Process
HONEST = Process.save


@pytest.fixture
def federation():
    return blocks.record(Federation)(SPEC, started=False)


def start(federation):
    for admin in (federation.admin1, federation.admin2):
        admin.submit(HERE, "Accept", PROCESS)
    federation.admin1.submit(HERE, "Start", PROCESS)


def wrong(federation):
    recorder = federation.recorder
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    return [(failure.claim, failure.what) for failure in found.failures]


def test_a_process_that_moves_from_list_to_list_is_found_right(federation):
    start(federation)
    for admin in (federation.admin1, federation.admin2):
        admin.submit(HERE, "Abort", PROCESS, "over")
    assert wrong(federation) == []


def test_a_running_process_that_is_not_listed_is_found(federation, monkeypatch):
    """No service would work for it."""
    monkeypatch.setattr(Process, "save", lambda self, ctx: write(ctx, keys.process(self.id), self.record))
    start(federation)
    assert wrong(federation) == [
        ("lists", f"process~{PROCESS} is not listed"),
        ("lists", f"process~{PROCESS} is still listed as proposed"),
    ]


def test_a_brief_that_is_removed_while_its_process_runs_is_found(federation, monkeypatch):
    start(federation)

    def remove(self, ctx):
        self._was, kept = self.record.status, self.record
        HONEST(self, ctx)
        ctx.delete(keys.brief("running", kept.process))

    monkeypatch.setattr(Process, "save", remove)
    federation.admin1.submit(HERE, "Leave", PROCESS, "node01", 1)
    found = wrong(federation)
    assert ("lists", f"brief~running~{PROCESS} was removed") in found


def test_a_process_that_counts_against_nobody_is_found(federation, monkeypatch):
    monkeypatch.setattr(Process, "count", lambda self, ctx: None)
    federation.create(changed("process", "second", base=SPEC))
    assert wrong(federation) == [("lists", "process~second was not counted")]


def test_an_open_process_that_is_forgotten_is_found(federation, monkeypatch):
    def forget(self, ctx):
        made = OpenProcesses("Org1MSP", shelf, (self.id,))
        write(ctx, keys.openprocesses("Org1MSP", shelf), made)

    shelf = shelf_of(PROCESS)
    name = next(name for name in map(str, range(10_000)) if shelf_of(f"p{name}") == shelf)
    monkeypatch.setattr(Process, "count", forget)
    federation.create(changed("process", f"p{name}", base=SPEC))
    place = f"openprocesses~Org1MSP~{keys.counter_text(shelf)}"
    assert wrong(federation) == [("lists", f"{place} leaves out {PROCESS}")]
