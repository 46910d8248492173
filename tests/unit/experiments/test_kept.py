"""Long experiments go on where they were interrupted, and mix no figures of other settings in."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.data import Floats
from experiments.kept import NOTHING, Kept, code_digest, made_by, rows_digest


@pytest.fixture
def measure() -> Callable[[], Floats]:
    """Returns 1, 2, 3 … for the first, second, third time that something is measured."""
    times = iter(range(1, 100))
    return lambda: np.array([float(next(times))])


def test_what_was_measured_is_not_measured_again(tmp_path: Path, measure: Callable[[], Floats]) -> None:
    kept = Kept(tmp_path / "new" / "directory")
    assert kept.measured("robust-45", "settings", measure).tolist() == [1.0]
    assert Kept(kept.directory).measured("robust-45", "settings", measure).tolist() == [1.0]
    assert kept.measured("robust-46", "settings", measure).tolist() == [2.0]


def test_what_was_measured_with_other_settings_is_measured_again(
    tmp_path: Path, measure: Callable[[], Floats]
) -> None:
    kept = Kept(tmp_path)
    kept.measured("robust-45", "quota 2", measure)
    assert kept.measured("robust-45", "quota 3", measure).tolist() == [2.0]


def test_a_damaged_file_is_measured_again(tmp_path: Path, measure: Callable[[], Floats]) -> None:
    kept = Kept(tmp_path)
    kept.measured("robust-45", "", measure)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    assert kept.measured("robust-45", "", measure).tolist() == [2.0]
    assert kept.measured("robust-45", "", measure).tolist() == [2.0]


def test_without_a_directory_nothing_is_kept(measure: Callable[[], Floats]) -> None:
    assert NOTHING.measured("robust-45", "", measure).tolist() == [1.0]
    assert NOTHING.measured("robust-45", "", measure).tolist() == [2.0]


def test_other_code_or_rows_or_a_library_have_another_digest_and_a_comment_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "learning").mkdir()
    source = tmp_path / "learning" / "attacks.py"
    source.write_text("SIZE = 60\n")
    before = code_digest(["learning"], tmp_path)
    source.write_text("# How large they are.\nSIZE  = 60\n")
    assert code_digest(["learning"], tmp_path) == before
    source.write_text("SIZE = 61\n")
    changed = code_digest(["learning"], tmp_path)
    (tmp_path / "learning" / "more.c").write_text("int x;")
    assert len({before, changed, code_digest(["learning"], tmp_path)}) == 3
    assert rows_digest(np.zeros(4)) != rows_digest(np.zeros((2, 2))) != rows_digest(np.ones((2, 2)))
    now = made_by("kept")
    monkeypatch.setattr("experiments.kept.version", lambda _: "0.0")
    assert made_by("kept") != now
