import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import IdentifierError
from protocol.identifiers import (
    MAX_COUNTER,
    EstimatorId,
    parse_image_name,
    parse_image_version,
    parse_node,
    parse_organisation,
    parse_process,
)

PARSERS = [parse_node, parse_organisation, parse_process, parse_image_name, parse_image_version]


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_node, "node07"),
        (parse_node, "7"),
        (parse_node, "bank-a.branch_2"),
        (parse_node, "n" * 64),
        (parse_organisation, "Org1MSP"),
        (parse_organisation, "bank-a.example"),
        (parse_process, "fraud-2026"),
        (parse_image_name, "attestree/learner"),
        (parse_image_name, "learner"),
        (parse_image_version, "1.2.0-rc.1"),
    ],
)
def test_names_of_the_grammar_are_accepted_unchanged(parser, text):
    assert parser(text) == text


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "a\n",
        "a\0",
        "a~b",
        "..",
        "a..b",
        "-a",
        "a-",
        "../a",
        "/a",
        "a/",
        "a//b",
        "a:b",
        "a@b",
        "nodé",
        "n\u200bode",
        "\u0430bc",
        "$(id)",
        "a;b",
        "a'b",
        "%s",
        "a\u0301",
        "\uff41",
    ],
)
def test_text_outside_the_grammar_is_refused(parser, text):
    with pytest.raises(IdentifierError) as refusal:
        parser(text)
    assert refusal.value.code == "NAME_SYNTAX"


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_node, "Node07"),
        (parse_node, "a/b"),
        (parse_process, "Fraud"),
        (parse_organisation, "1Org"),
        (parse_organisation, "org/msp"),
        (parse_image_name, "Learner"),
        (parse_image_version, "v1/2"),
        (parse_image_version, "latest"),
    ],
)
def test_text_of_another_kind_is_refused(parser, text):
    with pytest.raises(IdentifierError) as refusal:
        parser(text)
    assert refusal.value.code == "NAME_SYNTAX"


@pytest.mark.parametrize("parser", PARSERS)
def test_d21_name_just_under_and_over_its_limit(parser):
    longest = 128 if parser is parse_image_name else 64
    assert parser("a" * longest)
    for text in ("", "a" * (longest + 1)):
        with pytest.raises(IdentifierError) as refusal:
            parser(text)
        assert refusal.value.code == "NAME_LENGTH"


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("value", [None, 7, b"node", ["node"]])
def test_what_is_not_text_is_no_name(parser, value):
    with pytest.raises(IdentifierError) as refusal:
        parser(value)
    assert refusal.value.code == "NAME_TYPE"


def test_estimator_ids_print_as_in_the_design():
    assert str(EstimatorId("node07", 42)) == "node07/0042"
    assert str(EstimatorId("node07", 0)) == "node07/0000"
    assert str(EstimatorId("node07", MAX_COUNTER)) == "node07/4294967295"


@given(st.integers(0, MAX_COUNTER))
def test_every_counter_prints_and_parses_one_way(counter):
    estimator_id = EstimatorId("node07", counter)
    assert EstimatorId.parse(str(estimator_id)) == estimator_id


@given(st.text(alphabet="0123456789", max_size=12))
def test_a_counter_that_parses_is_the_one_printed(digits):
    text = "node07/" + digits
    try:
        parsed = EstimatorId.parse(text)
    except IdentifierError:
        return
    assert str(parsed) == text


@pytest.mark.parametrize(
    "counter",
    [
        "",
        "42",
        "042",
        "00042",
        "04294967295",
        "+042",
        "-042",
        "4_2_0",
        "0x2a",
        " 042",
        "٠٠٤٢",
        "0042\n",
        "00000000000",
    ],
)
def test_another_padding_of_a_counter_is_refused(counter):
    with pytest.raises(IdentifierError) as refusal:
        EstimatorId.parse("node07/" + counter)
    assert refusal.value.code == "COUNTER_SYNTAX"


def test_a_printed_counter_beyond_32_bits_is_refused():
    with pytest.raises(IdentifierError) as refusal:
        EstimatorId.parse("node07/4294967296")
    assert refusal.value.code == "COUNTER_RANGE"


@pytest.mark.parametrize("counter", [-1, MAX_COUNTER + 1, 1.0, True, "1", None])
def test_a_counter_out_of_range_or_of_another_type_is_refused(counter):
    with pytest.raises(IdentifierError) as refusal:
        EstimatorId("node07", counter)
    assert refusal.value.code == "COUNTER_RANGE"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("node07", "NAME_SYNTAX"),
        ("/0042", "NAME_LENGTH"),
        ("a/b/0042", "COUNTER_SYNTAX"),
        (7, "NAME_TYPE"),
        ("NODE07/0042", "NAME_SYNTAX"),
    ],
)
def test_text_that_is_no_estimator_id_is_refused(text, code):
    with pytest.raises(IdentifierError) as refusal:
        EstimatorId.parse(text)
    assert refusal.value.code == code


def test_estimator_ids_are_ordered_by_creator_then_number():
    ids = [EstimatorId("node10", 1), EstimatorId("node02", 10_000), EstimatorId("node02", 9_999)]
    assert sorted(ids) == ids[::-1]
    assert len({EstimatorId("node02", 1), EstimatorId("node02", 1)}) == 1
    with pytest.raises(AttributeError):
        ids[0].counter = 2
