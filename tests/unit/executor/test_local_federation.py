"""Organisations on one host: they share its places, agree on several processes at once, and work for all."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executor.experiment import local_federation
from executor.experiment.launches import Reports
from executor.experiment.local_federation import LocalFederation


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
        together.wait(30)  # for ever, if one waits for another
        return content["process"]

    monkeypatch.setattr(LocalFederation, "agree", agree)
    contents = [{"process": name} for name in ("a", "b", "c")]
    assert federation.agree_on_all(contents, lambda _: None) == ["a", "b", "c"]
