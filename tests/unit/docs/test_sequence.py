"""Sequence diagrams: what is drawn, what is refused, and that nothing lies on top of anything else."""

from xml.etree import ElementTree

import pytest

from docs.generator.repository import ROOT
from docs.generator.sequence import LETTER, SequenceError, draw, parse

NAMES = "actor a  A | the first\nactor b  B\nactor c  C\n"
SVG = "{http://www.w3.org/2000/svg}"


def test_every_word_of_the_text_is_in_the_picture():
    drawn = draw(
        f"{NAMES}== Beginning\na -> c  ask <twice> & wait\nc --> a  an answer\nb: think\n", "sha256:1"
    )
    words = [element.text for element in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert words == ["A", "the first", "B", "C", "Beginning", "ask <twice> & wait", "an answer", "think"]


def test_messages_point_from_source_to_target_and_answers_are_dashed():
    drawn = ElementTree.fromstring(draw(f"{NAMES}a -> b  ask\nb --> a  answer\n", "sha256:1"))
    ask, answer = (line for line in drawn.iter(f"{SVG}line") if line.get("y1") == line.get("y2"))
    assert int(ask.get("x1", 0)) < int(ask.get("x2", 0))
    assert ask.get("stroke-dasharray") is None
    assert (answer.get("x1"), answer.get("x2")) == (ask.get("x2"), ask.get("x1"))
    assert answer.get("stroke-dasharray") is not None


def test_the_same_text_gives_the_same_bytes():
    text = (ROOT / "docs/pictures/task.seq").read_text()
    assert draw(text, "sha256:1") == draw(text, "sha256:1")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{NAMES}a => b  ask", "line 4 is neither"),
        (f"{NAMES}a -> d  ask", "d is not an actor"),
        (f"{NAMES}d: think", "d is not an actor"),
        (f"{NAMES}a -> a  think", "a sends to itself"),
    ],
)
def test_a_text_that_cannot_be_drawn_is_refused(text: str, cause: str):
    with pytest.raises(SequenceError, match=cause):
        parse(text)


def test_words_of_one_line_do_not_reach_those_of_the_next():
    """Estimated by the width that the drawing itself goes by."""
    root = ElementTree.fromstring(draw((ROOT / "docs/pictures/task.seq").read_text(), "sha256:1"))
    places = []
    for element in root.iter(f"{SVG}text"):
        half = len(element.text or "") * LETTER / 2
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        places.append((x - half, x + half, y))
    width = float(root.get("width", 0))
    assert all(left >= 0 and right <= width for left, right, _ in places)
    for i, (left, right, y) in enumerate(places):
        for other_left, other_right, other_y in places[:i]:
            assert abs(y - other_y) >= 13 or right < other_left or other_right < left
