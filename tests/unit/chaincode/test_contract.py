"""The contract layer: typed arguments, refusals by code, results, metadata, and a log without values."""

import logging
from typing import Any

import pytest

from chaincode.registry import CONTRACTS, contract
from chaincode.shim import Context, Contract, RefusalError, contract_api, evaluate, submit


class CodedError(Exception):
    code = "ELSEWHERE"


class Typed(Contract):
    name = "typed"
    version = "7"
    refusals = (CodedError,)

    @evaluate
    def echo(self, ctx: Context, text: str, number: int, flag: bool, raw: bytes) -> list[Any]:
        """Return what was understood."""
        return [text, number, flag, raw.hex()]

    @evaluate
    def lists(self, ctx: Context, names: list[str], numbers: list[int], extra: dict[str, Any]) -> list[Any]:
        return [names, numbers, extra]

    @evaluate
    def optional(self, ctx: Context, first: str, second: int = 5) -> str:
        return f"{first}{second}"

    @evaluate
    def result(self, ctx: Context, kind: str) -> Any:
        return {"none": None, "text": "ä", "bytes": b"\xff", "json": {"b": 1, "a": "ä"}, "nan": float("nan")}[
            kind
        ]

    @evaluate
    def sneaky(self, ctx: Context, how: str) -> None:
        {
            "put": lambda: ctx.put("k", b"v"),
            "delete": lambda: ctx.delete("k"),
            "event": lambda: ctx.set_event("e"),
        }[how]()

    @submit
    def raises(self, ctx: Context, how: str) -> None:
        raise {
            "refusal": RefusalError("MINE", "my reason"),
            "coded": CodedError("their reason"),
            "bug": ValueError("secret-value"),
            "recursion": RecursionError(),
            "memory": MemoryError(),
            "exit": SystemExit(0),
            "surrogate": RefusalError("MINE", "bad name \ud800"),
        }[how]

    def hidden(self, ctx: Context) -> str:
        return "never"


@pytest.fixture
def typed(serve):
    return serve(Typed())[1]


def test_arguments_arrive_as_declared(typed):
    assert typed.run("echo", "ä", "-5", "true", b"\x00\xff").json == ["ä", -5, True, "00ff"]
    assert typed.run("lists", '["a"]', "[1,-2]", '{"x":[null]}').json == [["a"], [1, -2], {"x": [None]}]


def test_trailing_arguments_with_defaults_may_be_left_out(typed):
    assert typed.run("optional", "a").payload == b"a5"
    assert typed.run("optional", "a", "6").payload == b"a6"


@pytest.mark.parametrize(
    "name", ["nothing", "", "hidden", "_call", "__init__", "invoke", "echo ", "ECHO", b"\xff"]
)
def test_unknown_function_is_refused(typed, name):
    assert typed.run(name).code == "UNKNOWN_FUNCTION"


def test_transaction_without_arguments_is_refused(typed):
    assert typed.run().code == "UNKNOWN_FUNCTION"


@pytest.mark.parametrize("arguments", [(), ("a",), ("a", 1, "true", "b", "c")])
def test_wrong_argument_count_is_refused(typed, arguments):
    outcome = typed.run("echo", *arguments)
    assert (outcome.status, outcome.code) == (400, "BAD_ARGUMENT_COUNT")
    assert f"takes 4 arguments, got {len(arguments)}" in outcome.message


@pytest.mark.parametrize(
    "number", ["", "1.0", "01", "+1", " 1", "1e3", "0x1", "-0", "9223372036854775808", "1" * 5000, "\u0661"]
)
def test_number_not_in_canonical_form_is_refused(typed, number):
    assert typed.run("echo", "a", number, "true", "b").code == "BAD_ARGUMENT"


@pytest.mark.parametrize("number", ["0", "-1", "9223372036854775807", "-9223372036854775808"])
def test_every_64_bit_number_is_accepted(typed, number):
    assert typed.run("echo", "a", number, "true", "b").json[1] == int(number)


def test_flag_other_than_true_or_false_is_refused(typed):
    assert typed.run("echo", "a", "1", "True", "b").code == "BAD_ARGUMENT"


def test_text_that_is_not_utf8_is_refused(typed):
    assert typed.run("echo", b"\xff", "1", "true", "b").code == "BAD_ARGUMENT"


@pytest.mark.parametrize(
    "extra",
    [
        "",
        "[]",
        "3",
        "{",
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e400}',
        '{"a":"\\ud800"}',
        b"\xff",
        "[" * 200_000,
    ],
)
def test_json_that_two_readers_could_read_differently_is_refused(typed, extra):
    assert typed.run("lists", "[]", "[]", extra).code == "BAD_ARGUMENT"


