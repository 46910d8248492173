"""A federation file against the schema that is shipped with it, every fault with its line."""

import json
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

from executor.process.document import Document, Path_
from executor.process.errors import DEFAULT_REMEDY, Fault, FederationError

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

# In JSON Schema 3.0 is an integer; on the ledger it is not.
_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ),
)


@cache
def schema() -> dict[str, Any]:
    """Return the shipped schema."""
    text = files("executor.process").joinpath("federation.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def check(document: Document, *, any_options: bool = False) -> None:
    """Return if the file has the fields and kinds of values that the schema asks for."""
    wanted = schema()
    if any_options:
        free = {"type": "object", "description": "an object that the image understands"}
        wanted = wanted | {"$defs": wanted["$defs"] | {"options": free}}
    faults = [
        fault
        for error in _Validator(wanted).iter_errors(document.content)
        for fault in _faults(document, error)
    ]
    if faults:
        raise FederationError.of("FEDERATION_SCHEMA", document.file, faults)


def _faults(document: Document, error: ValidationError) -> Iterator[Fault]:
    path: Path_ = tuple(error.absolute_path)
    rules: Mapping[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known, given = list(rules["properties"]), error.instance
        for name in given if isinstance(given, dict) else ():
            if name not in known:
                yield _unknown(document, path, name, known)
    elif error.validator == "required":
        meaning = _meaning(rules, error)
        yield Fault(
            document.line(path),
            f"{_name(path, 'the file')} lacks {meaning}",
            "Add the missing field",
        )
    elif "propertyNames" in error.absolute_schema_path:
        name = str(error.instance)
        yield Fault(
            document.line((*path, name)),
            f"{_name((*path, name))} is not a name: {rules.get('description', error.message)}",
            "Choose a name that follows the grammar of docs/formats/identifiers-v1.md",
        )
    else:
        yield Fault(document.line(path), *_explained(path, error, rules))


def _unknown(document: Document, path: Path_, name: str, known: list[str]) -> Fault:
    close = get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}"
    return Fault(document.line((*path, name)), f"{_name((*path, name))} is not a field", hint)


def _meaning(rules: Mapping[str, Any], error: ValidationError) -> str:
    asked: Any = error.validator_value
    given: Any = error.instance
    missing = [name for name in asked if name not in given]
    # One error comes for each missing field, and names it in its message alone.
    name = next((name for name in missing if error.message.startswith(repr(name))), missing[0])
    wanted = rules.get("properties", {}).get(name, {})
    if "description" not in wanted and "$ref" in wanted:
        wanted = schema()["$defs"][wanted["$ref"].rpartition("/")[2]]
    description = wanted.get("description")
    return f"{name}: {description}" if description else name


def _explained(path: Path_, error: ValidationError, rules: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is wrong with one value, and what to write."""
    description = rules.get("description")
    field = next((part for part in reversed(path) if isinstance(part, str)), None)
    remedy = f"Correct {field}: {description}" if description and field else DEFAULT_REMEDY
    if error.validator == "type" and _is_bare(error):
        remedy = "Put it in quotes to make it text"
    explain = _CAUSES.get(str(error.validator))
    cause = error.message[:200] if explain is None else explain(error.validator_value, rules)
    return f"{_name(path, 'the file')} is {_shown(error.instance)}, {cause}", remedy


def _is_bare(error: ValidationError) -> bool:
    """Whether a number or word was read where text is wanted, as in `version: 1.10`."""
    return "string" in _listed(error.validator_value) and isinstance(error.instance, bool | int | float)


def _listed(wanted: Any) -> list[str]:
    return [wanted] if isinstance(wanted, str) else list(wanted)


def _span(wanted: Any, rules: Mapping[str, Any]) -> str:
    both = "minimum" in rules and "maximum" in rules
    return f"not from {rules['minimum']} to {rules['maximum']}" if both else f"not at least {wanted}"


def _short(wanted: Any, _: Mapping[str, Any]) -> str:
    return f"and needs {wanted} at least"


def _long(wanted: Any, _: Mapping[str, Any]) -> str:
    return f"longer than {wanted}"


_CAUSES: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "type": lambda wanted, _: "not " + " or ".join(_KINDS[kind] for kind in _listed(wanted)),
    "enum": lambda wanted, _: f"not one of {', '.join(map(str, wanted))}",
    "const": lambda wanted, _: f"not {wanted}",
    "minimum": _span,
    "maximum": _span,
    "pattern": lambda _, rules: f"which is not {rules.get('description', 'as it has to be')}",
    "minItems": _short,
    "minProperties": _short,
    "minLength": _short,
    "maxItems": _long,
    "maxProperties": _long,
    "maxLength": _long,
    "uniqueItems": lambda *_: "and names one thing twice",
    "anyOf": lambda *_: "with neither a kind nor edges",
}


def _name(path: Path_, top: str = "") -> str:
    """Print where a value stands, as in `steps[0].parameters.n_new`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or top


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
