"""The folder of a replay: what a killed one left goes, and nothing else."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executor.replay import folder
from executor.replay.folder import labels_of, private_folder


@pytest.fixture
def network(tmp_path: Path) -> Any:
    return SimpleNamespace(state=tmp_path / "state", project="net")


@pytest.fixture
def reaped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders whose containers were removed."""
    found: list[str] = []
    monkeypatch.setattr(folder, "reap", lambda _, labels: found.append(labels[folder.LABEL]))
    return found


def test_rows_that_a_killed_replay_left_go_with_its_container(network: Any, reaped: list[str]) -> None:
    left = network.state / "replay-killed"
    left.mkdir(parents=True)
    (left / "rows").write_bytes(b"private")
    client: Any = None
    with private_folder(client, network) as first, private_folder(client, network) as second:
        assert (first.is_dir(), second.is_dir(), left.exists()) == (True, True, False)
        assert first.stat().st_mode & 0o777 == 0o700
        assert labels_of(network, first) != labels_of(network, second)
    assert reaped == ["replay-killed"]
    assert [path.name for path in network.state.iterdir()] == ["replay.lock"]


def test_what_is_no_replays_is_left_alone_and_keeps_nobody_waiting(network: Any, reaped: list[str]) -> None:
    network.state.mkdir()
    (network.state / "elsewhere").mkdir()
    (network.state / "replay-link").symlink_to("elsewhere")
    (network.state / "replay-loop").symlink_to("replay-loop")
    (network.state / "replay-notes").write_text("somebody's")
    os.mkfifo(network.state / "replay-pipe")
    client: Any = None
    with private_folder(client, network):
        pass
    assert reaped == []
    names = {path.name for path in network.state.iterdir()}
    assert names == {"elsewhere", "replay-link", "replay-loop", "replay-notes", "replay-pipe", "replay.lock"}


def test_a_replay_that_ends_while_another_begins_keeps_it_from_nothing(
    network: Any, reaped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    network.state.mkdir()
    monkeypatch.setattr(Path, "glob", lambda path, _: [path / "replay-gone"])
    client: Any = None
    with private_folder(client, network) as made:
        assert made.is_dir()
    assert reaped == []
