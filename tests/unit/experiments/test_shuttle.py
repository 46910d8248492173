"""The Shuttle data by hash, and the experiment of seconds on it."""

import os
from pathlib import Path

import numpy as np
import pytest

from experiments import packaged, shuttle, shuttle_data
from experiments.data import synthetic
from experiments.errors import SourceError
from learning.parameters import Parameters


def stored(path: Path, **changes: object) -> Path:
    arrays = {
        "X": np.arange(12, dtype=np.float64).reshape(6, 2),
        "state": np.array(["Rad.Flow", "High", "Bypass", "Rad.Flow", "Fpv.Open", "High"]),
        "features": np.array(["V1", "V2"]),
    }
    np.savez(path, **{**arrays, **changes})  # type: ignore[arg-type]
    return path


def test_rare_states_are_anomalous_and_the_second_is_left_out(tmp_path: Path) -> None:
    table = shuttle_data.read_arrays(stored(tmp_path / "a.npz"))
    assert table is not None
    assert table.X.tolist() == [[0, 1], [4, 5], [6, 7], [8, 9]]
    assert table.y.tolist() == [0, 1, 0, 1]
    assert table.features == ("V1", "V2")


def test_pickles_and_damage_in_the_cache_are_not_read(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.npz", state=np.array([{}] * 6, dtype=object))
    assert shuttle_data.read_arrays(path) is None
    raw = bytearray(stored(path).read_bytes())
    raw[150] ^= 1
    path.write_bytes(raw)
    assert shuttle_data.read_arrays(path) is None


def test_another_package_and_another_file_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.deb"
    other.write_bytes(b"!<arch>\n")
    with pytest.raises(SourceError, match="DATA_HASH"):
        shuttle_data.member_of(other)
    with pytest.raises(SourceError, match="DATA_HASH"):
        shuttle_data.load_shuttle(other)
    with pytest.raises(SourceError, match="DATA_FILE"):
        shuttle_data.load_shuttle(tmp_path / "absent.rda")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="not a file"):
        shuttle_data.load_shuttle(tmp_path / "pipe")
    other.write_bytes(bytes(shuttle_data.SIZE + 1))
    with pytest.raises(SourceError, match="DATA_HASH"):
        shuttle_data.load_shuttle(other)


def test_without_apt_the_remedy_is_an_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTESTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match=r"own copy of Shuttle\.rda with --data FILE"):
        shuttle_data.load_shuttle()
    assert not (tmp_path / "cache").exists()


def test_each_kind_runs_alone_joined_and_attacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shuttle, "KINDS", {"forest": Parameters(n_new=1, n_share=1)})
    dealt = shuttle.parts(synthetic(400, 4, 0.1))
    result = shuttle.run_shuttle(dealt, [0], lambda _: None)
    assert [(row.topology, row.attack) for row in result.rows] == [
        ("disconnected", "none"),
        ("ring", "none"),
        ("full", "none"),
        ("full", "zero"),
        ("full", "one"),
    ]
    shuttle.write_shuttle(result, tmp_path)
    assert "forest, full" in (tmp_path / "results.md").read_text()


@pytest.mark.skipif(
    not (packaged.cache_directory() / "data" / f"{shuttle_data.SHA256}.npz").exists(),
    reason="the Shuttle data is not cached here; `executor experiment shuttle` fetches it",
)
def test_the_cached_data_is_whole() -> None:
    table = shuttle_data.load_shuttle()
    assert table.X.shape == (49_097, 9)
    assert int(table.y.sum()) == 3_511
