import json
import sys

import pytest

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import EncodingError


def refusal_of(call, *arguments, **options):
    with pytest.raises(EncodingError) as refusal:
        call(*arguments, **options)
    return refusal.value.code


def nested(depth):
    record = []
    for _ in range(depth - 1):
        record = [record]
    return record


def test_a_record_has_one_form():
    record = {"b": [1, True, None], "a": "é\n", "ä": {"": -7}}
    raw = canonical.encode(record)
    assert raw == '{"a":"é\\n","b":[1,true,null],"ä":{"":-7}}'.encode()
    assert canonical.decode(raw) == record
    assert canonical.encode(dict(reversed(record.items()))) == raw
    assert canonical.digest(record) == Digest.of(raw)


def test_keys_are_sorted_as_their_utf8_bytes():
    # UTF-16 would put the last one before the second.
    keys = ["a", "\uffee", "\U0001f333"]
    raw = canonical.encode(dict.fromkeys(reversed(keys), 0))
    assert list(canonical.decode(raw)) == keys == sorted(keys, key=str.encode)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b'{"a": 1}', "RECORD_NOT_CANONICAL", id="space"),
        pytest.param(b'{"a":1}\n', "RECORD_NOT_CANONICAL", id="newline at the end"),
        pytest.param(b'{"b":1,"a":1}', "RECORD_NOT_CANONICAL", id="unsorted"),
        pytest.param(b'"\\u0061"', "RECORD_NOT_CANONICAL", id="needless escape"),
        pytest.param(b'"\\/"', "RECORD_NOT_CANONICAL", id="escaped slash"),
        pytest.param(b'"\\u00e9"', "RECORD_NOT_CANONICAL", id="escaped letter"),
        pytest.param(b"-0", "RECORD_NOT_CANONICAL", id="minus zero"),
        pytest.param(b"\xef\xbb\xbf1", "RECORD_SYNTAX", id="byte order mark"),
        pytest.param(b'{"a":1,"a":1}', "RECORD_DUPLICATE_KEY", id="key twice"),
        pytest.param(b'{"a":1,"\\u0061":2}', "RECORD_DUPLICATE_KEY", id="key twice, once in disguise"),
        pytest.param(b"1.0", "RECORD_FLOAT", id="float"),
        pytest.param(b"1e2", "RECORD_FLOAT", id="exponent"),
        pytest.param(b"NaN", "RECORD_FLOAT", id="nan"),
        pytest.param(b"-Infinity", "RECORD_FLOAT", id="infinity"),
        pytest.param(b"9007199254740992", "RECORD_INTEGER", id="2**53"),
        pytest.param(b"-9007199254740992", "RECORD_INTEGER", id="-2**53"),
        pytest.param(b"9" * 100_000, "RECORD_INTEGER", id="a number of 100,000 digits"),
        pytest.param(b"01", "RECORD_SYNTAX", id="leading zero"),
        pytest.param(b"", "RECORD_SYNTAX", id="nothing"),
        pytest.param(b"{} {}", "RECORD_SYNTAX", id="two records"),
        pytest.param(b"[1,]", "RECORD_SYNTAX", id="comma at the end"),
        pytest.param(b"{'a':1}", "RECORD_SYNTAX", id="single quotes"),
        pytest.param(b'"\n"', "RECORD_SYNTAX", id="raw newline in text"),
        pytest.param(b'"\xff"', "RECORD_TEXT", id="not UTF-8"),
        pytest.param(b'"\xc0\xaf"', "RECORD_TEXT", id="overlong UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', "RECORD_TEXT", id="surrogate in UTF-8"),
        pytest.param(b'"\\ud800"', "RECORD_TEXT", id="half a character"),
        pytest.param(b'"\\u0000"', "RECORD_TEXT", id="NUL"),
        pytest.param(b'"\\u001b[2J"', "RECORD_TEXT", id="terminal escape"),
        pytest.param('"e\u0301"'.encode(), "RECORD_TEXT", id="not NFC"),
        pytest.param('{"e\u0301":1}'.encode(), "RECORD_TEXT", id="key not NFC"),
    ],
)
def test_b7_another_encoding_of_a_record_is_refused(raw, code):
    assert refusal_of(canonical.decode, raw) == code


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (1.0, "RECORD_FLOAT"),
        ([float("nan")], "RECORD_FLOAT"),
        (2**53, "RECORD_INTEGER"),
        (-(2**53), "RECORD_INTEGER"),
        ((1, 2), "RECORD_TYPE"),
        ({1: 2}, "RECORD_TYPE"),
        ({None: 2}, "RECORD_TYPE"),
        (b"bytes", "RECORD_TYPE"),
        ({"a": {1, 2}}, "RECORD_TYPE"),
        ("\ud800", "RECORD_TEXT"),
        ("\x7f", "RECORD_TEXT"),
        ("\x85", "RECORD_TEXT"),
        ({"e\u0301": 1}, "RECORD_TEXT"),
    ],
)
def test_what_has_no_canonical_form_is_not_encoded(record, code):
    assert refusal_of(canonical.encode, record) == code


