"""The pages and pictures that are made from the sources are current."""

from pathlib import Path

import pytest

from docs.generator import pictures
from docs.generator.__main__ import pages
from docs.generator.repository import ROOT


def test_each_page_is_what_the_sources_give():
    """All in one test: every process that runs tests would otherwise make them to know their names."""
    made = dict(pages())
    assert all(path.is_relative_to(ROOT / "docs") for path in made)
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run scripts/docs"


@pytest.mark.parametrize("source", pictures.sources(), ids=lambda path: path.name)
def test_a_picture_is_drawn_from_its_text(source: Path):
    assert pictures.is_current(source), "run: scripts/docs"


@pytest.mark.parametrize("source", pictures.sources(), ids=lambda path: path.name)
def test_a_picture_has_a_white_background(source: Path):
    svg = pictures.picture_of(source).read_text(encoding="utf-8")
    assert 'fill="white"' in svg


def test_a_changed_text_makes_its_picture_stale(tmp_path: Path):
    source = tmp_path / "greeting.seq"
    source.write_text("actor a  A\nactor b  B\na -> b  hello\n")
    assert not pictures.is_current(source)
    assert pictures.update(source)
    assert pictures.is_current(source)
    assert not pictures.update(source)
    source.write_text("actor a  A\nactor b  B\na -> b  good morning\n")
    assert not pictures.is_current(source)


def test_a_graph_that_dot_refuses_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "broken.dot"
    source.write_text("digraph {")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pictures.DrawError, match="apt-get install graphviz"):
        pictures.draw(source)
    monkeypatch.undo()
    if pictures.shutil.which("dot"):
        with pytest.raises(pictures.DrawError, match=r"broken\.dot: .*syntax error"):
            pictures.draw(source)
