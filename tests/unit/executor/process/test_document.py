"""Reading a federation file: YAML without its traps, each refusal with its line."""

import pytest

from executor.process.document import MAX_BYTES, parse, read
from executor.process.errors import FederationError


def values(text: str) -> object:
    return parse(text.encode(), "f.yaml").content


def refusal(raw: bytes | str) -> tuple[int, str]:
    with pytest.raises(FederationError) as caught:
        parse(raw.encode() if isinstance(raw, str) else raw, "f.yaml")
    assert caught.value.code == "FEDERATION_SYNTAX"
    (fault,) = caught.value.faults
    assert f"f.yaml, line {fault.line}: " in caught.value.cause
    assert fault.remedy
    return fault.line, fault.cause


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("TRUE", "TRUE"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("7", 7),
        ("-7", -7),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("0.10", 0.1),
        ("1e-3", 0.001),
        (".5", 0.5),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    found = values(f"a: {text}")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)  # type: ignore[index]


def test_json_is_read_too() -> None:
    assert values('{"a": [1, 2.5, "x", null, true, {"b": []}]}') == {
        "a": [1, 2.5, "x", None, True, {"b": []}]
    }


def test_lines_of_values_and_the_nearest_line_of_what_is_not_there() -> None:
    document = parse(b"a: 1\nb:\n  - x\n  - c: 2\n", "f.yaml")
    assert document.line(("a",)) == 1
    assert document.line(("b", 1, "c")) == 4
    assert document.line(("b", 1, "d")) == 4
    assert document.line(("z",)) == 1


def test_a_key_given_twice_is_refused() -> None:
    line, cause = refusal("a: 1\nb: 2\na: 3\n")
    assert line == 3
    assert "line 1 already" in cause


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x 1\n", 1),
        ("a: 1\nb: *x\n", 2),
        ("a: &x [1]\nb: [*x, *x]\n", 1),
        ("a: &x {}\nb:\n  <<: *x\n", 1),
    ],
)
def test_anchors_and_aliases_are_refused(text: str, line: int) -> None:
    assert refusal(text)[0] == line


def test_a_bomb_of_aliases_costs_nothing() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    assert refusal("\n".join(lines))[0] == 1


def test_a_merge_key_is_refused() -> None:
    assert refusal("a:\n  <<: {b: 1}\n") == (2, "'<<' merges objects")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!binary", "!mine", "!!float"])
def test_tags_are_refused(tag: str) -> None:
    assert refusal(f"a: 1\nb: {tag} x\n")[0] == 2


def test_deep_nesting_is_refused_before_the_stack_ends() -> None:
    assert "deep" in refusal("[" * 100_000)[1]


def test_a_second_document_is_refused() -> None:
    assert refusal("a: 1\n---\nb: 2\n")[0] == 2


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert refusal(text) == (1, "the file is empty")


def test_a_list_as_key_is_refused() -> None:
    assert refusal("a: 1\n? [b]\n: 2\n")[0] == 2


def test_broken_yaml_is_refused_where_it_breaks() -> None:
    assert refusal("a: 1\nb: [1, 2\nc: 3\n")[0] == 3
    assert refusal("a: 1\n\tb: 2\n")[0] == 2


def test_bytes_that_are_not_text_are_refused_with_their_line() -> None:
    assert refusal(b"a: 1\nb: \xff\n") == (2, "byte 8 is not UTF-8")
    assert refusal(b"a: 1\nb: \x00\n")[0] == 2


def test_a_number_of_a_thousand_digits_is_refused() -> None:
    assert refusal(f"a: {'9' * 1000}")[0] == 1


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path) -> None:
    with pytest.raises(FederationError, match="FEDERATION_FILE"):
        read(tmp_path / "none.yaml")
    with pytest.raises(FederationError, match="FEDERATION_FILE"):
        read(tmp_path)
    (tmp_path / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(FederationError, match="FEDERATION_FILE"):
        read(tmp_path / "large.yaml")