@pytest.mark.parametrize("raw", [None, "{}", bytearray(b"{}")])
def test_what_is_not_bytes_is_not_decoded(raw):
    assert refusal_of(canonical.decode, raw) == "RECORD_TYPE"


def test_d21_integers_depth_and_size_just_under_and_over_each_limit():
    for number in (2**53 - 1, -(2**53) + 1):
        assert canonical.decode(canonical.encode(number)) == number
    assert canonical.decode(canonical.encode(nested(canonical.MAX_DEPTH))) == nested(canonical.MAX_DEPTH)
    assert refusal_of(canonical.encode, nested(canonical.MAX_DEPTH + 1)) == "RECORD_DEPTH"
    assert (
        refusal_of(canonical.decode, json.dumps(nested(canonical.MAX_DEPTH + 1)).encode()) == "RECORD_DEPTH"
    )
    text = "a" * 98
    raw = canonical.encode(text, max_bytes=100)
    assert canonical.decode(raw, max_bytes=100) == text
    assert refusal_of(canonical.encode, text, max_bytes=99) == "RECORD_SIZE"
    assert refusal_of(canonical.decode, raw, max_bytes=99) == "RECORD_SIZE"
    assert refusal_of(canonical.decode, b"not a record", max_bytes=11) == "RECORD_SIZE"


def test_brackets_in_text_are_not_nesting():
    record = ["[{" * 50, '"[[[[[[[[[[[[[[[[[[', "\\"]
    assert canonical.decode(canonical.encode(record)) == record


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"]" * 4 + b"[" * 20, "RECORD_SYNTAX"),
        (b"]" * 4 + b"[" * 21, "RECORD_DEPTH"),
        (b"[}" * 50, "RECORD_SYNTAX"),
        (b"[" * 17, "RECORD_DEPTH"),
        (b'["' + b"[" * 17, "RECORD_SYNTAX"),
        (b'["",' + b"[" * 16, "RECORD_DEPTH"),
        (b'["\\"' + b"[" * 17, "RECORD_SYNTAX"),
        (b'["\\\\",' + b"[" * 16, "RECORD_DEPTH"),
    ],
)
def test_nesting_is_counted_outside_of_text_whatever_the_brackets_do(raw, code):
    assert refusal_of(canonical.decode, raw) == code


@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"[{"])
def test_nesting_bomb_is_refused_quickly_whatever_the_stack(unit, processor_seconds):
    bomb = unit * (canonical.MAX_BYTES // len(unit))
    limit = sys.getrecursionlimit()
    assert refusal_of(canonical.decode, bomb) == "RECORD_DEPTH"
    assert processor_seconds(lambda: refusal_of(canonical.decode, bomb)) < 0.5
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "raw",
    [
        b'"' + b"\\" * (canonical.MAX_BYTES - 1),
        b'"' * canonical.MAX_BYTES,
        b'"a' * (canonical.MAX_BYTES // 2),
    ],
    ids=["backslashes", "quotes", "open strings"],
)
def test_unclosed_text_is_refused_quickly(raw, processor_seconds):
    def decode():
        with pytest.raises(EncodingError):
            canonical.decode(raw)

    assert processor_seconds(decode) < 1.0


def test_floats_travel_as_the_shortest_text():
    for number, text in (
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-0.0, "0.0"),
        (1e22, "1e+22"),
        (1e-7, "1e-07"),
        (5e-324, "5e-324"),
    ):
        assert canonical.float_text(number) == text
        assert canonical.parse_float(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "0.10",
        "1e22",
        "1E+22",
        "1e-7",
        ".5",
        "5.",
        "-0.0",
        "nan",
        "inf",
        "1e999",
        " 0.5",
        "0.5\n",
        "0_1.0",
        "",
        "x",
        "0x1p-1",
        "0.1000000000000000055511151231257827",
        "\u0660.\u0665",
    ],
)
def test_b7_another_text_of_a_float_is_refused(text):
    assert refusal_of(canonical.parse_float, text) == "RECORD_FLOAT"


@pytest.mark.parametrize(
    ("number", "code"), [(float("inf"), "RECORD_FLOAT"), (1, "RECORD_TYPE"), ("1.0", "RECORD_TYPE")]
)
def test_only_finite_floats_have_a_text(number, code):
    assert refusal_of(canonical.float_text, number) == code


def test_float_text_is_read_from_text_only():
    assert refusal_of(canonical.parse_float, 0.5) == "RECORD_TYPE"
