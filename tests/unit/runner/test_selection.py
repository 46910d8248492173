"""Arguments of the test command: what is a path, what pytest is told, what the network is needed for."""

import re
import tomllib
from pathlib import Path

import pytest
from runner.selection import E2E_MARKS, select
from runner.surroundings import ROOT, RefusedError

PROTOCOL = ROOT / "tests/unit/protocol"


def test_nothing_named_is_everything() -> None:
    found = select([], ROOT)
    assert (found.unit, found.e2e, found.chosen) == (["tests/unit"], ["tests/e2e"], False)


@pytest.mark.parametrize(
    ("argument", "caller", "unit", "e2e"),
    [
        ("tests/unit/protocol", ROOT, ["tests/unit/protocol"], []),
        ("test_wire.py::t[a b]", PROTOCOL, ["tests/unit/protocol/test_wire.py::t[a b]"], []),
        ("tests/e2e/test_doctor.py", Path("/"), [], ["tests/e2e/test_doctor.py"]),
        (str(ROOT / "tests/e2e"), Path("/"), [], ["tests/e2e"]),
        ("tests", ROOT, ["tests/unit"], ["tests/e2e"]),
    ],
)  # fmt: skip
def test_a_path_is_seen_from_the_caller_or_the_root(
    argument: str, caller: Path, unit: list[str], e2e: list[str]
) -> None:
    found = select([argument], caller)
    assert (found.unit, found.e2e, found.chosen) == (unit, e2e, True)


def test_a_word_chooses_among_all_tests() -> None:
    found = select(["-k", "wire", "-x"], ROOT)
    assert found.options == ["-k", "wire", "-x"]
    assert (found.unit, found.e2e, found.chosen) == (["tests/unit"], ["tests/e2e"], True)


def test_an_option_that_chooses_nothing_leaves_the_run_whole() -> None:
    assert not select(["-vv", "--maxfail", "3"], ROOT).chosen


def test_marks_of_the_user_and_of_a_group_are_joined() -> None:
    found = select(["-m", "a or b"], ROOT)
    assert found.marked("not alone") == ["-m", "(not alone) and (a or b)"]
    assert select([], ROOT).marked("") == []


@pytest.mark.parametrize(
    ("marks", "unit"),
    [
        ("engine", []),
        ("large or (alone and engine)", []),
        ("not engine", ["tests/unit"]),
        ("alone and not engine", ["tests/unit"]),
        ("timeout", ["tests/unit"]),
        ("engine or skipif", ["tests/unit"]),
        ("", ["tests/unit"]),
    ],
)
def test_unit_tests_are_left_out_where_only_end_to_end_tests_have_the_marks(
    marks: str, unit: list[str]
) -> None:
    found = select(["-m", marks], ROOT)
    assert (found.unit, found.e2e) == (unit, ["tests/e2e"])


def test_a_named_unit_test_is_collected_whatever_its_marks() -> None:
    assert select(["-m", "engine", "tests/unit/runner"], ROOT).unit == ["tests/unit/runner"]


def test_no_unit_test_has_the_marks_of_end_to_end_tests() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert {mark.partition(":")[0] for mark in options["markers"]} == E2E_MARKS
    used = re.compile(rf"pytest\.mark\.({'|'.join(E2E_MARKS)})\b")
    paths = (ROOT / "tests/unit").rglob("*.py")
    assert [str(path) for path in paths if used.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("argument", ["nowhere", "docs", "tests/golden", "tests/unit/nothing.py::test_x"])
def test_what_is_no_test_is_refused(argument: str) -> None:
    with pytest.raises(RefusedError, match=argument.partition("::")[0]):
        select([argument], ROOT)
