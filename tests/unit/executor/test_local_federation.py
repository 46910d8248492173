"""Organisations on one host: they share its places, agree on several processes at once, and work for all."""

import json
import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executor.exits import SIGNATURE, exit_code
from executor.experiment import local_federation
from executor.experiment.launches import Reports
from executor.experiment.local_federation import Audit, LocalFederation


@pytest.fixture
def federation(tmp_path: Path) -> LocalFederation:
    network: Any = SimpleNamespace(state=tmp_path)
    return LocalFederation(network, ("org1", "org2", "org3", "org4"), tmp_path / "work")


@pytest.mark.parametrize(("cores", "tasks"), [(1, 3), (2, 3), (15, 3), (64, 8)])
def test_the_organisations_of_one_host_share_its_places(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch, cores: int, tasks: int
) -> None:
    """A host of so many cores and 32 GiB: together they have no more places than it, but for three each."""
    known = {"SC_PHYS_PAGES": 8 << 20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.setattr(os, "sysconf", known.__getitem__)
    assert federation.tasks == tasks


def test_one_executor_of_each_organisation_works_for_all_processes(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []

    class Noted:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> "Noted":
            return self

        def __exit__(self, *_: object) -> None: ...

        def start(self, *words: str) -> None:
            started.append(words)

        def wait(self, _: object) -> Reports:
            return Reports()

    monkeypatch.setattr(local_federation, "Launches", Noted)
    federation.launch(["ring", "full"], "rows/{node}.csv", lambda _: None)
    options = ("--all-local", "--until-complete", "--data", "rows/{node}.csv", "--tasks")
    assert started == [
        (organisation, "ring", "--process", "full", *options, str(federation.tasks))
        for organisation in federation.organisations
    ]


def test_several_processes_are_agreed_on_at_once(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3)

    def agree(_: LocalFederation, content: Any, __: object) -> Any:
        together.wait(150)  # for ever, if one waits for another
        return content["process"]

    monkeypatch.setattr(LocalFederation, "agree", agree)
    contents = [{"process": name} for name in ("a", "b", "c")]
    assert federation.agree_on_all(contents, lambda _: None) == ["a", "b", "c"]


def printing(monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str]) -> list[tuple[str, ...]]:
    """Let commands end with these exit codes, having printed this; returns what was run."""
    left, asked = list(answers), []

    def run(words: list[str], **_: object) -> "subprocess.CompletedProcess[bytes]":
        asked.append(tuple(words[len(local_federation.PROGRAM) :]))
        code, text = left.pop(0)
        return subprocess.CompletedProcess(words, code, text.encode(), b"")

    monkeypatch.setattr(subprocess, "run", run)
    return asked


FOUND = {
    "verified": False,
    "failures": [{"claim": "results", "what": "result~x was overwritten", "where": "3"}],
}


def test_an_audit_that_finds_something_says_what_and_ends_nothing_else(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing(monkeypatch, (11, json.dumps(FOUND)))
    found = federation.audit("ring")
    assert not found.verified
    assert found.problem is not None
    assert (found.problem.code, exit_code(found.problem)) == ("AUDIT_FAILED", SIGNATURE)
    assert "1 things" in found.problem.cause
    assert "results: result~x was overwritten" in found.problem.cause


@pytest.mark.parametrize("printed", ["", "Traceback", "[]", '{"error": {"code": "LEDGER_UNREACHABLE"}}'])
def test_an_audit_that_could_not_be_done_is_no_finding(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    printing(monkeypatch, (20, printed))
    found = federation.audit("ring")
    assert not found.verified
    assert found.problem is not None
    assert found.problem.code == "FEDERATION_LAUNCH"


def test_an_audit_without_a_network_is_of_the_export_and_its_first_block(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = printing(monkeypatch, (0, '{"genesis": "ab"}'), (0, '{"verified": true, "failures": []}'))
    assert federation.audit_channel("ring") == Audit(True)
    assert asked[0][:2] == ("audit", "export")
    assert asked[1][:2] == ("audit", "verify")
    assert asked[1][3:] == ("--genesis", "ab", "--json")
    printing(monkeypatch, (20, "no ledger"))
    assert federation.audit_channel("ring").verified is False
    printing(monkeypatch, (0, '{"genesis": "ab"}'), (11, json.dumps(FOUND)))
    assert federation.audit_channel("ring").verified is False


def test_an_audit_that_says_it_verified_and_ended_otherwise_did_not(
    federation: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    printing(monkeypatch, (1, '{"verified": true, "failures": []}'))
    assert federation.audit("ring").verified is False