@pytest.mark.parametrize("numbers", ["[true]", "[1.0]", '["1"]', "{}", "[null]"])
def test_list_of_another_kind_is_refused(typed, numbers):
    assert typed.run("lists", "[]", numbers, "{}").code == "BAD_ARGUMENT"


def test_results_are_encoded_the_same_everywhere(typed):
    assert typed.run("result", "none").payload == b""
    assert typed.run("result", "text").payload == "ä".encode()
    assert typed.run("result", "bytes").payload == b"\xff"
    assert typed.run("result", "json").payload == '{"a":"ä","b":1}'.encode()
    assert typed.run("result", "nan").code == "INTERNAL"


@pytest.mark.parametrize("how", ["put", "delete", "event"])
def test_function_that_only_evaluates_cannot_write(typed, how):
    assert typed.run("sneaky", how).code == "MISUSE"


def test_refusals_keep_their_code_and_sentence(typed):
    assert typed.run("raises", "refusal").message == '{"code":"MINE","message":"my reason"}'
    assert typed.run("raises", "coded").message == '{"code":"ELSEWHERE","message":"their reason"}'


def test_refusal_that_quotes_a_lone_surrogate_still_arrives(typed):
    assert typed.run("raises", "surrogate").message == '{"code":"MINE","message":"bad name ?"}'


@pytest.mark.parametrize("how", ["bug", "recursion", "memory", "exit", "absent"])
def test_unexpected_exception_becomes_an_error_without_its_text(typed, how):
    outcome = typed.run("raises", how)
    assert (outcome.status, outcome.code) == (500, "INTERNAL")
    assert "secret" not in outcome.message


def test_log_has_ids_and_sizes_but_no_values(typed, caplog):
    with caplog.at_level(logging.DEBUG):
        typed.run("raises", "bug", tx="tx-of-the-bug")
        typed.run("echo", "secret-value", "1", "true", "secret-value", transient={"t": b"secret-value"})
        typed.run("secret-value")
    assert "tx-of-the-bug" in caplog.text
    assert "raises:" in caplog.text
    assert "secret" not in caplog.text


def test_fabrics_tools_find_the_functions_in_the_form_of_the_contract_api(typed):
    found = typed.run("org.hyperledger.fabric:GetMetadata").json
    assert found["info"] == {"title": "typed", "version": "7"}
    assert found["components"] == {"schemas": {}}
    contract = found["contracts"]["typed"]
    assert contract["default"] is True
    functions = {each["name"]: each for each in contract["transactions"]}
    listed = {each["name"]: each for each in typed.run("metadata").json["functions"]}
    assert functions.keys() == listed.keys()
    for name, function in functions.items():
        assert function["tag"] == [listed[name]["kind"], listed[name]["kind"].upper()]
        assert [each["name"] for each in function["parameters"]] == [
            each["name"] for each in listed[name]["arguments"]
        ]


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_of_ours_describes_itself_to_fabrics_tools(name):
    """Every type of argument that a contract declares has a schema."""
    described = contract_api.describe(contract(name))
    assert described["contracts"][name]["transactions"]


def test_metadata_lists_functions_arguments_and_docs(typed):
    found = typed.run("metadata").json
    assert (found["contract"], found["version"]) == ("typed", "7")
    functions = {function["name"]: function for function in found["functions"]}
    assert list(functions) == sorted(functions)
    assert set(functions) == {"echo", "lists", "metadata", "optional", "raises", "result", "sneaky"}
    assert functions["echo"]["doc"] == "Return what was understood."
    assert functions["raises"]["kind"] == "submit"
    assert functions["optional"]["arguments"] == [
        {"name": "first", "type": "str", "optional": False},
        {"name": "second", "type": "int", "optional": True},
    ]
    assert [argument["type"] for argument in functions["lists"]["arguments"]] == [
        "list[str]",
        "list[int]",
        "dict[str, Any]",
    ]


def test_contract_with_an_argument_that_cannot_be_decoded_is_refused_when_made():
    class Floating(Contract):
        name = "floating"

        @evaluate
        def f(self, ctx: Context, x: float) -> None:
            """Take a float."""

    with pytest.raises(TypeError, match="float"):
        Floating()


def test_contract_with_unnamed_arguments_is_refused_when_made():
    class Starred(Contract):
        name = "starred"

        @evaluate
        def f(self, ctx: Context, *rest: str) -> None:
            """Take anything."""

    with pytest.raises(TypeError, match="ordinary"):
        Starred()
