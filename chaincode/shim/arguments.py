"""A contract function's arguments: declared as Python types, decoded from the proposal's bytes here alone.

    str             UTF-8 text
    bytes           as they came
    int             canonical decimal, 64 bits signed
    bool            true or false
    list[str], list[int], dict[str, Any]
                    JSON without duplicate names, NaN or infinities

There is no float: two peers must read the same number.
"""

import functools
import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import RefusalError

INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
INT64 = range(-(2**63), 2**63)


class ArgumentError(ValueError):
    """An argument is not of its declared type; the sentence says what it should be."""


@dataclass(frozen=True)
class Parameter:
    """One declared argument."""

    name: str
    type: str
    optional: bool
    decode: Callable[[bytes], Any]


@functools.cache
def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the parameters after `self` and the context from a contract function's signature."""
    hints = typing.get_type_hints(function)
    declared = list(inspect.signature(function).parameters.values())[2:]
    return tuple(
        _parameter(function.__name__, parameter, hints.get(parameter.name)) for parameter in declared
    )


def decode(function: str, parameters: Sequence[Parameter], arguments: Sequence[bytes]) -> list[Any]:
    """Turn raw arguments into values, or refuse them by count or by name."""
    least = sum(not parameter.optional for parameter in parameters)
    if not least <= len(arguments) <= len(parameters):
        wanted = str(least) if least == len(parameters) else f"{least} to {len(parameters)}"
        raise RefusalError("BAD_ARGUMENT_COUNT", f"{function} takes {wanted} arguments, got {len(arguments)}")
    values = []
    for parameter, raw in zip(parameters, arguments, strict=False):
        try:
            values.append(parameter.decode(raw))
        except ArgumentError as error:
            raise RefusalError("BAD_ARGUMENT", f"{function}: {parameter.name} {error}") from None
    return values


def _parameter(function: str, parameter: inspect.Parameter, hint: Any) -> Parameter:
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise TypeError(f"{function}: {parameter.name} must be an ordinary parameter")
    decoder = DECODERS.get(hint)
    if decoder is None:
        raise TypeError(f"{function}: {parameter.name} cannot be declared as {hint}")
    name = (
        hint.__name__
        if isinstance(hint, type) and not typing.get_args(hint)
        else str(hint).replace("typing.", "")
    )
    return Parameter(parameter.name, name, parameter.default is not inspect.Parameter.empty, decoder)


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ArgumentError("must be UTF-8 text") from None


def _integer(raw: bytes) -> int:
    if not INTEGER.fullmatch(raw) or int(raw) not in INT64:
        raise ArgumentError("must be a whole number of 64 bits in canonical decimal")
    return int(raw)


def _boolean(raw: bytes) -> bool:
    if raw not in (b"true", b"false"):
        raise ArgumentError("must be true or false")
    return raw == b"true"


def _json(raw: bytes) -> Any:
    try:
        found = json.loads(_text(raw), object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite)
        if b"\\ud" in raw.lower():
            json.dumps(found, ensure_ascii=False).encode("utf-8")  # refuses lone surrogates
    except (ValueError, RecursionError):
        raise ArgumentError(
            "must be JSON of valid text, without duplicate names, NaN or infinities"
        ) from None
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _list_of(kind: type) -> Callable[[bytes], list[Any]]:
    def decode_list(raw: bytes) -> list[Any]:
        found = _json(raw)
        # bool is a subclass of int, and `true` is not a number to anyone else.
        if not isinstance(found, list) or not all(type(item) is kind for item in found):
            raise ArgumentError(f"must be a JSON list of {kind.__name__}")
        return found

    return decode_list


def _dict(raw: bytes) -> dict[str, Any]:
    found = _json(raw)
    if not isinstance(found, dict):
        raise ArgumentError("must be a JSON object")
    return found


DECODERS: dict[Any, Callable[[bytes], Any]] = {
    str: _text,
    bytes: bytes,
    int: _integer,
    bool: _boolean,
    list[str]: _list_of(str),
    list[int]: _list_of(int),
    dict[str, Any]: _dict,
}
